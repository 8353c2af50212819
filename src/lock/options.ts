/** The options of a lock's calls, checked. */
import {
  checkLease,
  checkOptions,
  checkSignal,
  checkWait,
  NO_OPTIONS,
  type Options,
} from "../base/arguments.js";
import type { Frame } from "../owner/context.js";
import { checkOwner, type Owner, type OwnerRecord, runOf } from "../owner/owner.js";
import type { Limits } from "../waiting/wanted.js";
import type { Place } from "./dropped.js";
import type { Hold } from "./hold.js";

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

/** What a call wants. */
export interface Request {
  /** Milliseconds; Infinity without limit. */
  readonly wait: number;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  readonly signal: AbortSignal | undefined;
  /** The owner that the call names; undefined for the ambient one, or a new one. */
  readonly owner: OwnerRecord | undefined;
  /** The run whose hold it names as its owner. */
  readonly within?: Frame | undefined;
}

/** One call: what it wants, for which owner, and where it was made. */
export interface Asked extends Request, Limits {
  /** Of a run: it takes turns with the runs that do not enclose it. */
  readonly frame: Frame | undefined;
  /** The run or scope that the call was made in. */
  readonly caller: Frame | undefined;
  readonly place?: Place | undefined;
}

const UNLIMITED: Request = {
  wait: Number.POSITIVE_INFINITY,
  lease: undefined,
  signal: undefined,
  owner: undefined,
};

export function checkRequest(options: Options): Request {
  if (options === NO_OPTIONS) return UNLIMITED;
  return {
    wait: checkWait(options.wait) ?? UNLIMITED.wait,
    lease: checkLease(options.lease),
    signal: checkSignal(options.signal),
    owner: checkOwner(options.owner),
    within: runOf(options.owner),
  };
}

/** The owner that the options name, if any. `where`: the call that they are of. @throws TypeError */
export function namedOwner(options: OwnerOptions | undefined, where: string): OwnerRecord | undefined {
  return checkOwner(checkOptions(options, OWNER_OPTIONS, where).owner);
}
