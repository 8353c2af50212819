/** The hold that users get, and their way to give it back. */

import { checkLease } from "../base/arguments.js";
import { tellCaller } from "../base/caller.js";
import { LockNotOwnerError } from "../base/errors.js";
import { standFor } from "../owners/owner.js";
import { leaveAlone } from "./dropped.js";
import type { HoldParts, HoldRecord, HoldVerbs } from "./hold-record.js";

/** The record and the verbs of which a `Hold` is a view. */
export let partsOfHold: (hold: Hold) => HoldParts;

/**
 * One hold on a lock. Works from any async context. A lost hold stays lost: the signal, `isHeld`, `unlock` and `run`
 * agree on it from then on, even if Redis would have kept the key.
 * @example
 * await using hold = await client.getLock("report").lock({ lease: 60_000 });
 * hold.signal.addEventListener("abort", () => console.error("lost"));
 * if (hold.remaining < 10_000) await hold.extend(60_000);
 */
export class Hold {
  readonly #record: HoldRecord;
  readonly #verbs: HoldVerbs<HoldRecord>;

  static {
    partsOfHold = (hold) => ({ record: hold.#record, verbs: hold.#verbs });
    standFor(Hold.prototype, (hold) => {
      leaveAlone(hold.#record);
      return hold.#record.owner;
    });
  }

  /** Holds are made by locks. @internal */
  constructor(record: HoldRecord, verbs: HoldVerbs<never>) {
    this.#record = record;
    this.#verbs = verbs;
  }

  /** The name of the lock, without the prefix. */
  get lockName(): string {
    return this.#record.lockName;
  }

  /** `clientId:n`, as it stands in Redis; the same for all nested holds of one owner. */
  get ownerId(): string {
    return this.#record.ownerId;
  }

  /** Epoch milliseconds at which the grant arrived. */
  get acquiredAt(): number {
    return this.#record.acquiredAt;
  }

  /** Aborts with LockLostError when the hold is lost; never by an unlock. It cannot fire while the event loop stands. */
  get signal(): AbortSignal {
    // A user who listens to the signal may keep nothing else of the hold.
    leaveAlone(this.#record);
    return this.#record.signal;
  }

  /** Checks the clock: false from the local deadline on, even before the signal could fire, and from `unlock()` on. */
  get isHeld(): boolean {
    return this.#record.isHeld;
  }

  /** Milliseconds to the local deadline: counted from when the command was sent, less the drift. 0 when over. */
  get remaining(): number {
    return this.isHeld ? this.#record.remaining : 0;
  }

  /**
   * To be called right before a write that only the holder may do.
   * @throws LockLostError unless {@link isHeld}
   */
  assertHeld(): void {
    this.#verbs.check(this.#record);
    this.#record.assertHeld();
  }

  /**
   * Sets this hold's deadline to now + `lease` milliseconds, up or down. Never shortens another hold. A hold that the
   * watchdog renews never falls below `watchdogTimeout`.
   * @throws LOCK_LOST if it is lost, NOT_OWNER if it was given back, UNAVAILABLE without an answer
   */
  async extend(lease: number): Promise<void> {
    const term = checkLease(lease);
    if (term === undefined) throw new TypeError("lease must be a number");
    await this.#verbs.extend(this.#record, term).catch(tellCaller);
  }

  /**
   * Gives this hold back. A second call shares the first one's outcome.
   * @throws LOCK_LOST if it was lost before
   * @throws NOT_OWNER if `lock.unlock()` gave it back
   * @throws UNAVAILABLE without an answer; the release goes on in the background, and a further call asks again
   */
  unlock(): Promise<void> {
    if (!this.#record.takenBack) {
      const released = this.#verbs.release(this.#record).catch(tellCaller);
      // After the release has begun: by then a member of a group is not live, and does not speak for the group's hold.
      leaveAlone(this.#record);
      return released;
    }
    const message = `lock "${this.lockName}": this hold was given back by lock.unlock(); give each hold back once`;
    return Promise.reject(new LockNotOwnerError(this.lockName, message));
  }

  /** As {@link unlock}, with its errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock();
  }
}

/** The one object that an owner gets for a hold, however often it asks. From now on the user may keep that object instead. */
export function viewOf<R extends HoldRecord & { view?: object | undefined }, H extends Hold>(
  record: R,
  makeHold: (record: R) => H,
): H {
  leaveAlone(record);
  record.view ??= makeHold(record);
  return record.view as H;
}
