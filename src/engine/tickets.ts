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
    if (now - this.#refreshedAt < this.#refreshEvery) return [];
    this.#refreshedAt = now;
    const others = waiters.all().filter((waiter) => waiter !== first);
    return others.flatMap(({ ticket }) => ticket ?? []);
  }
}
