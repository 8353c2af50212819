/** The turns of one owner's runs on one lock: two overlap only if one was called inside the other, or both read. */
import { encloses, type Frame } from "./context.js";
import type { OwnCall } from "./record.js";

export class Turns {
  /** The runs that have the turn, and whether each shares it. */
  readonly #active = new Map<Frame, boolean>();

  get isIdle(): boolean {
    return this.#active.size === 0;
  }

  /**
   * True if every active run encloses this one, is this one (on the other side of the lock), or shares the turn with it. A call
   * that is no run is always admitted.
   */
  admits({ frame, wanted: { traits } }: OwnCall): boolean {
    if (!frame) return true;
    for (const [other, otherIsShared] of this.#active) {
      if (!(traits.shared && otherIsShared) && !encloses(other, frame)) return false;
    }
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
}
