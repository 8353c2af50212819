/** How what a grant leaves over is shared out among those who stand in line behind it. */
import type { List } from "../base/list.js";
import type { Waiter } from "./waiter.js";

export class Shares {
  readonly #waiters: List<Waiter>;
  /** How much those who are fed and have not tried yet want; they stand one behind the other. */
  #fed = 0;
  #lastFed: Waiter | undefined;

  constructor(waiters: List<Waiter>) {
    this.#waiters = waiters;
  }

  /**
   * Those next in line try at once, as far as it goes round: none is passed by a later one that wants less. What was left
   * over at a grant includes what is on its way to those who are fed, for they come after it.
   */
  feed(granted: Waiter, amount: number): void {
    let left = amount - this.#fed;
    const start = this.#lastFed ? this.#lastFed.next : this.#firstBut(granted);
    for (let next = start; next; next = next.next) {
      left -= next.contender.share;
      if (left < 0) return;
      this.#fed += next.contender.share;
      this.#lastFed = next;
      next.fed = true;
      next.hint();
    }
  }

  #firstBut(waiter: Waiter): Waiter | undefined {
    const { first } = this.#waiters;
    return first === waiter ? first.next : first;
  }

  /** It has tried, or has gone. */
  unfeed(waiter: Waiter): void {
    if (!waiter.fed) return;
    waiter.fed = false;
    this.#fed -= waiter.contender.share;
    if (this.#lastFed === waiter) this.#lastFed = waiter.prev?.fed ? waiter.prev : undefined;
  }
}
