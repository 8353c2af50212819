/**
 * Decides which call goes first among the calls of a client that want all of several locks. Such a call needs a moment in
 * which all its members are free. While other calls come and go all the time, that moment never comes. So the oldest call
 * that has lost rounds gets a turn: for a short time, calls that want one of the same members do not begin a round.
 */
import type { Clock } from "../base/clock.js";
import type { Wait } from "./wait.js";

/** Milliseconds. A turn is short: one member may be held for hours, and the other members must stay usable meanwhile. */
const TURN = 250;

/** One call, while it waits. */
export interface Contestant {
  /** The keys of the members that the call wants. */
  readonly keys: ReadonlySet<string>;
  /** When the call began, in monotonic milliseconds. */
  readonly since: number;
  readonly wait: Wait;
  readonly clock: Clock;
}

export class Arbiter {
  /** Calls that have lost a round since their last turn, if they had one. */
  readonly #losers = new Set<Contestant>();
  /** Calls that do not begin a round now. */
  readonly #heldUp = new Set<Contestant>();
  /** The call that has its turn. */
  #first: Contestant | undefined;
  #endTurn: (() => void) | undefined;

  /** The call has lost a round: it may have a turn. */
  lost(contestant: Contestant): void {
    if (contestant !== this.#first) this.#losers.add(contestant);
    if (!this.#first) this.#next();
  }

  /** The call is over. */
  gone(contestant: Contestant): void {
    this.#losers.delete(contestant);
    if (contestant === this.#first) this.#next();
  }

  /** Whether it is the turn of another call that wants one of the same members. */
  holdsUp(contestant: Contestant): boolean {
    const first = this.#first;
    if (!first || first === contestant) return false;
    for (const key of contestant.keys) if (first.keys.has(key)) return true;
    return false;
  }

  /** Sleeps until the turn passes on, at most `ms` milliseconds. */
  async awaitTurn(contestant: Contestant, ms: number): Promise<void> {
    this.#heldUp.add(contestant);
    try {
      await contestant.wait.park(ms);
    } finally {
      this.#heldUp.delete(contestant);
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
