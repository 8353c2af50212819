/** What a client has done so far, by count. Counting costs a few additions, so it is always done. */

/** Upper bounds of the buckets in milliseconds: each about three times the one before. */
const BOUNDS = [1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];

/** How many durations of which length there were. */
export interface DurationHistogram {
  /** How many there were. */
  readonly count: number;
  /** All together, in milliseconds. */
  readonly sum: number;
  /** Each counts those above the bound before it and up to its own, `le` milliseconds; the last one's is Infinity. */
  readonly buckets: readonly { readonly le: number; readonly count: number }[];
}

/** See {@link LockClient.stats}. */
export interface LockClientStats {
  /** Grants, of which {@link nested} were nested. */
  readonly acquired: number;
  /** Grants to owners that had the lock already. */
  readonly nested: number;
  /** Single tries that stayed with others. */
  readonly rejected: number;
  /** Calls whose `wait` was over first. */
  readonly timedOut: number;
  /** Calls that their `signal` ended. */
  readonly aborted: number;
  /** Holds that were given back, and calls that gave back permits, also where the answer came after their end. */
  readonly released: number;
  /** Holds, kept permits and those of a `run` that ended before. */
  readonly lost: number;
  /** Renewals by the watchdog. */
  readonly renewals: number;
  /** Scripts sent to Redis. */
  readonly commands: number;
  /** Holds, kept permits and those of each `run` of a semaphore now. A hold on a group is not one of its own: its members are. */
  readonly held: number;
  /** Calls that wait now. */
  readonly waiting: number;
  /** From calls to their grants. */
  readonly wait: DurationHistogram;
  /** From grants to their ends, where this client knows of both. */
  readonly hold: DurationHistogram;
}

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
  #acquired = 0;
  #nested = 0;
  #rejected = 0;
  #timedOut = 0;
  #aborted = 0;
  #released = 0;
  #lost = 0;
  #renewals = 0;
  readonly #wait = new Durations();
  readonly #hold = new Durations();

  acquired(waited: number, isNested: boolean): void {
    this.#acquired++;
    if (isNested) this.#nested++;
    this.#wait.add(waited);
  }

  released(held: number | undefined): void {
    this.#released++;
    if (held !== undefined) this.#hold.add(held);
  }

  renewed(): void {
    this.#renewals++;
  }

  rejected(): void {
    this.#rejected++;
  }

  timedOut(): void {
    this.#timedOut++;
  }

  aborted(): void {
    this.#aborted++;
  }

  lost(held: number | undefined): void {
    this.#lost++;
    if (held !== undefined) this.#hold.add(held);
  }

  snapshot(now: Pick<LockClientStats, "commands" | "held" | "waiting">): LockClientStats {
    return {
      acquired: this.#acquired,
      nested: this.#nested,
      rejected: this.#rejected,
      timedOut: this.#timedOut,
      aborted: this.#aborted,
      released: this.#released,
      lost: this.#lost,
      renewals: this.#renewals,
      ...now,
      wait: this.#wait.snapshot(),
      hold: this.#hold.snapshot(),
    };
  }
}
