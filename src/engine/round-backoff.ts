/**
 * How often the calls of one process for something that is tried in rounds (a RedLock) are served, the turn of a process
 * counted once. Many processes may want it, and nobody tells them whose turn it is; but the one that was served longest ago,
 * by its own measure, tries first, so they come to take turns. Otherwise all would try at once at each release, and split
 * the votes.
 */

/** Who has just been served lets others go first, by so many round times; who waits as long as usual, by none. */
const STEPS = 6;
/** What the last interval, or round, counts for. */
const SHARE = 0.1;
/** Milliseconds: a timer is no more exact. */
const SHORTEST_ROUND = 1;
/** Milliseconds: a round that a silent master made longer says nothing about the others. */
const LONGEST_ROUND = 20;

export class RoundBackoff {
  /** Those that have heard of a release since the last try began. */
  readonly heard: Set<unknown> = new Set();
  /** Calls that use it. */
  calls = 0;
  /** Monotonic milliseconds. */
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

  /** Milliseconds to let others go first, and `chance` round times. */
  pause(now: number, chance: number): number {
    const waited =
      this.#servedAt !== undefined && this.#interval ? (now - this.#servedAt) / this.#interval : 1;
    return (Math.max(0, 1 - waited) * STEPS + chance) * this.#roundTime;
  }
}
