/**
 * The seam for a kind of lock: how each step looks on the wire. A backend decides nothing about waiting, owners or
 * time; it names keys and scripts and reads their replies. A new kind is one backend and its Lua files.
 */
import type { LockEvent, LockKind } from "../base/events.js";
import type { CoWaiters, QueueTraits, Successor } from "../engine/acquisition.js";
import type { Renewer } from "../watchdog/watchdog.js";
import type { AccessMode } from "./turns.js";

/** The server's word on a command for an owner's hold. */
export const DONE = 1;
export const TAKEN = -1;
/** The call came too late or out of order: its tombstone stands, or the count has moved on. */
export const OVER = 2;
/** The holds on this side are gone, those on the other are not. */
export const SIDE_GONE = 3;

/**
 * How long a command may be sent again after its first execution (Redisson: 16 to 20 s). A tombstone is not deleted,
 * which would be a second command, but lapses.
 */
export const TOMBSTONE_TTL = 20_000;

/** One try for an outermost hold. */
export interface Try {
  readonly wireId: string;
  /** Milliseconds. */
  readonly lease: number;
  /** Milliseconds after which it is given up, with its outcome unknown. */
  readonly within: number;
  readonly coWaiters: CoWaiters;
  /** Redis may have granted an earlier one of the same wire id, and nobody heard of it. */
  readonly again: boolean;
}

/** What an outermost acquire came to. */
export type Acquired =
  | { readonly granted: true; readonly token?: bigint | undefined }
  /**
   * `ttl`: ms until the holder's lease ends; -1 if it has no end. `mustRetry`: co-waiters that have to try themselves.
   * `others`: so many outside this process go first.
   */
  | {
      readonly granted: false;
      readonly ttl: number;
      readonly mustRetry?: readonly string[];
      readonly others?: number;
    };

/** Holds of an owner, as a command leaves them. */
export interface Rest {
  /** Milliseconds that each of them on the same side has to go, in the order of their grants. */
  readonly terms: readonly number[];
  /** Milliseconds that the longest of them on either side has to go; 0 if none lies ahead. */
  readonly left: number;
}

export const NOTHING_LEFT: Rest = { terms: [], left: 0 };

/** How a hold is given back. */
export interface Giving {
  /** The holds that stay; asked for anew at each try. */
  rest(): Rest;
  /** Told when a try got no answer. */
  onSilence(): void;
  /** Who is granted the lock by the same command; only with no hold left. */
  readonly successor?: Successor | undefined;
}

/** A read-write lock has two, all others one. Holds of both share the owner's wire id. */
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
  /** How its runs share a turn with their siblings. */
  readonly accessMode: AccessMode;
  /** How those who wait for it stand in line. */
  readonly traits: QueueTraits;
  /** The field of an owner in the lock's hash. */
  field(wireId: string): string;
  /** The keys beside the lock's that `count` holds of this wire id are made of. */
  extraKeys(wireId: string, count: number): readonly string[];
  /** Where the waiter of this wire id is woken. */
  wakesOn(wireId: string): string;
  acquire(attempt: Try): Promise<Acquired>;
  /** Adds the `count`-th hold. `callId` names this call alone. */
  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number>;
  /**
   * Until answered. `callId` names this call alone, where holds are left.
   * @throws CLIENT_CLOSED if the client is closed before
   */
  release(wireId: string, callId: string | undefined, giving: Giving): Promise<number>;
  /** As release, for a call whose outcome is unknown; `callId` for a nested one. */
  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown>;
  /** Sets the owner's holds to these terms. */
  extend(wireId: string, callId: string, holds: Rest): Promise<number>;
  /** `callId` names this call alone. */
  force(callId: string): Promise<boolean>;
  state(wireId: string): Promise<LockState>;
}

export interface LockState {
  readonly held: boolean;
  /** Of the owner that was asked for. */
  readonly count: number;
  /** Milliseconds; -2 when free. */
  readonly ttl: number;
}

/** What every event about a hold says of its lock. */
export function eventOf(backend: Backend): LockEvent {
  return { lockName: backend.lockName, kind: backend.kind };
}
