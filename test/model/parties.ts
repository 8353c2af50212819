/** The terms of the model: owners, their holds, and the calls that want a hold. */
import type { Side } from "./rules.js";

/** An action that no lock may do. */
export class Violation extends Error {}

/** `n` is undefined for the owner of a bare call. */
export interface Owner {
  readonly client: number;
  readonly n: number | undefined;
  /** By side, the holds of `lock()` and `tryLock()` that were not given back; the innermost is last. */
  readonly stacks: Record<Side, Hold[]>;
}

export function newOwner(client: number, n?: number): Owner {
  return { client, n, stacks: { only: [], read: [], write: [] } };
}

export interface Hold {
  readonly owner: Owner;
  readonly side: Side;
  readonly renewed: boolean;
  /** The local deadline, and the end of the lease on the server. */
  ends: number;
  lapses: number;
  renewedAt: number;
  state: "held" | "ended" | "lost";
  /** Set when the server no longer has the hold, which its holder need not know yet: the possible reasons. */
  gone: readonly string[] | undefined;
  /** How many commands, sent or to be sent, have an answer by which the holder must know. */
  notices: number;
  /** The outcome of `hold.unlock()` from now on; undefined while it depends on the state. */
  answer: string | undefined;
}

/** A call that wants a hold. */
export interface Ask {
  readonly owner: Owner;
  readonly side: Side;
  /** Milliseconds; 0 for a single try. */
  readonly wait: number;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly lease: number | undefined;
}

export interface Call extends Ask {
  readonly client: number;
  readonly begun: number;
  /** The number of the call. */
  readonly called: number;
  /** The order of the calls. */
  readonly order: number;
  /** The place is between `order` and this: later if the call had to wait for earlier commands of its owner. */
  latest: number;
  /** Whether its owner holds the lock, or did so when the call was made. */
  nested: boolean;
  /** Whether its owner held only the side with which it cannot have the other one. */
  readonly refused: boolean;
  aborted: boolean;
  pending: boolean;
  /** Whether it was refused before. */
  waits: boolean;
  /** Whether it joined the queue only when earlier commands of its owner were answered. */
  displaced: boolean;
  /** Gone holds that its owner will learn of by the call's command, which still waits for the answer to another one. */
  unsent: readonly Hold[];
  /**
   * Whether the call has no place in the order: its client was silent so long that others may have taken it for dead, or
   * it was nested in a hold that was lost.
   */
  forfeited: boolean;
}
