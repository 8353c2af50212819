/** Who and what the model speaks of: owners, their holds, and the calls that want one. */
import type { Side } from "./rules.js";

/** What no lock may do. */
export class Violation extends Error {}

/** `n` is undefined for the owner of a bare call. */
export interface Owner {
  readonly client: number;
  readonly n: number | undefined;
  /** Taken by `lock()` or `tryLock()` and not given back, by side; the innermost is last. */
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
  /** Taken away on the server, and the reasons that may be given for it; the holder need not know yet. */
  gone: readonly string[] | undefined;
  /** How many commands were sent, or are to be, by whose answers the holder has to know. */
  notices: number;
  /** What `hold.unlock()` comes to from now on; undefined while that depends on the state. */
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
  /** Which call it is. */
  readonly called: number;
  /** As they were called. */
  readonly order: number;
  /** Its place is anywhere between `order` and this: later if it had to wait for its owner's commands before it. */
  latest: number;
  /** Its owner holds the lock, or did when it was called. */
  nested: boolean;
  /** Its owner held only what it cannot have besides. */
  readonly refused: boolean;
  aborted: boolean;
  pending: boolean;
  /** It was refused before. */
  waits: boolean;
  /** It stood in line only when its owner's commands before it were answered. */
  displaced: boolean;
  /** The gone holds that its owner is to learn of by its command, which waits for the answer to another one. */
  unsent: readonly Hold[];
  /**
   * It has no place in the order: its client was silent for so long that others may have taken it for dead, or it was
   * nested in a hold that was lost.
   */
  forfeited: boolean;
}
