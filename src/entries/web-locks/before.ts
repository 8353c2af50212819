/** What the requests that go before one mean for it. */
import type { WebLockRequest } from "./request.js";

/** Those that go before a request. */
export class Before {
  /** One of them waits. */
  waits: boolean = false;
  /** All are exclusive and wait: the next one can wait behind them. */
  #canQueue = true;
  #hasExclusive = false;
  /** Will have the lock, or wait for it: how it is with those of `ifAvailable` is not known yet. */
  #hasCertain = false;
  #hasCertainExclusive = false;
  #isEmpty = true;

  /** Whether it may ask now. */
  admits({ mode, isPlain }: WebLockRequest): boolean {
    if (mode === "shared") return !this.#hasExclusive;
    return this.#isEmpty || (isPlain && this.#canQueue);
  }

  /** Whether it cannot be granted at once, whatever Redis says. */
  excludes({ mode }: WebLockRequest): boolean {
    return mode === "shared" ? this.#hasCertainExclusive : this.#hasCertain;
  }

  add({ mode, phase, isPlain, ifAvailable }: WebLockRequest): void {
    const isExclusive = mode === "exclusive";
    this.#isEmpty = false;
    this.waits ||= phase === "waiting";
    this.#canQueue &&= isExclusive && isPlain && phase === "waiting";
    this.#hasExclusive ||= isExclusive;
    this.#hasCertain ||= !ifAvailable;
    this.#hasCertainExclusive ||= isExclusive && !ifAvailable;
  }
}
