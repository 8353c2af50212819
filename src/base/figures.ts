/** What a client has done so far, and what it holds and waits for now. Counting costs a few additions, so it is always done. */
import type { LockEvent, LockEventName, LockEvents } from "./events.js";

/** Upper bounds of the buckets in milliseconds: each about three times the one before. */
const BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/** All events: the compiler sees that none is missing. */
const NO_EVENTS: Readonly<Record<LockEventName, number>> = {
  acquired: 0,
  released: 0,
  waiting: 0,
  rejected: 0,
  gaveUp: 0,
  longHold: 0,
  renewed: 0,
  suspended: 0,
  lost: 0,
  error: 0,
};

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

/** What else is counted, of what events tell. */
type Counted = Partial<Pick<LockEvents["acquired"], "nested" | "waited">> & {
  readonly held?: number;
  readonly reason?: string;
};

export class Figures {
  /** How often each event came. A Map, because V8 is slow to store under names that differ from call to call. */
  readonly events: Map<LockEventName, number> = new Map(
    Object.entries(NO_EVENTS) as [LockEventName, number][],
  );
  readonly #kinds = { nested: 0, timedOut: 0, aborted: 0 };
  readonly #wait = new Durations();
  readonly #hold = new Durations();

  count(event: LockEventName, { nested, waited, held, reason }: Counted): void {
    this.events.set(event, this.#of(event) + 1);
    if (nested) this.#kinds.nested++;
    if (reason === "timeout") this.#kinds.timedOut++;
    if (reason === "abort") this.#kinds.aborted++;
    if (event === "acquired") this.#wait.add(waited as number);
    else if (held !== undefined && event !== "longHold") this.#hold.add(held);
  }

  snapshot(now: Pick<LockClientStats, "commands" | "held" | "waiting">): LockClientStats {
    return {
      acquired: this.#of("acquired"),
      ...this.#kinds,
      rejected: this.#of("rejected"),
      released: this.#of("released"),
      lost: this.#of("lost"),
      renewals: this.#of("renewed"),
      ...now,
      wait: this.#wait.snapshot(),
      hold: this.#hold.snapshot(),
    };
  }

  #of(event: LockEventName): number {
    return this.events.get(event) ?? 0;
  }
}
