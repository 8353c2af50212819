/** What the keys of a lock show, whoever wrote them: this library or Redisson. */
import type { Reader } from "../redis/link.js";

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

const OWNER = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:-?\d+$/;
const WRITER = ":write";

/** One field of a lock's hash. `ttl`: milliseconds of a read hold. */
interface Field {
  readonly name: string;
  readonly value: string;
  readonly ttl: number;
}

/** Reads the reply of `lock/inspect`; null if the lock is free, or the key holds no lock. */
export function readLockInfo(name: string): Reader<LockInfo | null> {
  return (reply) => {
    const [pttl, fenced, waiters, list] = reply as [number?, number?, string[]?, string[]?];
    if (pttl === undefined || !list || !waiters) return null;
    const ttl = Number(pttl);
    const fields = fieldsOf(list);
    const mode = fields.find((field) => field.name === "mode")?.value;
    const shared = mode === "read" || mode === "write";
    const holders = holdersOf(
      fields.filter((field) => !shared || field.name !== "mode"),
      shared,
      ttl,
    );
    if (!holders || holders.length === 0) return null;
    if (shared) return { name, kind: "readwrite", mode, holders, waiters: [], ttl };
    const kind = waiters.length > 0 ? "fair" : Number(fenced) === 1 ? "fenced" : "lock";
    return { name, kind, holders, waiters, ttl };
  };
}

function fieldsOf(list: readonly string[]): Field[] {
  const fields: Field[] = [];
  for (let i = 0; i < list.length; i += 3) {
    fields.push({ name: String(list[i]), value: String(list[i + 1]), ttl: Number(list[i + 2]) });
  }
  return fields;
}

/** Undefined if a field is none that a lock has. Readers whose holds have all lapsed hold nothing. */
function holdersOf(fields: readonly Field[], shared: boolean, ttl: number): HolderInfo[] | undefined {
  const holders = new Map<string, HolderInfo>();
  for (const field of fields) {
    const writes = shared && field.name.endsWith(WRITER);
    const ownerId = writes ? field.name.slice(0, -WRITER.length) : field.name;
    if (!OWNER.test(ownerId) || !/^[1-9]\d*$/.test(field.value)) return undefined;
    const left = writes || !shared ? ttl : field.ttl;
    if (left === 0) continue;
    const other = holders.get(ownerId);
    holders.set(ownerId, {
      ownerId,
      count: Number(field.value) + (other?.count ?? 0),
      ttl: Math.max(left, other?.ttl ?? left),
    });
  }
  return [...holders.values()];
}
