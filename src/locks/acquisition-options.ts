/** The options of a lock's calls, and one call with all of them checked. */
import {
  checkLease,
  checkOptions,
  checkSignal,
  checkWait,
  NO_OPTIONS,
  type Options,
} from "../base/arguments.js";
import type { CallSite } from "../base/call-site.js";
import {
  actorOf,
  ambientOwner,
  currentFrame,
  type Frame,
  OwnerRecord,
  ownerInside,
} from "../owners/context.js";
import { checkOwner, type Owner } from "../owners/owner.js";
import type { Backend } from "./backend.js";
import type { WatchedCall } from "./bare-calls.js";
import type { Hold } from "./hold.js";
import type { OwnerLock } from "./owner-lock.js";

/** The owner of a call: an Owner, or a Hold for the owner of that hold, also after its unlock. */
export interface OwnerOptions {
  /** The owner of the call. Default the owner of the current scope or run, else a new one. */
  owner?: Owner | Hold | undefined;
}

/** Options of `tryLock`, whose wait and lease are arguments of their own. */
export interface TryLockOptions extends OwnerOptions {
  /** Ends the wait at once, with `signal.reason`. Does nothing once the lock is granted. */
  signal?: AbortSignal | undefined;
}

/** Options of `lock` and `run`. */
export interface LockOptions extends TryLockOptions {
  /** Milliseconds that the whole call may take; without limit if absent. */
  wait?: number | undefined;
  /** Milliseconds, a whole number; if absent the watchdog renews the hold until its unlock. */
  lease?: number | undefined;
}

export const LOCK_OPTIONS: readonly string[] = ["wait", "lease", "signal", "owner"];
export const TRY_OPTIONS: readonly string[] = ["signal", "owner"];
const OWNER_OPTIONS: readonly string[] = ["owner"];

/** The options of a call, checked. */
interface Limits {
  /** Milliseconds; Infinity without limit. */
  readonly wait: number;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** The owner that the call names; undefined for the ambient one, or a new one. */
  readonly named: OwnerRecord | undefined;
}

const UNLIMITED: Limits = {
  wait: Number.POSITIVE_INFINITY,
  lease: undefined,
  signal: undefined,
  named: undefined,
};

/** One call that wants a hold. */
export interface LockRequest extends Limits, WatchedCall {
  /** Undefined for a new owner, which is made when it is asked for. */
  readonly owner: OwnerRecord | undefined;
  /** Of a `run`: the innermost frame of its function. */
  readonly frame?: Frame;
  /** The run or scope that the call is made in. */
  readonly caller: Frame | undefined;
  /** Where the call is made, for clients with the option `traceHolds`. */
  callSite?: CallSite;
}

/** A request that needs its owner at once: it runs a function, or is of a group whose members share something of it. */
export interface OwnedRequest extends LockRequest {
  readonly owner: OwnerRecord;
}

/**
 * Checks the options of a call on the lock of this key, made at `begun` (monotonic milliseconds), and finds its owner.
 * `isBare`: the call is a `lock()` or `tryLock()`.
 */
export function checkRequest(options: Options, lockKey: string, begun: number, isBare: boolean): LockRequest {
  const { wait, lease, signal, named } = options === NO_OPTIONS ? UNLIMITED : checkLimits(options);
  const caller = currentFrame();
  const owner = named ? actorOf(named, lockKey) : caller && ownerInside(caller, lockKey);
  return { wait, lease, signal, named, owner, caller, begun, isBare };
}

function checkLimits(options: Options): Limits {
  return {
    wait: checkWait(options.wait) ?? UNLIMITED.wait,
    lease: checkLease(options.lease),
    signal: checkSignal(options.signal),
    named: checkOwner(options.owner),
  };
}

/** The owner that the options name, if any. `where`: the call that they are of. @throws TypeError */
export function namedOwner(options: OwnerOptions | undefined, where: string): OwnerRecord | undefined {
  return checkOwner(checkOptions(options, OWNER_OPTIONS, where).owner);
}

/** Makes the call's owner, unless it has one. */
export function owned(request: LockRequest): OwnedRequest {
  return { ...request, owner: request.owner ?? new OwnerRecord() };
}

/** The owner that acts on the lock of this key for the named owner, or else for the ambient one. */
export function ownerOf(named: OwnerRecord | undefined, lockKey: string): OwnerRecord | undefined {
  return named ? actorOf(named, lockKey) : ambientOwner(lockKey);
}

/** The kind of call that wants the hold. `lock.unlock()` gives back `bare` holds only. */
export type Origin = "bare" | "run" | "member";

export interface LockAcquisitionOptions {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly origin: Origin;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  /** Of a `run`: it takes turns with the runs that do not enclose it. */
  readonly frame?: Frame | undefined;
  /** The run or scope that the call was made in. */
  readonly caller?: Frame | undefined;
}
