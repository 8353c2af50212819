/**
 * What the locks promise if the server runs one call after the other: a reentrant fenced mutex, a read-write lock, a
 * semaphore.
 *
 * A lease can end a hold without a call of its owner. That is an operation of the environment, "expire". Its caller is
 * the owner. It is called at the first instant at which the hold may end (the holder's deadline, or its death), and its
 * outcome is unknown; or it has an answer, if it is certain that the hold has ended by `settled`.
 */
import type { Operation, Spec } from "./wing-gong.js";

export type Side = "read" | "write";

/** Without a side it is the write side: a mutex is a read-write lock without readers. */
export interface LockCall {
  /**
   * "release": one hold; "expire": all holds of the caller on this side end; "force": the hold of any owner on this
   * side; "count": the caller's number of holds on this side; "look": whether any owner holds this side.
   */
  readonly do: "acquire" | "release" | "expire" | "force" | "count" | "look";
  readonly side?: Side;
}

/** Absent properties are not checked. */
export type LockAnswer =
  /** To "acquire"; `token` rises with each outermost grant, and a nested grant has that of the outer hold. */
  | { readonly granted: true; readonly token?: bigint; readonly count?: number }
  /** To "acquire": another owner holds the lock, or the caller reads and wants to write. */
  | { readonly granted: false; readonly because: "held" | "upgrade" }
  /** To "release"; `left`: the caller's remaining holds on this side. */
  | { readonly released: true; readonly left?: number }
  /** To "release": the hold had ended before, or the caller had none. The server has released what was left of it. */
  | { readonly released: false; readonly because: "lost" | "not owner" }
  /** To "force" and "look": whether an owner held it. */
  | { readonly held: boolean }
  /** To "count". */
  | { readonly count: number }
  /** To "expire". */
  | { readonly ended: true };

type LockOperation = Operation<LockCall, LockAnswer>;

export interface LockState {
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
  next(state, operation) {
    const { call, caller, outcome } = operation;
    const side = call.side ?? "write";
    const answer = outcome.kind === "ok" ? outcome.answer : undefined;
    switch (call.do) {
      case "acquire":
        return acquire(state, caller, side, answer);
      case "release":
        return release(state, caller, side, answer);
      case "expire": {
        const held = countOf(state, caller, side) > 0;
        return held ? [withCount(state, caller, side, 0)] : answer ? [state] : [];
      }
      case "force":
      case "look": {
        const held = side === "write" ? state.writer !== undefined : state.readers.size > 0;
        if (answer && (!("held" in answer) || answer.held !== held)) return [];
        return [call.do === "look" || !held ? state : emptied(state, side)];
      }
      case "count": {
        const right = !answer || ("count" in answer && answer.count === countOf(state, caller, side));
        return right ? [state] : [];
      }
    }
  },
  keyOf({ writer, readers, token, writing }) {
    const reading = [...readers].sort().join(";");
    return `${writer?.owner},${writer?.count}|${reading}|${token}|${writing}`;
  },
};

/** Reentrant and fenced: tokens are checked in answers that have them. */
export const mutex: Spec<LockState, LockCall, LockAnswer> = {
  ...readWriteLock,
  next(state, operation: LockOperation) {
    if (operation.call.side === "read") throw new TypeError("a mutex has no read side");
    return readWriteLock.next(state, operation);
  },
};

function acquire(
  state: LockState,
  owner: string,
  side: Side,
  answer: LockAnswer | undefined,
): readonly LockState[] {
  const writes = state.writer?.owner === owner;
  const others = [...state.readers.keys()].some((reader) => reader !== owner);
  const closed = side === "read" ? !!state.writer && !writes : (!!state.writer || others) && !writes;
  const upgrades = side === "write" && !writes && state.readers.has(owner);
  if (answer && "granted" in answer && !answer.granted) {
    // An owner that reads, while others read too, may get either answer.
    return (answer.because === "upgrade" ? upgrades : closed) ? [state] : [];
  }
  if (closed || upgrades) return [];
  const count = countOf(state, owner, side) + 1;
  const next = withCount(state, owner, side, count);
  if (!answer) return [side === "write" && !writes ? { ...next, token: next.token + 1n } : next];
  if (!("granted" in answer) || (answer.count !== undefined && answer.count !== count)) return [];
  const { token } = answer;
  if (token === undefined) return [next];
  if (!writes) return token > state.token ? [{ ...next, token, writing: token }] : [];
  const { writing = token } = state;
  // If the outermost grant was never answered, the token is known only from a nested one.
  const known = state.writing !== undefined || token >= state.token;
  return token === writing && known ? [{ ...next, token, writing }] : [];
}

function release(
  state: LockState,
  owner: string,
  side: Side,
  answer: LockAnswer | undefined,
): readonly LockState[] {
  const count = countOf(state, owner, side);
  const fewer = count > 0 ? [withCount(state, owner, side, count - 1)] : [];
  if (!answer) return fewer;
  if (!("released" in answer)) return [];
  if (answer.released) return (answer.left ?? count - 1) === count - 1 ? fewer : [];
  if (answer.because === "not owner") return count === 0 ? [state] : [];
  // An owner with several holds may have lost one of them, or all.
  return count > 1 ? [...fewer, withCount(state, owner, side, 0)] : count > 0 ? fewer : [state];
}

function countOf({ writer, readers }: LockState, owner: string, side: Side): number {
  if (side === "read") return readers.get(owner) ?? 0;
  return writer?.owner === owner ? writer.count : 0;
}

function withCount(state: LockState, owner: string, side: Side, count: number): LockState {
  if (side === "write") {
    return count > 0 ? { ...state, writer: { owner, count } } : emptied(state, "write");
  }
  const readers = new Map(state.readers);
  if (count > 0) readers.set(owner, count);
  else readers.delete(owner);
  return { ...state, readers };
}

function emptied(state: LockState, side: Side): LockState {
  return side === "write"
    ? { ...state, writer: undefined, writing: undefined }
    : { ...state, readers: new Map() };
}

/**
 * "set": the number of permits, unless it was set before; "add": changes it by `permits`; "drain": takes all free
 * permits.
 */
export interface SemaphoreCall {
  readonly do: "acquire" | "release" | "set" | "add" | "drain" | "available";
  /** Default 1; for "drain" and "available" not known before. */
  readonly permits?: number;
}

export type SemaphoreAnswer =
  /** To "acquire" and "set". */
  | { readonly granted: boolean }
  /** To "drain" and "available". */
  | { readonly permits: number }
  /** To the other calls. */
  | { readonly done: true };

/** The number of free permits; negative if more were removed than were free. Who has the others is not recorded. */
export type SemaphoreState = number | undefined;

/** @param permits the number at the beginning; undefined: not set yet, which is like none */
export function semaphore(permits?: number): Spec<SemaphoreState, SemaphoreCall, SemaphoreAnswer> {
  return {
    initial: permits,
    next(state, { call, outcome }) {
      const free = state ?? 0;
      const count = call.permits ?? 1;
      const answer = outcome.kind === "ok" ? outcome.answer : undefined;
      const granted = answer && "granted" in answer ? answer.granted : true;
      switch (call.do) {
        case "acquire":
          if (granted) return free >= count ? [free - count] : [];
          return free < count ? [state] : [];
        case "set":
          if (granted) return state === undefined ? [count] : [];
          return state !== undefined ? [state] : [];
        case "release":
        case "add":
          return [free + count];
        case "drain":
        case "available": {
          if (answer && (!("permits" in answer) || answer.permits !== free)) return [];
          return [call.do === "available" ? state : state === undefined ? state : 0];
        }
      }
    },
    keyOf: String,
  };
}
