/** One call for one member of a group: a part of the call for the group. */

import { quietly } from "../base/work.js";
import type { Acquisition, Attempt, CoWaiters } from "../engine/acquisition.js";
import { LockAcquisition } from "../locks/acquire.js";
import type { LockAcquisitionOptions } from "../locks/acquisition-options.js";
import { inOrder } from "../locks/commands.js";
import { dropExpired, holds } from "../locks/loss.js";
import type { Grant } from "../locks/owner-lock.js";

export interface MemberAcquisitionOptions extends LockAcquisitionOptions {
  /** Called once, if this call has to wait. */
  readonly onWaiting?: (() => void) | undefined;
}

export class MemberAcquisition extends LockAcquisition {
  /** The call for the group, where that call does the waiting (RedLock). */
  #whole: Acquisition<unknown> | undefined;
  readonly #onWaiting: (() => void) | undefined;
  /** The owner's hold whose release was under way when the last try began: the try goes behind that release. */
  #outgoing: Grant | undefined;

  constructor(options: MemberAcquisitionOptions) {
    super(options);
    this.#onWaiting = options.onWaiting;
  }

  /**
   * The owner id of the member's grant, or of the grant that its open try will get; undefined while that is not known. The
   * try re-enters a hold whose release was called after the try.
   */
  get ownerId(): string | undefined {
    if (this.grant) return this.grant.wireId;
    dropExpired(this.own);
    const { firstHold } = this.own;
    if (firstHold && firstHold !== this.#outgoing) return firstHold.wireId;
    return this.inFlight ? this.wireId : undefined;
  }

  /** The call for the group has begun, and does the waiting. */
  enter(whole: Acquisition<unknown>): void {
    this.#whole = whole;
    this.own.table.env.engine.parts.add(this);
    this.begun();
  }

  /** The call for the group needs this one no more; with `taken` false its grant is undone. */
  leave(taken: boolean): void {
    if (this.over) return;
    this.over = true;
    this.own.table.env.engine.parts.remove(this);
    this.ended(taken);
  }

  /** Its record's later commands go behind its open try; for an owner's record they do so anyhow. */
  orderTry(): void {
    const { own, inFlight, lastTry } = this;
    if (!own.owner && inFlight && lastTry) void quietly(inOrder(own, () => lastTry));
  }

  /** The call that does the waiting: the group's, or this one. */
  get waiter(): Acquisition<unknown> {
    return this.#whole ?? this;
  }

  override attempt(within: number, coWaiters: CoWaiters): Promise<Attempt<Grant>> {
    this.#outgoing = holds(this.own) ? undefined : this.own.firstHold;
    return super.attempt(within, coWaiters);
  }

  override resume(): void {
    if (this.#whole) this.#whole.resume();
    else super.resume();
  }

  override waiting(): void {
    super.waiting();
    this.#onWaiting?.();
  }
}
