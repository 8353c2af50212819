/** One call for a member of a group: a part of the group's call. */
import { LockAcquisition } from "../locks/acquire.js";
import type { LockAcquisitionOptions } from "../locks/acquisition-options.js";
import { dropExpired } from "../locks/loss.js";

export interface MemberAcquisitionOptions extends LockAcquisitionOptions {
  /** Told once if it has to wait. */
  readonly onWaiting?: (() => void) | undefined;
}

export class MemberAcquisition extends LockAcquisition {
  /** The call that it is a part of, where that one does the waiting. */
  #whole: { resume(): void } | undefined;
  readonly #onWaiting: (() => void) | undefined;

  constructor(options: MemberAcquisitionOptions) {
    super(options);
    this.#onWaiting = options.onWaiting;
  }

  /** Under which the member is held, or will be: also a hold on its way back is re-entered. */
  get ownerId(): string {
    dropExpired(this.own);
    return this.own.firstHold?.wireId ?? this.wireId ?? "";
  }

  /** The call that does the waiting begins. */
  enter(whole: { resume(): void }): void {
    this.#whole = whole;
    this.begun();
  }

  /** The call that does the waiting is over. */
  leave(taken: boolean): void {
    if (this.over) return;
    this.over = true;
    this.ended(taken);
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
