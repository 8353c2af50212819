/** The calls of an actor for each kind, and the two ways to make them: with this library and with Redisson. */
import { type Hold, isLockError, type LockClient, type Owner } from "../../../src/index.js";
import type { JavaThread, LockKind } from "../java.js";
import { JavaError } from "../jvm.js";

export type Kind = "lock" | "fair" | "fenced" | "readwrite" | "semaphore" | "permits" | "latch";

export interface Call {
  readonly verb: string;
  /** The side of a read-write lock. */
  readonly side?: "read" | "write" | undefined;
  /** Milliseconds; without a lease the watchdog renews, or a permit has no end. */
  readonly lease?: number | undefined;
  /** Milliseconds. */
  readonly wait?: number | undefined;
  readonly permits?: number | undefined;
  /** A permit's id as this side knows it. */
  readonly permitId?: string | undefined;
}

/** The outcome of a call: its result, or its refusal. */
export type Outcome = string | number | boolean | null;

export interface Actor {
  perform(call: Call): Promise<Outcome>;
}

/** Milliseconds on both sides, so long that nothing is renewed during a sequence. */
export const WATCHDOG = 300_000;

const NOT_OWNER = "not the owner";

/** A hold that an actor believes to have. */
export interface Held {
  readonly side: Call["side"];
  readonly hold: Hold;
  /** The end in epoch ms; undefined if the watchdog keeps it. */
  readonly until: number | undefined;
}

/** One owner of a client of this library. */
export class NodeActor implements Actor {
  /** The holds, the innermost last; a lost one stays until its unlock. */
  holds: readonly Held[] = [];
  readonly #client: LockClient;
  readonly #owner: Owner;
  readonly #kind: Kind;
  readonly #name: string;

  constructor(client: LockClient, kind: Kind, name: string) {
    this.#client = client;
    this.#owner = client.newOwner();
    this.#kind = kind;
    this.#name = name;
  }

  async perform(call: Call): Promise<Outcome> {
    try {
      if (this.#kind === "semaphore") return await this.#semaphore(call);
      if (this.#kind === "permits") return await this.#permits(call);
      if (this.#kind === "latch") return await this.#latch(call);
      return await this.#onLock(call);
    } catch (error) {
      if (isLockError(error, "NOT_OWNER") || isLockError(error, "LOCK_LOST")) return NOT_OWNER;
      if (isLockError(error, "UPGRADE_REFUSED")) return false;
      throw error;
    }
  }

  async #onLock({ verb, side, lease, wait }: Call): Promise<Outcome> {
    const lock = this.#lock(side);
    const owner = this.#owner;
    switch (verb) {
      case "tryLock": {
        const hold = await lock.tryLock(wait, lease, { owner });
        if (hold) this.#keep({ side, hold, until: lease === undefined ? undefined : Date.now() + lease });
        return hold !== null;
      }
      case "lock":
        this.#keep({ side, hold: await lock.lock({ owner }), until: undefined });
        return null;
      case "unlock": {
        const last = this.holds.filter((held) => held.side === side).at(-1);
        this.holds = this.holds.filter((held) => held !== last);
        return nothing(last ? last.hold.unlock() : lock.unlock({ owner }));
      }
      case "forceUnlock":
        return lock.forceUnlock();
      case "isLocked":
        return lock.isLocked();
      case "getHoldCount":
        return lock.getHoldCount({ owner });
      default:
        throw new Error(`there is no ${verb} of a lock`);
    }
  }

  #keep(held: Held): void {
    this.holds = [...this.holds, held];
  }

  #lock(side: Call["side"]) {
    if (this.#kind === "fair") return this.#client.getFairLock(this.#name);
    if (this.#kind === "fenced") return this.#client.getFencedLock(this.#name);
    if (this.#kind === "lock") return this.#client.getLock(this.#name);
    const lock = this.#client.getReadWriteLock(this.#name);
    return side === "read" ? lock.readLock() : lock.writeLock();
  }

  async #semaphore({ verb, permits = 1 }: Call): Promise<Outcome> {
    const semaphore = this.#client.getSemaphore(this.#name);
    switch (verb) {
      case "trySetPermits":
        return semaphore.trySetPermits(permits);
      case "tryAcquire":
        return semaphore.tryAcquire(permits);
      case "release":
        return nothing(semaphore.release(permits));
      case "addPermits":
        return nothing(semaphore.addPermits(permits));
      case "availablePermits":
        return semaphore.availablePermits();
      case "drainPermits":
        return semaphore.drainPermits();
      default:
        throw new Error(`there is no ${verb} of a semaphore`);
    }
  }

  async #permits({ verb, permits = 1, lease, permitId = "" }: Call): Promise<Outcome> {
    const semaphore = this.#client.getPermitExpirableSemaphore(this.#name);
    switch (verb) {
      case "trySetPermits":
        return semaphore.trySetPermits(permits);
      case "setPermits":
        return nothing(semaphore.setPermits(permits));
      case "addPermits":
        return nothing(semaphore.addPermits(permits));
      case "tryAcquire":
        return semaphore.tryAcquire(0, lease);
      case "release":
        return nothing(semaphore.release(permitId));
      case "tryRelease":
        return semaphore.tryRelease(permitId);
      case "updateLeaseTime":
        return semaphore.updateLeaseTime(permitId, lease ?? 0);
      case "availablePermits":
        return semaphore.availablePermits();
      case "acquiredPermits":
        return semaphore.acquiredPermits();
      case "getPermits":
        return semaphore.getPermits();
      default:
        throw new Error(`there is no ${verb} of such a semaphore`);
    }
  }

  async #latch({ verb, permits = 1 }: Call): Promise<Outcome> {
    const latch = this.#client.getCountDownLatch(this.#name);
    switch (verb) {
      case "trySetCount":
        return latch.trySetCount(permits);
      case "countDown":
        return nothing(latch.countDown());
      case "getCount":
        return latch.getCount();
      default:
        throw new Error(`there is no ${verb} of a latch`);
    }
  }
}

async function nothing(done: Promise<unknown>): Promise<null> {
  await done;
  return null;
}

/** One Java thread. */
export class JavaActor implements Actor {
  readonly #thread: JavaThread;
  readonly #kind: Kind;
  readonly #name: string;

  constructor(thread: JavaThread, kind: Kind, name: string) {
    this.#thread = thread;
    this.#kind = kind;
    this.#name = name;
  }

  async perform({ verb, side, permits, ...rest }: Call): Promise<Outcome> {
    const counted = permits === undefined ? {} : { permits, count: permits };
    try {
      const { value } = await this.#subject(side).timed<Outcome>(verb, { ...rest, ...counted });
      return value;
    } catch (error) {
      if (error instanceof JavaError && REFUSAL.test(error.message)) return NOT_OWNER;
      throw error;
    }
  }

  #subject(side: Call["side"]) {
    if (this.#kind === "semaphore") return this.#thread.semaphore(this.#name);
    if (this.#kind === "permits") return this.#thread.permits(this.#name);
    if (this.#kind === "latch") return this.#thread.latch(this.#name);
    const kind: LockKind = this.#kind === "readwrite" ? (side ?? "write") : this.#kind;
    return this.#thread.lock(kind, this.#name);
  }
}

const REFUSAL = /not locked by current thread|Permit with id/;
