/** Promises the permits that a grant left over to the next waiters: these try at once, as far as the permits suffice. */
import type { List } from "../base/list.js";
import type { Acquisition } from "./acquisition.js";

export class PromisedPermits {
  readonly #waiters: List<Acquisition<unknown>>;
  /** Permits that are promised to waiters that have not tried yet. */
  #promised = 0;
  /** The last waiter with a promise, if it is known: the waiters behind it have none. */
  #last: Acquisition<unknown> | undefined;

  constructor(waiters: List<Acquisition<unknown>>) {
    this.#waiters = waiters;
  }

  /**
   * `remaining` permits were free after the call `granted` got its own. Subtracts the permits already promised to waiters
   * that were woken, and wakes the next waiters. A later waiter that wants less never passes an earlier one.
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
