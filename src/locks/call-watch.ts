/** Watches a call that wants a hold, for two mistakes of its caller that look like a lock which is always busy. */
import type { Clock } from "../base/clock.js";
import { Place, warnOnce } from "../base/warnings.js";
import type { LockRequest } from "./acquisition-options.js";
import { Taking, watchForDrop } from "./dropped.js";
import type { Hold } from "./hold.js";
import { partsOfHold } from "./hold.js";
import type { HoldRecord } from "./hold-record.js";
import { type Mark, markBareCall, ownHold } from "./own-holds.js";

/** Milliseconds after which a call that waits for a bare hold of its own async tree is warned of. */
const PATIENCE = 10_000;

/** The function that the user called. */
export type Called = (...args: never[]) => unknown;

/** Of one call; to be made before its first `await`. */
export class CallWatch {
  readonly #own: HoldRecord | undefined;
  readonly #called: Place | undefined;
  #mark: Mark | undefined;
  #taking: Taking | undefined;

  constructor(lockKey: string, { owner }: LockRequest, called: Called) {
    const own = ownHold(lockKey);
    // Its owner re-enters.
    if (!own || (owner !== undefined && own.owner === owner)) return;
    this.#own = own;
    this.#called = new Place(called);
  }

  /** The call is one of `lock()` or `tryLock()`. */
  bare(lockKey: string, { owner, lease }: LockRequest, called: Called): this {
    this.#mark = markBareCall(lockKey);
    // What an owner took it can give back without the Hold, and a lease ends by itself.
    if (owner === undefined && lease === undefined) this.#taking = new Taking(called);
    return this;
  }

  /** Warns if the work is still under way when it has been waited for too long. */
  during<T>(work: Promise<T>, clock: Clock): Promise<T> {
    const own = this.#own;
    if (!own) return work;
    const cancel = clock.after(PATIENCE, () => {
      if (!own.isHeld) return;
      warnOnce(
        this.#called as Place,
        "HOLDFAST_OWN_HOLD",
        `lock "${own.lockName}": a call has waited ${PATIENCE / 1_000} s for a bare hold of its own async tree, which may ` +
          "be waiting for itself. Bare calls do not re-enter: use run() or client.scope(), or name { owner: hold }.",
      );
    });
    return work.finally(cancel);
  }

  /** The call was granted this. */
  granted(hold: Hold): void {
    const parts = partsOfHold(hold);
    if (this.#mark) this.#mark.held = new WeakRef(parts.record);
    if (!this.#taking) return;
    this.#taking.hold = parts;
    watchForDrop(hold, this.#taking);
  }
}
