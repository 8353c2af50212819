/** What a client has done so far, and what it holds and waits for now. Counting costs a few additions, so it is always done. */
import type { Details, LockEvent, LockEventName } from "./events.js";
import { noop } from "./work.js";

/** Upper bounds of the buckets in milliseconds: each about three times the one before. */
const BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/** How many durations of which length there were. */
export interface DurationHistogram {
  /** How many durations there were. */
  readonly count: number;
  /** The sum of all durations, in milliseconds. */
  readonly sum: number;
  /**
   * Each bucket counts the durations above the bound before it and up to its own, `le` milliseconds; the last bound is
   * Infinity.
   */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** See {@link LockClient.stats}. */
export interface LockClientStats {
  /** Grants, of which {@link nested} were nested. */
  readonly acquired: number;
  /** Grants to owners that had the lock already. */
  readonly nested: number;
  /** Calls that do not wait, and were refused because others have the lock. */
  readonly rejected: number;
  /** Calls that ended because their `wait` was over. */
  readonly timedOut: number;
  /** Calls that their `signal` ended. */
  readonly aborted: number;
  /** Holds that were given back, and calls that gave back permits; also if the answer came after the call had ended. */
  readonly released: number;
  /** Holds, kept permits, and permits of a semaphore's `run` that ended before they were given back. */
  readonly lost: number;
  /** Renewals by the watchdog. */
  readonly renewals: number;
  /** Scripts sent to Redis. */
  readonly commands: number;
  /**
   * Holds, kept permits, and calls of a semaphore's `run` now. A hold on a group is not counted, but the holds on its
   * members are.
   */
  readonly held: number;
  /** Calls that wait now. */
  readonly waiting: number;
  /** How long calls waited for their grants. */
  readonly wait: DurationHistogram;
  /** How long holds and permits lasted, if this client knows of their grant and of their end. */
  readonly hold: DurationHistogram;
}

/** What is told of one hold, permit or call. */
export type About = Pick<LockEvent, "lockName" | "kind">;

export interface Now {
  /** One for each that `stats().held` counts. */
  readonly held: readonly About[];
  /** One for each that `stats().waiting` counts. */
  readonly waiting: readonly About[];
}

/** The method of a client that tells this to `holdfast/otel`; the same symbol in every copy of the library. */
export const NOW: unique symbol = Symbol.for("holdfast.now/1") as never;

class Durations {
  count = 0;
  sum = 0;
  readonly #counts: number[] = new Array<number>(BOUNDS.length + 1).fill(0);

  add(ms: number): void {
    this.count++;
    this.sum += ms;
    let i = 0;
    while (ms > (BOUNDS[i] ?? Number.POSITIVE_INFINITY)) i++;
    this.#counts[i] = (this.#counts[i] as number) + 1;
  }

  snapshot(): DurationHistogram {
    const buckets = this.#counts.map((count, i) => ({ le: BOUNDS[i] ?? Number.POSITIVE_INFINITY, count }));
    return { count: this.count, sum: this.sum, buckets };
  }
}

export class Figures {
  readonly #counts = {
    acquired: 0,
    nested: 0,
    rejected: 0,
    timedOut: 0,
    aborted: 0,
    released: 0,
    lost: 0,
    renewals: 0,
  };
  readonly #wait = new Durations();
  readonly #hold = new Durations();

  /** All events, and how each changes the figures. */
  readonly counted: { readonly [E in LockEventName]: (details: Details<E>) => void } = {
    acquired: ({ waited, nested }) => {
      this.#counts.acquired++;
      if (nested) this.#counts.nested++;
      this.#wait.add(waited);
    },
    released: ({ held }) => this.#ended("released", held),
    waiting: noop,
    rejected: () => void this.#counts.rejected++,
    gaveUp: ({ reason }) => {
      if (reason !== "closed") this.#counts[reason === "timeout" ? "timedOut" : "aborted"]++;
    },
    longHold: noop,
    renewed: () => void this.#counts.renewals++,
    suspended: noop,
    lost: ({ held }) => this.#ended("lost", held),
    error: noop,
  };

  snapshot(now: Pick<LockClientStats, "commands" | "held" | "waiting">): LockClientStats {
    return { ...this.#counts, ...now, wait: this.#wait.snapshot(), hold: this.#hold.snapshot() };
  }

  #ended(how: "released" | "lost", held: number | undefined): void {
    this.#counts[how]++;
    if (held !== undefined) this.#hold.add(held);
  }
}
