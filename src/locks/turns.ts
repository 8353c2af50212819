/** The turns of one owner's runs on one lock. It knows neither holds nor commands. */
import { encloses, type Frame } from "../owners/context.js";

/** A call that may have to wait for the runs of its owner. */
export interface TurnTaker {
  /** Calls with one queue name get the lock in order, so it is enough to resume one of them at a time. */
  readonly queueName: string;
  /** The call is a part of a group's call: it takes its turn together with the other parts, so it is always resumed. */
  readonly isMember: boolean;
  /** The call waits for its turn; kept by {@link Turns}. */
  awaitsTurn?: boolean;
  /** False while another run has the turn. @throws if the turn of this call can never come */
  hasTurn(): boolean;
  /** Makes the call check its turn again. */
  resume(): void;
}

export class Turns {
  /** The runs that have the turn, and whether each shares it: sibling reads do, all other runs do not. */
  readonly #active = new Map<Frame, boolean>();
  /** How many calls wait for their turn. */
  #waiting = 0;
  /** The call that was resumed, and has neither got the lock nor given up. */
  #next: TurnTaker | undefined;

  get idle(): boolean {
    return this.#active.size === 0 && this.#waiting === 0 && !this.#next;
  }

  /** True if every active run encloses this one, or shares the turn with it. A call that is no run is always admitted. */
  admits(frame: Frame | undefined, shared: boolean): boolean {
    if (!frame) return true;
    for (const [other, isShared] of this.#active) {
      if (!(shared && isShared) && !encloses(other, frame.parent)) return false;
    }
    return true;
  }

  begin(frame: Frame, shared: boolean): void {
    this.#active.set(frame, shared);
  }

  /** True if the run was active. */
  end(frame: Frame): boolean {
    return this.#active.delete(frame);
  }

  /** Another run has the turn: the call waits. */
  await(call: TurnTaker): void {
    this.settle(call);
    call.awaitsTurn = true;
    this.#waiting++;
  }

  /** The call has got the lock, has given up, or begins to wait anew. */
  settle(call: TurnTaker): void {
    if (this.#next === call) this.#next = undefined;
    if (!call.awaitsTurn) return;
    call.awaitsTurn = false;
    this.#waiting--;
  }

  /** Resumes a waiting call if it has its turn. Of calls with one queue name only the first that is offered is resumed. */
  offer(call: TurnTaker): void {
    const isBehind = !call.isMember && this.#next?.queueName === call.queueName;
    if (isBehind || !hasTurn(call)) return;
    this.settle(call);
    if (!call.isMember) this.#next = call;
    call.resume();
  }
}

function hasTurn(call: TurnTaker): boolean {
  try {
    return call.hasTurn();
  } catch {
    // The call itself meets this error when it tries.
    return true;
  }
}
