/** The hold that users get, and their way to give it back. */
import { checkLease } from "../base/arguments.js";
import { tellCaller } from "../base/errors.js";
import { standFor } from "../owner/owner.js";
import type { Grant } from "./grant.js";
import type { HoldRecord } from "./hold-record.js";

/** The record of which a `Hold` is a view. */
export let recordOf: (hold: Hold) => HoldRecord;

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

  static {
    recordOf = (hold) => hold.#record;
    standFor(
      Hold.prototype,
      (hold) => hold.#record.owner,
      (hold) => hold.#record.frame,
    );
  }

  /** Holds are made by locks. @internal */
  constructor(record: HoldRecord) {
    this.#record = record;
  }

  /** The name of the lock, without the prefix. */
  get lockName(): string {
    return this.#record.grant.lockName;
  }

  /** `clientId:n`, as it stands in Redis; the same for all nested holds of one owner. */
  get ownerId(): string {
    return this.#record.grant.wireId;
  }

  /** Epoch milliseconds at which the grant arrived. */
  get acquiredAt(): number {
    return this.#record.acquiredAt;
  }

  /**
   * Aborts with LockLostError when the owner's holds on this lock are lost; one signal for all of them. Never by an unlock. It
   * cannot fire while the event loop stands.
   */
  get signal(): AbortSignal {
    return this.#record.signal;
  }

  /** Checks the clock: false from the local deadline on, even before the signal could fire, and from `unlock()` on. */
  get isHeld(): boolean {
    return this.#record.isHeld;
  }

  /**
   * Milliseconds to the local deadline of the owner's holds on this lock: counted from when the command was sent, less the
   * drift. 0 when over.
   */
  get remaining(): number {
    return this.#record.isHeld ? this.#record.grant.remaining : 0;
  }

  /**
   * To be called right before a write that only the holder may do.
   * @throws LockLostError unless {@link isHeld}
   */
  assertHeld(): void {
    this.#record.assertHeld();
  }

  /**
   * Sets the deadline of the owner's holds on this lock to now + `lease` milliseconds. Redis is told of a later one only: at
   * an earlier one the holds end here, and the lock is given back. While the watchdog renews one of them, the deadline
   * never falls below `watchdogTimeout`.
   * @throws LOCK_LOST if it is lost, NOT_OWNER if it was given back, UNAVAILABLE without an answer
   */
  async extend(lease: number): Promise<void> {
    const term = checkLease(lease);
    if (term === undefined) throw new TypeError("lease must be a number");
    this.#record.assertUsable();
    await this.#record.grant.extend(term).catch(tellCaller);
  }

  /**
   * Gives this hold back. A second call shares the first one's outcome, and so does one after `lock.unlock()`.
   * @throws LOCK_LOST if it was lost before
   * @throws UNAVAILABLE without an answer; the release goes on in the background, and a further call asks again
   */
  unlock(): Promise<void> {
    return this.#record.release();
  }

  /** As {@link unlock}, with its errors. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock();
  }
}

/**
 * A hold on a fenced lock.
 * @example
 * const hold = await client.getFencedLock("invoice").lock();
 * await sell("42", { newerThan: hold.token });
 * await hold.unlock();
 */
export class FencedHold extends Hold {
  /**
   * Rises strictly with each outermost grant of this lock, also over expiry, force-unlock and restarts. A nested hold
   * has the token of the outermost one. A resource can remember the highest token it has seen, and refuse lower ones.
   * Then it is safe from a holder that writes after its lease (fencing, as described by Kleppmann 2016).
   */
  readonly token: bigint;

  /** Holds are made by locks. @internal */
  constructor(record: HoldRecord, token: bigint) {
    super(record);
    this.token = token;
  }
}

/** What the user gets for a hold: one object, as long as somebody keeps it. */
export function viewOf(record: HoldRecord<Grant>): Hold {
  const { token } = record.grant;
  const known = record.view instanceof WeakRef ? record.view.deref() : record.view;
  record.view = known ?? (token === undefined ? new Hold(record) : new FencedHold(record, token));
  return record.view as Hold;
}
