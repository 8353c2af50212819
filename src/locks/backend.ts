/**
 * The seam for a kind of lock: how each step looks on the wire. A backend decides nothing about waiting, owners or
 * time; it names keys and scripts and reads their replies. A new kind is one backend and its Lua files.
 */
import type { LockEvent, LockKind } from "../base/events.js";
import type { CoWaiters, QueueTraits, Successor } from "../engine/acquisition.js";
import type { Renewer } from "../watchdog/watchdog.js";

/** The server's word on a command for an owner's hold. */
export const DONE = 1;
export const TAKEN = -1;
/** The call came too late or out of order: its tombstone stands, or the count has moved on. */
export const OVER = 2;
/** The owner's holds on this side are gone, but the owner still has a hold on the other side. */
export const SIDE_GONE = 3;

/**
 * Milliseconds for which a command may be sent again after its first execution (Redisson: 16 to 20 s). A tombstone
 * expires by itself, because deleting it would need a second command.
 */
export const TOMBSTONE_TTL = 20_000;

/** One try for an outermost hold. */
export interface Try {
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /** Milliseconds after which the try is given up, with its outcome unknown. */
  readonly within: number;
  readonly coWaiters: CoWaiters;
  /** Redis may have granted an earlier try of the same wire id, and the answer was lost. */
  readonly again: boolean;
}

/** The outcome of an outermost acquire. `mustRetry`: co-waiters that have to try themselves. */
export type Acquired =
  | { readonly granted: true; readonly token?: bigint | undefined; readonly mustRetry?: readonly string[] }
  /** `ttl`: ms until the holder's lease ends; -1 if it has no end. `others`: how many other processes go first. */
  | {
      readonly granted: false;
      readonly ttl: number;
      readonly mustRetry?: readonly string[];
      readonly others?: number;
    };

/** The holds of an owner that a command leaves. */
export interface Rest {
  /** Milliseconds left to each hold on the command's side, in the order of their grants. */
  readonly terms: readonly number[];
  /** Milliseconds left to the longest hold, on either side; 0 if no hold has time left. */
  readonly left: number;
}

export const NOTHING_LEFT: Rest = { terms: [], left: 0 };

/** How a hold is given back. */
export interface Giving {
  /** The holds that stay; called anew at each try. */
  rest(): Rest;
  /** Called when a try got no answer. */
  onSilence(): void;
  /** The waiter to which the same command grants the lock; only if no hold is left. */
  readonly successor?: Successor | undefined;
}

/** A read-write lock has two sides, all other locks have one. Holds on both sides share the owner's wire id. */
export type Side = "only" | "read" | "write";

export interface Backend {
  readonly kind: LockKind;
  /** The lock's name as users know it. */
  readonly lockName: string;
  /** The lock's key. */
  readonly key: string;
  /** Where releases are announced to waiters. */
  readonly channel: string;
  /** Calls that want the same side of the same lock wait in one queue: that of this name. */
  readonly queueName: string;
  readonly renewer: Renewer;
  /** Which side of the lock it is: holds on one side are counted together. */
  readonly side: Side;
  /** How its waiters queue and are woken. */
  readonly traits: QueueTraits;
  /** The field of an owner in the lock's hash. */
  field(wireId: string): string;
  /** The keys, beside the lock's key, that `count` holds of this wire id consist of. */
  extraKeys(wireId: string, count: number): readonly string[];
  /** Where the waiter of this wire id is woken. */
  wakesOn(wireId: string): string;
  acquire(attempt: Try): Promise<Acquired>;
  /** Adds the `count`-th hold. `callId` names this call alone. */
  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number>;
  /**
   * Gives a hold back; the command is sent until it is answered. `callId` names this call alone, where holds are left.
   * @throws CLIENT_CLOSED if the client is closed before
   */
  release(wireId: string, callId: string | undefined, giving: Giving): Promise<number>;
  /** Like {@link release}, for a call whose outcome is unknown. `callId`: of a nested call. */
  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown>;
  /** Sets the owner's holds to these terms. */
  extend(wireId: string, callId: string, holds: Rest): Promise<number>;
  /** `callId` names this call alone. */
  force(callId: string): Promise<boolean>;
  state(wireId: string): Promise<LockState>;
}

export interface LockState {
  readonly held: boolean;
  /** Holds of the owner that was asked for. */
  readonly count: number;
  /** Milliseconds; -2 when free. */
  readonly ttl: number;
}

/** What every event about a hold says of its lock. */
export function eventOf(backend: Backend): LockEvent {
  return { lockName: backend.lockName, kind: backend.kind };
}
