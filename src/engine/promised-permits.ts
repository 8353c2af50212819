/** Permits that a grant left over, promised to the waiters behind it: they try at once, as far as the permits go round. */
import type { List } from "../base/list.js";
import type { Acquisition } from "./acquisition.js";

export class PromisedPermits {
  readonly #waiters: List<Acquisition<unknown>>;
  /** Promised to waiters that have not tried yet. */
  #promised = 0;
  /** Of these the last one, if it is known: those behind it have no promise. */
  #last: Acquisition<unknown> | undefined;

  constructor(waiters: List<Acquisition<unknown>>) {
    this.#waiters = waiters;
  }

  /**
   * `remaining` permits were free after the grant of `granted`. Subtracts those that are promised to waiters that were
   * woken, and wakes the next ones in line. No waiter is passed by a later one that wants less.
   */
  promise(granted: Acquisition<unknown>, remaining: number): void {
    let left = remaining - this.#promised;
    for (let next = this.#last ? this.#last.next : this.#waiters.first; next; next = next.next) {
      if (next === granted || next.promised) continue;
      left -= next.permits;
      if (left < 0) return;
      this.#promised += next.permits;
      this.#last = next;
      next.promised = true;
      next.hint();
    }
  }

  /** The waiter has tried, or has gone. */
  settle(waiter: Acquisition<unknown>): void {
    if (!waiter.promised) return;
    waiter.promised = false;
    this.#promised -= waiter.permits;
    if (this.#last === waiter) this.#last = undefined;
  }
}
