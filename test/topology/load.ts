/**
 * These tasks work under locks until they are stopped. They report updates that were lost, losses that were told, and what
 * else they saw. Crowds of processes, and masters that forget grants, are the fleet's.
 */
import { setTimeout as pause } from "node:timers/promises";
import { isLockError, type Lock, type LockClient } from "../../src/index.js";
import { until } from "../support/index.js";
import type { Kind } from "../support/place/kinds.js";

/** Milliseconds between the reading and the writing of a counter: long enough for another task to come in between. */
const WORK = 8;
/** Milliseconds between two writes if there are readers, because writers that keep coming go first. */
const REST = 20;

class Counter {
  value = 0;
  updates = 0;
  misreadings = 0;
  runs = 0;
  tasks = 0;
}

export class Load {
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
    const counter = new Counter();
    this.#counters.set(lockName, counter);
    for (const client of clients) {
      for (const each of [kind.rival, kind])
        this.#tasks.push(this.#work(each.make([client], lockName), counter, each.exclusive, !kind.exclusive));
      counter.tasks += 2;
    }
  }

  /** Resolves when that many more visits of the lock have begun and ended after this moment. */
  async goesOn(lockName: string, count: number, timeout: number): Promise<void> {
    const counter = this.#counters.get(lockName) as Counter;
    const enough = counter.runs + counter.tasks + count;
    await until(`work under ${lockName} goes on`, () => counter.runs >= enough, { timeout, every: 10 });
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

  /** What went wrong under locks that no server has forgotten. */
  violations(): string[] {
    return [...this.#counters].flatMap(([lockName, { value, updates, misreadings }]) =>
      value === updates && misreadings === 0
        ? []
        : [`${lockName}: ${updates - value} updates lost, ${misreadings} reads disturbed`],
    );
  }

  async #work(lock: Lock, counter: Counter, writes: boolean, rests: boolean): Promise<void> {
    while (!this.#stopped) {
      await lock.run(() => this.#visit(counter, writes)).catch((error) => this.#note(error));
      if (rests && writes) await pause(REST);
    }
  }

  async #visit(counter: Counter, writes: boolean): Promise<void> {
    const read = counter.value;
    await pause(WORK);
    if (writes) {
      counter.value = read + 1;
      counter.updates++;
    } else if (counter.value !== read) counter.misreadings++;
    counter.runs++;
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
