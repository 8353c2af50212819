/** What the requests before another one mean for it. */
import type { WebLockRequest } from "./request.js";

/** The requests that go before another request. */
export class Before {
  /** One of these requests waits. */
  waits: boolean = false;
  /** All of them are exclusive and wait: an exclusive request can wait behind them. */
  #canQueue = true;
  #hasExclusive = false;
  /** One of them will surely have the lock or wait for it; of a request with `ifAvailable` that is not known yet. */
  #hasCertain = false;
  #hasCertainExclusive = false;
  #isEmpty = true;

  /** Whether the request behind these may ask Redis now. */
  admits({ mode, isPlain }: WebLockRequest): boolean {
    if (mode === "shared") return !this.#hasExclusive;
    return this.#isEmpty || (isPlain && this.#canQueue);
  }

  /** Whether the request behind these cannot be granted at once, whatever Redis says. */
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
