/**
 * What the locks promise if the server runs one call after the other: a reentrant fenced mutex, a read-write lock, a
 * semaphore.
 *
 * A lease can end a hold without a call of its owner. That is an operation of the environment, "expire". Its caller is
 * the owner. It is called at the first instant at which the hold may end (the holder's deadline, or its death), and its
 * outcome is unknown. Permits come back in the same way by a release.
 */
import type { Spec } from "./wing-gong.js";

type Side = "read" | "write";

/** Without a side it is the write side: a mutex is a read-write lock without readers. */
export interface LockCall {
  /** "release": one hold; "expire": all holds of the caller on this side end. */
  readonly do: "acquire" | "release" | "expire";
  readonly side?: Side;
}

export type LockAnswer =
  /** The token rises with each outermost grant, and a nested grant has that of the outer hold; absent: not checked. */
  | { readonly granted: true; readonly token?: bigint }
  /** Another owner holds the lock, or the caller reads and wants to write. */
  | { readonly granted: false; readonly because: "held" | "upgrade" }
  | { readonly released: true }
  /** The hold had ended before. The server has released what was left of it. */
  | { readonly released: false; readonly because: "lost" };

interface LockState {
  readonly writer: { readonly owner: string; readonly count: number } | undefined;
  /** The number of holds of each reading owner; the writer may be one of them. */
  readonly readers: ReadonlyMap<string, number>;
  /** The highest token that is known to have been given out. */
  readonly token: bigint;
  /** The token of the writer; undefined if its grant was never answered. */
  readonly writing: bigint | undefined;
}

const FREE: LockState = { writer: undefined, readers: new Map(), token: 0n, writing: undefined };

export const readWriteLock: Spec<LockState, LockCall, LockAnswer> = {
  initial: FREE,
  next(state, { call, caller, outcome }) {
    const side = call.side ?? "write";
    const answer = outcome.kind === "ok" ? outcome.answer : undefined;
    if (call.do === "acquire") return acquire(state, caller, side, answer);
    if (call.do === "release") return release(state, caller, side, answer);
    return countOf(state, caller, side) > 0 ? [withCount(state, caller, side, 0)] : [];
  },
  keyOf({ writer, readers, token, writing }) {
    const reading = [...readers].sort().join(";");
    return `${writer?.owner},${writer?.count}|${reading}|${token}|${writing}`;
  },
};

/** Reentrant and fenced: tokens are checked in answers that have them. */
export const mutex: Spec<LockState, LockCall, LockAnswer> = {
  ...readWriteLock,
  next(state, operation) {
    if (operation.call.side === "read") throw new TypeError("a mutex has no read side");
    return readWriteLock.next(state, operation);
  },
};

function acquire(state: LockState, owner: string, side: Side, answer?: LockAnswer): readonly LockState[] {
  const writes = state.writer?.owner === owner;
  const others = [...state.readers.keys()].some((reader) => reader !== owner);
  const closed = side === "read" ? !!state.writer && !writes : (!!state.writer || others) && !writes;
  const upgrades = side === "write" && !writes && state.readers.has(owner);
  if (answer && "granted" in answer && !answer.granted) {
    // An owner that reads, while others read too, may get either answer.
    return (answer.because === "upgrade" ? upgrades : closed) ? [state] : [];
  }
  if (closed || upgrades) return [];
  const next = withCount(state, owner, side, countOf(state, owner, side) + 1);
  if (!answer) return [side === "write" && !writes ? { ...next, token: next.token + 1n } : next];
  if (!("granted" in answer)) return [];
  const { token } = answer;
  if (token === undefined) return [next];
  if (!writes) return token > state.token ? [{ ...next, token, writing: token }] : [];
  const { writing = token } = state;
  // If the outermost grant was never answered, the token is known only from a nested one.
  const known = state.writing !== undefined || token >= state.token;
  return token === writing && known ? [{ ...next, token, writing }] : [];
}

function release(state: LockState, owner: string, side: Side, answer?: LockAnswer): readonly LockState[] {
  const count = countOf(state, owner, side);
  const fewer = count > 0 ? [withCount(state, owner, side, count - 1)] : [];
  if (!answer) return fewer;
  if (!("released" in answer)) return [];
  if (answer.released) return fewer;
  // An owner with several holds may have lost one of them, or all.
  return count > 1 ? [...fewer, withCount(state, owner, side, 0)] : count > 0 ? fewer : [state];
}

function countOf({ writer, readers }: LockState, owner: string, side: Side): number {
  if (side === "read") return readers.get(owner) ?? 0;
  return writer?.owner === owner ? writer.count : 0;
}

function withCount(state: LockState, owner: string, side: Side, count: number): LockState {
  if (side === "write") {
    return count > 0
      ? { ...state, writer: { owner, count } }
      : { ...state, writer: undefined, writing: undefined };
  }
  const readers = new Map(state.readers);
  if (count > 0) readers.set(owner, count);
  else readers.delete(owner);
  return { ...state, readers };
}

export interface SemaphoreCall {
  readonly do: "acquire" | "release";
  readonly permits?: number;
}

export type SemaphoreAnswer = { readonly granted: boolean } | { readonly released: true };

/** Its state is the number of free permits. Who has the others is not recorded. */
export function semaphore(permits: number): Spec<number, SemaphoreCall, SemaphoreAnswer> {
  return {
    initial: permits,
    next(free, { call, outcome }) {
      const { permits: count = 1 } = call;
      if (call.do === "release") return [free + count];
      const isRefused = outcome.kind === "ok" && "granted" in outcome.answer && !outcome.answer.granted;
      if (isRefused) return free < count ? [free] : [];
      return free >= count ? [free - count] : [];
    },
    keyOf: String,
  };
}
