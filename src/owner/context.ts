/**
 * Finds the owner that a call acts for: by the chain of scopes and runs around the current async context.
 *
 * A frame is pushed by `client.scope(fn)` and by `lock.run(fn)` and is open until its fn settles.
 */
import type { AsyncLocalStorage } from "node:async_hooks";
import { around } from "../base/outside.js";
import type { Grant } from "../lock/grant.js";
import type { Asked } from "../lock/options.js";
import type { OwnerRecord } from "./owner.js";

export interface Frame {
  readonly owner: OwnerRecord;
  /** Of a run: the keys (client and full name) of the lock that it holds; of a group, those of its members. */
  readonly lockKeys: readonly string[];
  /** It is a scope, or the run of a named owner: all calls inside act for its owner. */
  readonly isScope: boolean;
  /** The frame that it was opened in. */
  parent: Frame | undefined;
  open: boolean;
}

const store = around as AsyncLocalStorage<Frame | undefined>;
const NO_KEYS: readonly string[] = [];

/** A new open frame inside another. */
export function openFrame(
  owner: OwnerRecord,
  isScope: boolean,
  parent: Frame | undefined,
  lockKeys: readonly string[] = NO_KEYS,
): Frame {
  return { owner, lockKeys, isScope, parent, open: true };
}

/** Runs fn inside `frame`, which ends when fn settles. */
export async function runInside<T>(frame: Frame, fn: () => T | Promise<T>): Promise<T> {
  try {
    // Some thenables, such as query builders, begin their work only when they are awaited: here, inside the frame.
    return await store.run(frame, async () => await fn());
  } finally {
    frame.open = false;
    // A job that begins the next one before it settles would otherwise keep all jobs before it.
    while (frame.parent && !frame.parent.open) frame.parent = frame.parent.parent;
  }
}

/** The innermost scope or run that the current call is made in. A context that outlived it is outside. */
export function currentFrame(): Frame | undefined {
  const frame = store.getStore();
  return frame?.open ? frame : undefined;
}

/** The scope or run that a call is made in: the run whose hold it names as its owner, where the async context has lost that. */
export function callerOf(named: Frame | undefined): Frame | undefined {
  const current = currentFrame();
  return named?.open && !encloses(named, current) ? named : current;
}

/** The innermost one that is meant. */
function nearest(isMeant: (frame: Frame) => boolean): Frame | undefined {
  for (let frame = currentFrame(); frame?.open; frame = frame.parent) if (isMeant(frame)) return frame;
  return undefined;
}

/** The owner that a bare call on one of these locks acts for: that of the nearest run of such a lock, or scope. */
export function ambientOwner(keys: readonly string[]): OwnerRecord | undefined {
  return nearest(({ isScope, lockKeys }) => isScope || lockKeys.some((key) => keys.includes(key)))?.owner;
}

/** The owner of the nearest enclosing scope; runs do not count. */
export function scopeOwner(): OwnerRecord | undefined {
  return nearest(({ isScope }) => isScope)?.owner;
}

/** What the owner of a call holds, and the owners of the scopes and runs around it, as far as they are open. */
export function grantsAround({ owner, caller }: Partial<Asked>): Grant[] {
  const owners = new Set(owner ? [owner] : []);
  for (let each = caller; each?.open; each = each.parent) owners.add(each.owner);
  return [...owners].flatMap((each) => each.grants());
}

/** True if `frame` is `outer`, or a frame inside it. */
export function encloses(outer: Frame, frame: Frame | undefined): boolean {
  for (let each = frame; each; each = each.parent) if (each === outer) return true;
  return false;
}
