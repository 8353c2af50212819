/**
 * Who is asking: the chain of scopes and runs that the current async context is inside of.
 *
 * A frame is pushed by `client.scope(fn)` and by `lock.run(fn)` and is open until its fn settles. The store lives on
 * globalThis, so that an ESM and a CJS copy of the library in one process see the same chain.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/** What an owner has of one lock; the locks layer keeps it with the owner. */
export interface Stake {
  readonly lockKey: string;
}

/** What one party has of locks, by their keys. Internal to the library. A single one, as most have, costs no map. */
export class Stakes {
  #only: Stake | undefined;
  #more: Map<string, Stake> | undefined;

  stakeOf(lockKey: string): Stake | undefined {
    if (this.#more) return this.#more.get(lockKey);
    return this.#only?.lockKey === lockKey ? this.#only : undefined;
  }

  putStake(stake: Stake): void {
    if (!this.#more && (!this.#only || this.#only === stake)) this.#only = stake;
    else {
      this.#more ??= new Map(this.#only && [[this.#only.lockKey, this.#only]]);
      this.#only = undefined;
      this.#more.set(stake.lockKey, stake);
    }
  }

  /** Unless another has its place. */
  dropStake(stake: Stake): void {
    if (this.#only === stake) this.#only = undefined;
    else if (this.#more?.get(stake.lockKey) === stake) this.#more.delete(stake.lockKey);
  }
}

/** One party that holds locks. */
export interface Party {
  readonly stakes: Stakes;
  /** Who acts for it on a lock, where that is another: a group of locks may have members by several owners. */
  readonly actors?: ReadonlyMap<string, Party> | undefined;
}

/** The party that holds the lock of this key for `party`. */
export function actorOf(party: Party, lockKey: string): Party {
  return party.actors?.get(lockKey) ?? party;
}

export interface Frame {
  readonly owner: Party;
  /** The lock that a `run` holds, by its key (client and full name); undefined for a scope. */
  readonly lockKey?: string | undefined;
  readonly parent: Frame | undefined;
  open: boolean;
}

const STORE = Symbol.for("holdfast.context/1");
const globals = globalThis as { [STORE]?: AsyncLocalStorage<Frame | undefined> };
globals[STORE] ??= new AsyncLocalStorage<Frame | undefined>();
const store = globals[STORE];

/** A new open frame inside the current one. A frame that has ended is no parent: its context outlived it. */
export function openFrame(
  owner: Party,
  lockKey?: string,
  parent: Frame | undefined = store.getStore(),
): Frame {
  return { owner, lockKey, parent: parent?.open ? parent : undefined, open: true };
}

/** Runs fn inside `frame` and ends the frame when fn settles. */
export async function runInside<T>(frame: Frame, fn: () => T | Promise<T>): Promise<T> {
  try {
    return await store.run(frame, fn);
  } finally {
    frame.open = false;
  }
}

/** Runs fn outside every scope: for listeners, and for timers and connections that outlive the call that made them. */
export function outside<T>(fn: () => T): T {
  return store.getStore() === undefined ? fn() : store.run(undefined, fn);
}

/**
 * The owner that a call on this lock acts for: that of the nearest enclosing run of the lock, or of the nearest
 * enclosing scope. A context that outlived its scope or run counts as outside any.
 */
export function ambientOwner(lockKey: string): Party | undefined {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (frame.lockKey === undefined || frame.lockKey === lockKey) return actorOf(frame.owner, lockKey);
  }
  return undefined;
}

/** The owner of the nearest enclosing scope, runs left aside. */
export function scopeOwner(): Party | undefined {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (frame.lockKey === undefined) return frame.owner;
  }
  return undefined;
}

/** Whether the current call is made inside a run of this lock. */
export function isInsideRun(lockKey: string): boolean {
  for (let frame = store.getStore(); frame?.open; frame = frame.parent) {
    if (frame.lockKey === lockKey) return true;
  }
  return false;
}

/** The innermost scope or run that the current call is made in. */
export function currentFrame(): Frame | undefined {
  const frame = store.getStore();
  return frame?.open ? frame : undefined;
}

/** True if what `frame` is the innermost one of happens inside `outer`. */
export function encloses(outer: Frame, frame: Frame | undefined): boolean {
  for (let each = frame; each; each = each.parent) if (each === outer) return true;
  return false;
}
