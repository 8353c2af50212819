/**
 * How long the calls of one process back off before a round for a RedLock. Many processes may want it, and no server
 * says whose turn it is. So each process measures its usual interval between two grants (a chain of hand-overs is one),
 * and the process that was served longest ago, in such intervals, tries first. Thus the processes take turns. Otherwise
 * all would try at once at each release, and split the votes.
 */

/** Round times that a process backs off right after a grant; after its usual interval it does not back off. */
const STEPS = 6;
/** Weight of the last interval, or round, in the average. */
const SHARE = 0.1;
/** Milliseconds. Timers are no more exact than this. */
const SHORTEST_ROUND = 1;
/** Milliseconds. A silent master makes a round longer, which says nothing about the other masters. */
const LONGEST_ROUND = 20;

export class RoundBackoff {
  /** Calls to single masters that have heard of a release since the last try began. */
  readonly heard: Set<unknown> = new Set();
  /** How many calls use this object. */
  calls = 0;
  /** When a call of this process was last served, in monotonic milliseconds. */
  #servedAt: number | undefined;
  #interval: number | undefined;
  #roundTime = SHORTEST_ROUND;

  served(now: number): void {
    if (this.#servedAt !== undefined) {
      const last = now - this.#servedAt;
      this.#interval = this.#interval === undefined ? last : this.#interval + SHARE * (last - this.#interval);
    }
    this.#servedAt = now;
  }

  /** A round took so many milliseconds. */
  took(ms: number): void {
    const round = Math.min(LONGEST_ROUND, Math.max(SHORTEST_ROUND, ms));
    this.#roundTime += SHARE * (round - this.#roundTime);
  }

  /** Milliseconds for which other processes go first, plus `chance` round times. */
  pause(now: number, chance: number): number {
    const waited =
      this.#servedAt !== undefined && this.#interval ? (now - this.#servedAt) / this.#interval : 1;
    return (Math.max(0, 1 - waited) * STEPS + chance) * this.#roundTime;
  }
}
