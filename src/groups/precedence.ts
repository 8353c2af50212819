/**
 * Who goes first among the calls of this process that want all of several locks. Each needs a moment in which all its
 * members are free; where others come and go all the time, there is none. So the oldest call that has lost rounds gets a
 * turn: for a short time, calls that want one of its members do not begin another round.
 */
import type { Clock } from "../base/clock.js";
import type { Wait } from "../engine/wait.js";

/** Milliseconds: a member may be held for hours, and nobody is to be kept from the others for that. */
const TURN = 250;

/** One call, while it waits. */
export interface Suitor {
  /** Of the members. */
  readonly keys: ReadonlySet<string>;
  /** Monotonic milliseconds. */
  readonly since: number;
  readonly wait: Wait;
  readonly clock: Clock;
}

class Precedence {
  /** Calls that have lost a round since their last turn, if they had one. */
  readonly #losers = new Set<Suitor>();
  /** Calls that do not begin a round now. */
  readonly #heldUp = new Set<Suitor>();
  /** Whose turn it is. */
  #first: Suitor | undefined;
  #endTurn: (() => void) | undefined;

  /** The call has lost a round: it may have a turn. */
  lost(suitor: Suitor): void {
    if (suitor !== this.#first) this.#losers.add(suitor);
    if (!this.#first) this.#next();
  }

  /** The call is over. */
  gone(suitor: Suitor): void {
    this.#losers.delete(suitor);
    if (suitor === this.#first) this.#next();
  }

  /** Whether it is the turn of another call that wants one of the same members. */
  holdsUp(suitor: Suitor): boolean {
    const first = this.#first;
    if (!first || first === suitor) return false;
    for (const key of suitor.keys) if (first.keys.has(key)) return true;
    return false;
  }

  /** Sleeps until turns have changed, at most `ms`. */
  async passage(suitor: Suitor, ms: number): Promise<void> {
    this.#heldUp.add(suitor);
    try {
      await suitor.wait.park(ms);
    } finally {
      this.#heldUp.delete(suitor);
    }
  }

  #next(): void {
    this.#endTurn?.();
    const [oldest] = [...this.#losers].sort((a, b) => a.since - b.since);
    this.#first = oldest;
    if (oldest) {
      this.#losers.delete(oldest);
      this.#endTurn = oldest.clock.after(TURN, () => this.#next());
    }
    for (const { wait } of this.#heldUp) wait.resume();
  }
}

export const precedence: Precedence = new Precedence();
