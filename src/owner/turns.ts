/** The turns of one owner's runs on one lock: two overlap only if one was called inside the other, or both read. */
import { encloses, type Frame } from "./context.js";
import type { OwnCall } from "./record.js";

export class Turns {
  /** The runs that have the turn, and whether each shares it. */
  readonly #active = new Map<Frame, boolean>();
  /** The call that was offered the turn, and has neither got the lock nor given up. */
  #next: OwnCall | undefined;

  get isIdle(): boolean {
    return this.#active.size === 0 && !this.#next;
  }

  /**
   * True if every active run encloses this one, is this one (on the other side of the lock), or shares the turn with it. A call
   * that is no run is always admitted.
   */
  admits(frame: Frame | undefined, isShared: boolean): boolean {
    if (!frame) return true;
    for (const [other, otherIsShared] of this.#active) {
      if (!(isShared && otherIsShared) && !encloses(other, frame)) return false;
    }
    return true;
  }

  /** Whether a call that stands aside may look again; of calls that get the lock in order, one at a time. */
  offers(call: OwnCall): boolean {
    if (!this.admits(call.frame, call.isShared)) return false;
    if (!call.frame || call.isShared) return true;
    if (this.#next && this.#next !== call && this.#next.siteName === call.siteName) return false;
    this.#next = call;
    return true;
  }

  /** The run has the lock. */
  begin(frame: Frame, isShared: boolean): void {
    this.#active.set(frame, isShared && this.#active.get(frame) !== false);
  }

  /** True if the run had the turn. */
  end(frame: Frame): boolean {
    return this.#active.delete(frame);
  }

  /** The call has got the lock, or is over. */
  settle(call: OwnCall): void {
    if (this.#next === call) this.#next = undefined;
  }
}
