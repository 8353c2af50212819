/** What the keys of a lock show, whoever wrote them: this library or Redisson. */
import type { ClientInfo } from "../presence/told.js";
import { type HolderField, readLock } from "../scripts/inspected.js";

/**
 * What is known of one name in use: who holds it and who waits.
 * Made by {@link LockClient.inspect} and {@link LockClient.list}.
 */
export interface LockInfo {
  /** The name, without the client's prefix. */
  readonly name: string;
  /**
   * As far as the keys show it: `fair` while the lock has a queue, `fenced` if it has a counter of tokens. Semaphores,
   * permits and latches are looked at if `kinds` is "all". To Redis each of these is a number. A number that this
   * client has not used, without waiters and permits out, is taken for a `semaphore`, with `permits` and `count`.
   */
  readonly kind: "lock" | "fair" | "fenced" | "readwrite" | "semaphore" | "permits" | "latch";
  /** The side of a read-write lock that is held. */
  readonly mode?: "read" | "write";
  /** Who holds it. */
  readonly holders: HolderInfo[];
  /** The `ownerId` of each waiter of a fair lock, the next one first. */
  readonly waiters: string[];
  /**
   * The waiters that clients tell of, for any kind and from any process. A wait is told before it is two seconds old, and
   * that it has ended within a third of a `watchdogTimeout`.
   */
  readonly waiting: WaiterInfo[];
  /** Milliseconds until the lock lapses if nobody renews it; -1 without a lease. */
  readonly ttl: number;
  /** How many permits of a semaphore of either kind are free, including those whose leases have ended. */
  readonly permits?: number;
  /** How many permits with a lease there are, free and out. */
  readonly limit?: number;
  /** How often a latch, or a number that may be one, is to be counted down. */
  readonly count?: number;
}

/** A waiter, as its client tells it. */
export interface WaiterInfo {
  /** The owner that a lock will be granted to, unless the call has to try again. */
  readonly ownerId?: string;
  /** The waiter's process. */
  readonly client: ClientInfo | null;
  /** Since when the call waits, by the clock of its process. */
  readonly since: Date | null;
  /** The side of a read-write lock that the call waits for. */
  readonly mode?: "read" | "write";
  /**
   * The names of what its owner holds meanwhile, and the scopes and runs around the call: each is an edge of the
   * wait-for graph.
   */
  readonly holds: string[];
}

/** A holder of a lock. */
export interface HolderInfo {
  /** `clientId:n`, also of a writer. */
  readonly ownerId: string;
  /** Holds of this owner, on either side of a read-write lock. */
  readonly count: number;
  /** Milliseconds until the longest of these holds ends. */
  readonly ttl: number;
  /** The holder's process, if its client tells of it; null for Java's. */
  readonly client: ClientInfo | null;
  /** Since when the owner has the lock, by the clock of its process; null if its client does not tell, or not yet. */
  readonly since: Date | null;
}

/** Reads what the keys show from the reply of `lock/inspect`; null if the lock is free. */
export function readLockInfo(name: string): (reply: unknown) => LockInfo | null {
  return (reply) => {
    const { ttl, isFenced, mode, waiters, fields } = readLock(reply);
    const shared = mode === "read" || mode === "write";
    const holders = holdersOf(fields, shared, ttl);
    if (holders.length === 0) return null;
    if (shared) return { name, kind: "readwrite", mode, holders, waiters: [], waiting: [], ttl };
    const kind = waiters.length > 0 ? "fair" : isFenced ? "fenced" : "lock";
    return { name, kind, holders, waiters, waiting: [], ttl };
  };
}

/** A reader whose holds have all lapsed is left out. */
function holdersOf(fields: readonly HolderField[], shared: boolean, ttl: number): HolderInfo[] {
  const holders = new Map<string, HolderInfo>();
  for (const { ownerId, isWriter, count, left: ofReads } of fields) {
    const left = isWriter || !shared ? ttl : ofReads;
    if (left === 0) continue;
    const other = holders.get(ownerId);
    holders.set(ownerId, {
      ownerId,
      count: count + (other?.count ?? 0),
      ttl: Math.max(left, other?.ttl ?? left),
      client: null,
      since: null,
    });
  }
  return [...holders.values()];
}
