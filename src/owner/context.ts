/**
 * Finds the owner that a call acts for: by the chain of scopes and runs around the current async context.
 *
 * A frame is pushed by `client.scope(fn)` and by `lock.run(fn)` and is open until its fn settles.
 */
import type { AsyncLocalStorage } from "node:async_hooks";
import { around } from "../base/outside.js";
import type { Grant } from "../lock/grant.js";
import type { OwnerRecord } from "./record.js";

export interface Frame {
  readonly owner: OwnerRecord;
  /** The keys (client and full name) of the lock that a `run` holds, and of its members; undefined for a scope. */
  readonly lockKeys?: readonly string[] | undefined;
  /** The frame that it was opened in. */
  parent: Frame | undefined;
  open: boolean;
}

const store = around as AsyncLocalStorage<Frame | undefined>;

/** A new open frame inside the current one. A frame that has ended is no parent: its async context outlived it. */
export function openFrame(
  owner: OwnerRecord,
  lockKeys?: readonly string[],
  parent: Frame | undefined = store.getStore(),
): Frame {
  return { owner, lockKeys, parent: parent?.open ? parent : undefined, open: true };
}

/** Runs fn inside `frame`. When fn settles, the frame ends, and so do the frames that were opened for it inside `caller`. */
export async function runInside<T>(
  frame: Frame,
  fn: () => T | Promise<T>,
  caller: Frame | undefined = frame.parent,
): Promise<T> {
  try {
    return await store.run(frame, () => begin(fn()));
  } finally {
    endFrames(frame, caller);
  }
}

/**
 * A frame that has ended passes over those around it that have ended, too. Otherwise a job that begins the next one
 * before it settles would keep all jobs before it.
 */
function endFrames(frame: Frame, caller: Frame | undefined): void {
  let last = frame;
  for (let each: Frame | undefined = frame; each && each !== caller; each = each.parent) {
    each.open = false;
    last = each;
  }
  while (last.parent && !last.parent.open) last.parent = last.parent.parent;
}

/** Some thenables, such as query builders, begin their work only when they are awaited: they begin in this context. */
function begin<T>(value: T | PromiseLike<T>): T | PromiseLike<T> {
  if (value instanceof Promise || typeof (value as PromiseLike<T> | undefined)?.then !== "function")
    return value;
  return new Promise((resolve, reject) => void (value as PromiseLike<T>).then(resolve, reject));
}

/**
 * The owner that a bare call on one of these locks acts for. It is that of the nearest enclosing run of such a lock, or
 * of the nearest enclosing scope. A context that outlived its scope or run counts as outside any.
 */
export function ambientOwner(keys: readonly string[]): OwnerRecord | undefined {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (!frame.lockKeys || frame.lockKeys.some((key) => keys.includes(key))) return frame.owner;
  }
  return undefined;
}

/** The owner of the nearest enclosing run or scope: all runs of a tree act for one owner. */
export function treeOwner(): OwnerRecord | undefined {
  return currentFrame()?.owner;
}

/** The owner of the nearest enclosing scope; runs do not count. */
export function scopeOwner(): OwnerRecord | undefined {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (!frame.lockKeys) return frame.owner;
  }
  return undefined;
}

/** Whether the current call is made inside a run of this lock. */
export function isInsideRun(lockKey: string): boolean {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (frame.lockKeys?.includes(lockKey)) return true;
  }
  return false;
}

/** The innermost scope or run that the current call is made in. */
export function currentFrame(): Frame | undefined {
  const frame = store.getStore();
  return frame?.open ? frame : undefined;
}

/** What an owner holds, and the owners of a frame and of those around it, as far as they are open. */
export function grantsAround(owner: OwnerRecord | undefined, frame: Frame | undefined): Grant[] {
  const owners = new Set(owner ? [owner] : []);
  for (let each = frame; each?.open; each = each.parent) owners.add(each.owner);
  return [...owners].flatMap((each) => each.grants());
}

/** True if `frame` is `outer`, or a frame inside it. */
export function encloses(outer: Frame, frame: Frame | undefined): boolean {
  for (let each = frame; each; each = each.parent) if (each === outer) return true;
  return false;
}
