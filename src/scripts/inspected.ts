/** What the replies of `lock/inspect` and `counter/inspect` say, to those who have the lock or permits and to those who only look. */
import { writerOf } from "../base/names.js";

/** What an owner has of a lock, on one side. */
export interface HolderField {
  readonly ownerId: string;
  readonly isWriter: boolean;
  /** Its holds. */
  readonly count: number;
  /** Milliseconds until its longest read hold ends; 0 without one. */
  readonly left: number;
}

/** What a lock's keys say. */
export interface InspectedLock {
  /** Milliseconds; -1 without end, -2 when free. */
  readonly ttl: number;
  readonly isFenced: boolean;
  /** Empty for none. */
  readonly mode: string;
  readonly waiters: string[];
  readonly fields: readonly HolderField[];
}

export function readLock(reply: unknown): InspectedLock {
  const [ttl, fenced, mode, waiters, words] = reply as [number, number, string, string[], unknown[]];
  const fields: HolderField[] = [];
  for (let i = 0; i < words.length; i += 3) {
    const field = String(words[i]);
    const writer = writerOf(field);
    const [count, left] = [Number(words[i + 1]), Number(words[i + 2])];
    fields.push({ ownerId: writer ?? field, isWriter: writer !== undefined, count, left });
  }
  return { ttl: Number(ttl), isFenced: Number(fenced) === 1, mode, waiters, fields };
}

/** What the keys of a semaphore, permits or a latch say. */
export interface InspectedNumber {
  /** Free permits; of a latch, its count. */
  readonly permits: number;
  /** Permits whose leases go on. */
  readonly out: number;
  /** True if permits were taken with an id, as permits with a lease are. */
  readonly hasLeases: boolean;
  /** False if there is no number, which counts as 0. */
  readonly isSet: boolean;
}

export function readNumber(reply: unknown): InspectedNumber {
  const numbers = (reply as unknown[]).map(Number);
  const [free = 0, ended = 0, out = 0] = numbers;
  // The next call on these permits takes back those whose leases have ended, so they count as free.
  return { permits: free + ended, out, hasLeases: ended + out > 0, isSet: numbers.length > 0 };
}
