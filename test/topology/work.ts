/**
 * Tasks that work in exclusive sections while the master changes. The counts are kept for each master: a failover may
 * lose a grant, so a section of the old master may overlap one of the new, but two sections of one master never
 * overlap.
 */
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import { FencedHold, type Hold, isLockError, type Lock, type LockClient } from "../../src/index.js";
import type { Kind } from "../contract/kinds.js";

/** A client that works, and the port of its connection's present master (0: none). */
export interface Worker {
  readonly client: LockClient;
  readonly master: () => number;
}

/** The work under one master. */
interface Reign {
  /** The number of sections that wrote. */
  sections: number;
  /** The count of these sections, by reading and then writing. */
  count: number;
  /** In the order of the grants. */
  readonly tokens: bigint[];
}

type Section = (reign: Reign, hold: Hold) => Promise<void>;

/** The length of a section in ms. */
const SECTION = 2;

export class Work {
  /** By the port of the master. */
  readonly reigns: Map<number, Reign> = new Map();
  /** The codes of calls that failed. */
  readonly failures: string[] = [];
  readonly #kind: Kind;
  readonly #lockName: string;
  readonly #tasks: Promise<void>[];
  #over = false;

  /** Starts the tasks: each worker writes and reads in turn. */
  constructor(kind: Kind, lockName: string, workers: readonly Worker[]) {
    this.#kind = kind;
    this.#lockName = lockName;
    this.#tasks = workers.flatMap((worker) => [this.#task(worker), this.#task(worker)]);
  }

  /** The number of sections under this master. */
  done(master: number): number {
    return this.#reign(master).sections;
  }

  /** Under no master an update was lost, tokens rose, and calls failed only for allowed reasons. */
  async finish(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#tasks);
    for (const { sections, count, tokens } of this.reigns.values()) {
      expect(count).toBe(sections);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
    }
    expect(this.failures.filter((code) => code !== "UNAVAILABLE" && code !== "LOCK_LOST")).toEqual([]);
  }

  async #task({ client, master }: Worker): Promise<void> {
    const { make, rival } = this.#kind;
    const [reads, writes] = [make(client, this.#lockName), rival.make(client, this.#lockName)];
    while (!this.#over) {
      await this.#section(writes, master, increment);
      await this.#section(reads, master, look);
    }
  }

  async #section(lock: Lock, master: () => number, fn: Section): Promise<void> {
    try {
      await lock.run((hold) => {
        // The connection brought the grant a moment ago. If it has broken since, it is not known which master granted
        // it.
        const port = master();
        if (port === 0) return;
        const reign = this.#reign(port);
        note(hold, reign);
        return fn(reign, hold);
      });
    } catch (error) {
      this.failures.push(isLockError(error) ? error.code : String(error));
      if (isLockError(error, "CLIENT_CLOSED")) this.#over = true;
    }
  }

  #reign(master: number): Reign {
    const known = this.reigns.get(master);
    if (known) return known;
    const reign = { sections: 0, count: 0, tokens: [] };
    this.reigns.set(master, reign);
    return reign;
  }
}

function note(hold: Hold, { tokens }: Reign): void {
  if (hold instanceof FencedHold) tokens.push(hold.token);
}

/** Reads and then writes, if the hold is still valid. */
async function increment(reign: Reign, hold: Hold): Promise<void> {
  const read = reign.count;
  await pause(SECTION);
  if (!hold.isHeld) return;
  reign.count = read + 1;
  reign.sections++;
}

/** Reads twice: the count must not change while the hold is valid. */
async function look(reign: Reign, hold: Hold): Promise<void> {
  const read = reign.count;
  await pause(SECTION);
  if (hold.isHeld && reign.count !== read) throw new Error("another one wrote");
}
