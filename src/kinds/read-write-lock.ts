/** The read-write lock as users get it: its two sides are locks. */
import type { Env } from "../env.js";
import { Lock } from "../lock/lock.js";
import { Read, Write } from "./read-write.js";

/** Options of `LockClient.getReadWriteLock`. */
export interface ReadWriteLockOptions {
  /** Whether waiting writers go before readers that come later, so that readers cannot starve them. Default true. */
  preferWriters?: boolean | undefined;
}

/**
 * Many readers or one writer; both sides are reentrant. The writer may take the read side as well. If it then gives back
 * the write side first, it goes on as a reader without a gap. The reverse is refused: an owner that only reads and asks
 * for the write side gets UPGRADE_REFUSED. Each reader has a lease of its own, so a dead reader's hold ends by itself.
 * @example
 * const document = client.getReadWriteLock("document:7");
 * await document.readLock().run(() => sell("7"));
 * await document.writeLock().run(() => sell("7"), { wait: 5_000 });
 */
export class ReadWriteLock {
  /** The name as the user gave it: without the prefix. */
  readonly name: string;
  readonly #read: Lock;
  readonly #write: Lock;

  /** Locks are made by a LockClient. @internal */
  constructor(env: Env, lockName: string, key: string, preferWriters: boolean) {
    this.name = lockName;
    this.#read = new Lock(new Read(env, lockName, key, preferWriters));
    this.#write = new Lock(new Write(env, lockName, key, preferWriters));
  }

  /** The side that any number of owners may hold at a time. */
  readLock(): Lock {
    return this.#read;
  }

  /** The side that one owner may hold, while no other owner holds either side. */
  writeLock(): Lock {
    return this.#write;
  }
}
