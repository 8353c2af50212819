/** An owner on either side with one interface, so that a test is written once and run in both directions. */
import { readHold } from "../../../src/base/names.js";
import {
  type Hold,
  isLockError,
  type Lock,
  type LockClient,
  type LockClientOptions,
  type Owner,
} from "../../../src/index.js";
import { type Watched, watch } from "../../faults/harness.js";
import { allKeys, until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import type { JavaClient, JavaThread } from "../java.js";
import { JavaError } from "../jvm.js";
import type { Scene } from "../scene.js";
import type { Side } from "./sides.js";
import { asked, SCRIPT } from "./waiting.js";

export type PartyKind = "lock" | "fair" | "read" | "write";

export const SIDES: readonly Side[] = ["Java", "Node"];

/** The calls that both sides have; without a lease the watchdog renews. */
export interface PartyLock {
  lock(lease?: number): Promise<unknown>;
  tryLock(wait?: number, lease?: number): Promise<boolean>;
  /** Gives back the innermost hold. */
  unlock(): Promise<unknown>;
  forceUnlock(): Promise<boolean>;
  isLocked(): Promise<boolean>;
  getHoldCount(): Promise<number>;
  remainTimeToLive(): Promise<number>;
}

export interface Party {
  readonly side: Side;
  /** The owner's name in Redis; in Node, that of its last hold. */
  readonly owner: string;
  take(kind: PartyKind, name: string): PartyLock;
  /** Whether its waiting call will hear every message that is published from now on. */
  isAsleep(): Promise<boolean>;
}

export interface PartyOptions {
  /** Default: the scene's Java client. */
  readonly java?: JavaClient;
  /** Options of a client of its own. By default only messages wake its waiters. */
  readonly node?: LockClientOptions;
}

export async function newParty(scene: Scene, side: Side, options: PartyOptions = {}): Promise<Party> {
  if (side === "Java") return new JavaParty(await scene.thread(options.java));
  return new NodeParty(scene.newNode({ pollCap: NEVER, ...options.node }));
}

class JavaParty implements Party {
  readonly side = "Java";
  readonly #thread: JavaThread;

  constructor(thread: JavaThread) {
    this.#thread = thread;
  }

  get owner(): string {
    return this.#thread.owner;
  }

  take(kind: PartyKind, name: string): PartyLock {
    return this.#thread.lock(kind, name);
  }

  isAsleep(): Promise<boolean> {
    return this.#thread.isAsleep();
  }
}

class NodeParty implements Party {
  readonly side = "Node";
  readonly #client: LockClient;
  readonly #owner: Owner;
  readonly #locks = new Map<string, NodeLock>();
  #lastId = "";

  constructor(client: LockClient) {
    this.#client = client;
    this.#owner = client.newOwner();
  }

  get owner(): string {
    return this.#lastId;
  }

  take(kind: PartyKind, name: string): PartyLock {
    const key = `${kind} ${name}`;
    const known = this.#locks.get(key);
    if (known) return known;
    const mine = new NodeLock(this.#lock(kind, name), this.#owner, ({ ownerId }) => {
      this.#lastId = ownerId;
    });
    this.#locks.set(key, mine);
    return mine;
  }

  /** True, because a Node call listens before its last try. */
  isAsleep(): Promise<boolean> {
    return Promise.resolve(true);
  }

  #lock(kind: PartyKind, name: string): Lock {
    if (kind === "lock") return this.#client.getLock(name);
    if (kind === "fair") return this.#client.getFairLock(name);
    const both = this.#client.getReadWriteLock(name);
    return kind === "read" ? both.readLock() : both.writeLock();
  }
}

class NodeLock implements PartyLock {
  readonly #lock: Lock;
  readonly #owner: Owner;
  readonly #note: (hold: Hold) => void;
  readonly #holds: Hold[] = [];

  constructor(lock: Lock, owner: Owner, note: (hold: Hold) => void) {
    this.#lock = lock;
    this.#owner = owner;
    this.#note = note;
  }

  async lock(lease?: number): Promise<void> {
    this.#add(await this.#lock.lock({ owner: this.#owner, ...(lease ? { lease } : {}) }));
  }

  async tryLock(wait?: number, lease?: number): Promise<boolean> {
    const hold = await this.#lock.tryLock(wait, lease, { owner: this.#owner });
    if (hold) this.#add(hold);
    return hold !== null;
  }

  async unlock(): Promise<void> {
    const hold = this.#holds.pop();
    if (hold === undefined) throw new Error("this party has no hold");
    await hold.unlock();
  }

  forceUnlock(): Promise<boolean> {
    return this.#lock.forceUnlock();
  }

  isLocked(): Promise<boolean> {
    return this.#lock.isLocked();
  }

  getHoldCount(): Promise<number> {
    return this.#lock.getHoldCount({ owner: this.#owner });
  }

  remainTimeToLive(): Promise<number> {
    return this.#lock.remainTimeToLive();
  }

  #add(hold: Hold): void {
    this.#holds.push(hold);
    this.#note(hold);
  }
}

/** Whether an unlock failed because the hold is gone, on either side. */
export function saysLost(error: unknown): boolean {
  if (error instanceof JavaError) return error.javaClass === "java.lang.IllegalMonitorStateException";
  return isLockError(error, "LOCK_LOST");
}

/** The error of the call; undefined if it succeeds. */
export function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

/**
 * Makes a call for a lock, and resolves when the call waits: it was refused, listens, has tried once more since, and
 * its party sleeps. From then on only a message or a timer can bring it the lock. No other client may run scripts
 * meanwhile.
 */
export async function parked<T>(
  scene: Scene,
  who: Pick<Party, "isAsleep">,
  call: () => Promise<T>,
): Promise<Watched<T>> {
  const before = await asked(scene.redis, SCRIPT);
  const watched = watch(call());
  const waits = async () => (await asked(scene.redis, SCRIPT)) >= before + 2 && (await who.isAsleep());
  await until("it has asked, listened, asked again and sleeps", async () => {
    return watched.state !== "pending" || (await waits());
  });
  if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
  return watched;
}

/** Stands for a waiter in Node that is not a party. */
export const NODE_WAITER: Pick<Party, "isAsleep"> = { isAsleep: () => Promise.resolve(true) };

/** The remaining milliseconds of an owner's read hold; -2 if it has none. */
export function readTtl({ redis }: Scene, name: string, owner: string, number = 1): Promise<number> {
  return redis.pttl(readHold(name, owner, number));
}

/** Keys that say that a call or an owner is over, and that expire by themselves. */
const MARKER = /^(redisson_unlock_latch|holdfast_over):/;

/** The keys of this lock, without markers. */
export async function keysLeft({ redis }: Scene, name: string): Promise<string[]> {
  const ofThis = new RegExp(`(^|[^a-z0-9])${name.replace(/[.{}]/g, "\\$&")}`);
  return [...(await allKeys(redis, name)).keys()].filter((key) => ofThis.test(key) && !MARKER.test(key));
}
