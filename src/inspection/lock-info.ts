/** What the keys of a lock show, whoever wrote them: this library or Redisson. */
import type { Reader } from "../redis/call.js";

export interface LockInfo {
  /** Without the client's prefix. */
  readonly name: string;
  /** As far as the keys show it: `fair` while it has a queue, `fenced` if it has a counter of tokens. */
  readonly kind: "lock" | "fair" | "fenced" | "readwrite";
  /** Of a read-write lock. */
  readonly mode?: "read" | "write";
  readonly holders: readonly HolderInfo[];
  /** The `ownerId` of each that waits for a fair lock, the next one first. */
  readonly waiters: readonly string[];
  /** Milliseconds until the lock lapses if nobody renews it. */
  readonly ttl: number;
}

export interface HolderInfo {
  /** `clientId:n`, also of a writer. */
  readonly ownerId: string;
  /** Holds of this owner, on either side of a read-write lock. */
  readonly count: number;
  /** Milliseconds that the longest of them has to go. */
  readonly ttl: number;
}

const WRITER = ":write";

/** Reads the reply of `lock/inspect`; null if the lock is free. */
export function readLockInfo(name: string): Reader<LockInfo | null> {
  return (reply) => {
    const [pttl, fenced, mode, waiters = [], fields = []] = reply as [
      pttl?: number,
      fenced?: number,
      mode?: string,
      waiters?: string[],
      fields?: string[],
    ];
    const ttl = Number(pttl);
    const shared = mode === "read" || mode === "write";
    const holders = holdersOf(fields, shared, ttl);
    if (holders.length === 0) return null;
    if (shared) return { name, kind: "readwrite", mode, holders, waiters: [], ttl };
    const kind = waiters.length > 0 ? "fair" : Number(fenced) === 1 ? "fenced" : "lock";
    return { name, kind, holders, waiters, ttl };
  };
}

/** `fields`: name, count and milliseconds of each. Readers whose holds have all lapsed hold nothing. */
function holdersOf(fields: readonly string[], shared: boolean, ttl: number): HolderInfo[] {
  const holders = new Map<string, HolderInfo>();
  for (let i = 0; i < fields.length; i += 3) {
    const field = String(fields[i]);
    const writes = field.endsWith(WRITER);
    const left = writes || !shared ? ttl : Number(fields[i + 2]);
    if (left === 0) continue;
    const ownerId = writes ? field.slice(0, -WRITER.length) : field;
    const other = holders.get(ownerId);
    holders.set(ownerId, {
      ownerId,
      count: Number(fields[i + 1]) + (other?.count ?? 0),
      ttl: Math.max(left, other?.ttl ?? left),
    });
  }
  return [...holders.values()];
}
