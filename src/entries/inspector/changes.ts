/** Finds what is new in a look. TTLs fall all the time, so a TTL is new only if the end of the lease has moved. */
import type { LockInfo } from "../../index.js";

/** One look at all locks. */
export interface Look {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly locks: readonly LockInfo[];
  /** There are more locks than the limit. */
  readonly truncated: boolean;
}

export interface Changes {
  readonly at: number;
  readonly total: number;
  readonly truncated: boolean;
  readonly changed: readonly LockInfo[];
  readonly gone: readonly string[];
  /** Locks that were only renewed, and their TTL in ms. */
  readonly renewed: readonly (readonly [name: string, ttl: number])[];
}

/** Milliseconds by which an end has to move: the clocks of two looks are not read at the same time. */
const TOLERANCE = 500;

export function changesOf(before: Look, now: Look): Changes {
  const known = new Map(before.locks.map((info) => [info.name, info]));
  const changed: LockInfo[] = [];
  const renewed: [string, number][] = [];
  for (const info of now.locks) {
    const old = known.get(info.name);
    known.delete(info.name);
    if (!old || signature(old) !== signature(info)) changed.push(info);
    else if (Math.abs(now.at + info.ttl - (before.at + old.ttl)) > TOLERANCE) {
      renewed.push([info.name, info.ttl]);
    }
  }
  const { at, truncated } = now;
  return { at, total: now.locks.length, truncated, changed, gone: [...known.keys()], renewed };
}

function signature(info: LockInfo): string {
  return JSON.stringify(info, (key, value) => (key === "ttl" ? undefined : value));
}
