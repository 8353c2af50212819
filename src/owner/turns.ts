/** The turns of one owner's runs on one lock: two overlap only if one was called inside the other, or both read. */
import { encloses, type Frame } from "./context.js";
import type { OwnCall } from "./record.js";

type Asking = Pick<OwnCall, "frame" | "wanted">;

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
  admits({ frame, wanted: { traits } }: Asking): boolean {
    if (!frame) return true;
    for (const [other, otherIsShared] of this.#active) {
      if (!(traits.shared && otherIsShared) && !encloses(other, frame)) return false;
    }
    return true;
  }

  /** Whether a call that stands aside may look again; of calls that get the lock in order, one at a time. */
  offers(call: OwnCall): boolean {
    const { frame, wanted } = call;
    if (!this.admits(call)) return false;
    if (!frame || wanted.traits.shared) return true;
    if (this.#next && this.#next !== call && this.#next.wanted.siteName === wanted.siteName) return false;
    this.#next = call;
    return true;
  }

  /** The run has the lock. */
  begin({ frame, wanted: { traits } }: Asking): void {
    if (frame) this.#active.set(frame, traits.shared === true && this.#active.get(frame) !== false);
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
