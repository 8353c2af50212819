/**
 * Keeps the tickets of a process's waiters where the server keeps a queue too: the first waiter's tries refresh them all.
 */
import type { List } from "../base/list.js";
import type { Acquisition } from "./acquisition.js";

/** A ticket lasts as long as so many refreshes take: one less may go missing. */
export const REFRESHES = 6;

/** Milliseconds between two refreshes. */
export function refreshEvery(pollCap: number): number {
  return pollCap / 2;
}

export class Tickets {
  /** Milliseconds. */
  readonly #refreshEvery: number;
  #refreshedAt: number;

  constructor(refreshEvery: number, now: number) {
    this.#refreshEvery = refreshEvery;
    this.#refreshedAt = now;
  }

  /** The first waiter tries. Returns the tickets that its try refreshes. */
  refreshed(
    first: Acquisition<unknown>,
    waiters: List<Acquisition<unknown>>,
    now: number,
  ): readonly string[] {
    const silence = now - this.#refreshedAt;
    if (silence < this.#refreshEvery) return [];
    this.#refreshedAt = now;
    const others = waiters.all().filter((waiter) => waiter !== first);
    // The process stood still, and the tickets may have lapsed. A try that is granted does not tell who has lost its
    // ticket, so each waiter looks itself.
    if (silence >= (REFRESHES - 1) * this.#refreshEvery) for (const other of others) other.hint();
    return others.flatMap(({ ticket }) => ticket ?? []);
  }
}
