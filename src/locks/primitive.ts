/**
 * The seam for a kind of lock: how each step looks on the wire. A primitive decides nothing about waiting, owners or
 * time; it names keys and scripts and reads their replies. A new kind is one primitive and its Lua files.
 */
import type { LockKind } from "../base/events.js";
import type { Renewer } from "../watchdog/watchdog.js";
import type { Sharing } from "./turns.js";

/** The server's word on a command for an owner's hold. */
export const DONE = 1;
export const GONE = 0;
export const TAKEN = -1;
/** The call came too late or out of order: its tombstone stands, or the count has moved on. */
export const OVER = 2;

/**
 * How long a command may be sent again after its first execution (Redisson: 16 to 20 s). A tombstone is not deleted,
 * which would be a second command, but lapses.
 */
export const TOMBSTONE_TTL = 20_000;

/** What an outermost acquire came to. */
export type Acquired =
  | { readonly granted: true; readonly token?: bigint | undefined }
  /** `ttl`: ms until the holder's lease ends; -1 if it has no end. */
  | { readonly granted: false; readonly ttl: number };

/** The other holds of an owner, as a release leaves them. */
export interface Rest {
  readonly count: number;
  /** Milliseconds that the longest of them has to go. */
  readonly left: number;
}

/** A read-write lock has two, all others one. */
export type Side = "only" | "read" | "write";

export interface Primitive {
  readonly kind: LockKind;
  /** The lock's name as users know it. */
  readonly lockName: string;
  /** The lock's key. */
  readonly key: string;
  /** Where releases are announced to waiters. */
  readonly channel: string;
  readonly renewer: Renewer;
  /** Which side of the lock it is: holds on one side are counted together. */
  readonly side: Side;
  /** How its runs share a turn with their siblings. */
  readonly sharing: Sharing;
  /** The field of an owner in the lock's hash. */
  field(wireId: string): string;
  acquire(wireId: string, lease: number, within: number): Promise<Acquired>;
  /** Adds the `count`-th hold. `callId` names this call alone. */
  reenter(wireId: string, callId: string, count: number, lease: number, within: number): Promise<number>;
  /**
   * Until answered. `rest` is asked for anew at each try; `onSilence` is told when one got no answer.
   * @throws CLIENT_CLOSED if the client is closed before
   */
  release(wireId: string, callId: string, rest: () => Rest, onSilence: () => void): Promise<number>;
  /** As release, for a call whose outcome is unknown; `callId` for a nested one. */
  undo(wireId: string, callId: string | undefined, rest: () => Rest): Promise<unknown>;
  extend(wireId: string, callId: string, lease: number): Promise<number>;
  force(): Promise<boolean>;
  state(wireId: string): Promise<LockState>;
}

export interface LockState {
  readonly held: boolean;
  /** Of the owner that was asked for. */
  readonly count: number;
  /** Milliseconds; -2 when free. */
  readonly ttl: number;
}
