/** Whose turn it is among the runs of one lock by one owner. */
import { encloses, type Frame } from "../owners/context.js";

/** How a run shares its turn: sibling reads do, everything else does not. */
export type AccessMode = "shared" | "exclusive";

/** A call that may have to wait for the runs of its owner. */
export interface TurnTaker {
  /** Calls with one queue name get the lock in order, so one of them at a time is enough to be resumed. */
  readonly queueName: string;
  /** A part of a group's call takes its turn with the other parts, so it is always resumed. */
  readonly isMember: boolean;
  /** It waits for its turn; kept by {@link Turns}. */
  awaitsTurn?: boolean;
  /** False while it is another's turn. @throws if its turn can never come */
  hasTurn(): boolean;
  /** It is to look again. */
  resume(): void;
}

export class Turns {
  readonly #active = new Map<Frame, AccessMode>();
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<TurnTaker>();
  /** Was resumed, and has neither got the lock nor given up. */
  #next: TurnTaker | undefined;

  get idle(): boolean {
    return this.#active.size === 0 && this.#waiting.size === 0 && !this.#next;
  }

  /** True if every active run encloses this one, or shares the turn with it; and for what is no run. */
  admits(frame: Frame | undefined, accessMode: AccessMode): boolean {
    if (!frame) return true;
    for (const [other, theirs] of this.#active) {
      const share = accessMode === "shared" && theirs === "shared";
      if (!share && !encloses(other, frame.parent)) return false;
    }
    return true;
  }

  begin(frame: Frame, accessMode: AccessMode): void {
    this.#active.set(frame, accessMode);
  }

  /** True if the run was active. */
  end(frame: Frame): boolean {
    return this.#active.delete(frame);
  }

  /** It is another's turn. */
  await(call: TurnTaker): void {
    this.settle(call);
    call.awaitsTurn = true;
    this.#waiting.add(call);
  }

  /** The call has got the lock, has given up, or begins to wait anew. */
  settle(call: TurnTaker): void {
    if (this.#next === call) this.#next = undefined;
    if (!call.awaitsTurn) return;
    call.awaitsTurn = false;
    this.#waiting.delete(call);
  }

  /** Resumes the calls whose turn it is: of those that get the lock one after the other, the first. */
  resume(): void {
    for (const call of this.#waiting) {
      const isBehind = !call.isMember && this.#next?.queueName === call.queueName;
      if (isBehind || !hasTurn(call)) continue;
      this.settle(call);
      if (!call.isMember) this.#next = call;
      call.resume();
    }
  }
}

function hasTurn(call: TurnTaker): boolean {
  try {
    return call.hasTurn();
  } catch {
    // It will find out itself.
    return true;
  }
}
