/** Whose turn it is among the runs of one lock by one owner. */
import { encloses, type Frame } from "../owners/context.js";

/** How a run shares its turn: sibling reads do, everything else does not. */
export type Sharing = "shared" | "exclusive";

export class Turns {
  readonly #active = new Map<Frame, Sharing>();

  get idle(): boolean {
    return this.#active.size === 0;
  }

  /** True if every active run encloses this one, or shares the turn with it. */
  admit(frame: Frame, sharing: Sharing): boolean {
    for (const [other, theirs] of this.#active) {
      const share = sharing === "shared" && theirs === "shared";
      if (!share && !encloses(other, frame.parent)) return false;
    }
    return true;
  }

  begin(frame: Frame, sharing: Sharing): void {
    this.#active.set(frame, sharing);
  }

  /** True if the run was active. */
  end(frame: Frame): boolean {
    return this.#active.delete(frame);
  }
}
