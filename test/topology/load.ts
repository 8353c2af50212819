/**
 * These tasks work under locks until they are stopped. They report what they saw: sections that met, updates that were
 * lost, losses that were reported, and how long no task got the lock.
 */
import { setTimeout as pause } from "node:timers/promises";
import { isLockError, type Lock, type LockClient } from "../../src/index.js";
import { until } from "../support/index.js";
import type { Kind } from "../support/place/kinds.js";

/** Milliseconds between the reading and the writing of a counter: long enough for another task to come in between. */
const WORK = 8;
/** Milliseconds between two writes if there are readers, because writers that keep coming go first. */
const REST = 20;

export interface Section {
  readonly lockName: string;
  readonly shared: boolean;
  readonly from: number;
  readonly to: number;
}

interface Counter {
  value: number;
  updates: number;
  misreadings: number;
}

export class Load {
  readonly sections: Section[] = [];
  /** The reasons of LOCK_LOST errors. */
  readonly losses: string[] = [];
  /** The number of calls without an answer in time. */
  silences = 0;
  /** Errors that no task expects. */
  readonly strange: unknown[] = [];
  readonly #counters = new Map<string, Counter>();
  readonly #tasks: Promise<void>[] = [];
  #stopped = false;

  /** Starts tasks of each client on one lock: writers, and readers if the kind has them. */
  man(kind: Kind, clients: readonly LockClient[], lockName: string): void {
    this.#counters.set(lockName, { value: 0, updates: 0, misreadings: 0 });
    for (const client of clients) {
      const writes = (rests: boolean) => this.#work(kind.rival.make([client], lockName), false, rests);
      if (kind.exclusive) this.#tasks.push(writes(false), writes(false));
      else this.#tasks.push(writes(true), this.#work(kind.make([client], lockName), true));
    }
  }

  /** Resolves when that many more sections of the lock have begun after this moment. */
  async goesOn(lockName: string, count: number, timeout: number): Promise<void> {
    const asked = performance.now();
    const more = () => this.sections.filter((each) => each.lockName === lockName && each.from > asked).length;
    await until(`work under ${lockName} goes on`, () => more() >= count, { timeout, every: 10 });
  }

  /** Ends all tasks; fails if one of them does not end. */
  async stop(timeout = 15_000): Promise<void> {
    this.#stopped = true;
    let ended = false;
    const all = Promise.all(this.#tasks).then(() => {
      ended = true;
    });
    await until("all tasks have ended", () => ended, { timeout });
    await all;
  }

  /** Violations under one master; `borders` separate the times of the masters. */
  violations(borders: readonly number[] = []): string[] {
    const found: string[] = [];
    for (const [lockName, sections] of this.#byLock()) {
      const { value, updates, misreadings } = this.#counters.get(lockName) as Counter;
      if (borders.length === 0 && value !== updates)
        found.push(`${lockName}: ${updates - value} updates lost`);
      if (borders.length === 0 && misreadings > 0) found.push(`${lockName}: ${misreadings} reads disturbed`);
      const open: Section[] = [];
      for (const section of sections) {
        open.splice(0, open.length, ...open.filter(({ to }) => to > section.from));
        for (const other of open) {
          if (section.shared && other.shared) continue;
          if (borders.some((border) => other.from < border && border < section.from)) continue;
          found.push(`${lockName}: sections met at ${Math.round(section.from)}`);
        }
        open.push(section);
      }
    }
    return found;
  }

  /** When the first section of the lock began after that moment. */
  firstAfter(lockName: string, moment: number): number | undefined {
    return this.sections.find((each) => each.lockName === lockName && each.from > moment)?.from;
  }

  /** The longest time in which no task got the lock. */
  longestGap(lockName: string): number {
    const starts = (this.#byLock().get(lockName) ?? []).map(({ from }) => from);
    return Math.max(0, ...starts.slice(1).map((start, i) => start - (starts[i] ?? start)));
  }

  #byLock(): Map<string, Section[]> {
    const byLock = new Map<string, Section[]>();
    for (const section of [...this.sections].sort((a, b) => a.from - b.from)) {
      byLock.set(section.lockName, [...(byLock.get(section.lockName) ?? []), section]);
    }
    return byLock;
  }

  async #work(lock: Lock, shared: boolean, rests = false): Promise<void> {
    while (!this.#stopped) {
      await lock.run(() => this.#section(lock.name, shared)).catch((error) => this.#note(error));
      if (rests) await pause(REST);
    }
  }

  async #section(lockName: string, shared: boolean): Promise<void> {
    const from = performance.now();
    const counter = this.#counters.get(lockName) as Counter;
    const read = counter.value;
    await pause(WORK);
    if (!shared) {
      counter.value = read + 1;
      counter.updates++;
    } else if (counter.value !== read) counter.misreadings++;
    this.sections.push({ lockName, shared, from, to: performance.now() });
  }

  #note(error: unknown): void {
    if (isLockError(error, "LOCK_LOST")) this.losses.push((error as { reason?: string }).reason ?? "");
    else if (isLockError(error, "UNAVAILABLE")) this.silences++;
    else {
      // Stop here: tasks whose calls fail at once, again and again, would leave no time to the others.
      this.strange.push(error);
      this.#stopped = true;
    }
  }
}
