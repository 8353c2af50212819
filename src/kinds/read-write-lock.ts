/** The two sides of one lock, as users get them. */
import type { Env } from "../locks/env.js";
import { Lock } from "../locks/lock.js";
import { ReadPrimitive } from "./read.js";
import { WritePrimitive } from "./write.js";

export interface ReadWriteLockOptions {
  /** Whether waiting writers go before readers that come later, so that readers cannot starve them. Default true. */
  preferWriters?: boolean | undefined;
}

export interface ReadWriteLockParts {
  readonly env: Env;
  readonly lockName: string;
  readonly key: string;
  readonly preferWriters: boolean;
}

/**
 * Many readers or one writer; both sides reentrant. The writer may take the read side as well, and by giving back the
 * write side first go on as a reader without a gap. The reverse is refused: an owner that only reads and asks for the
 * write side gets UPGRADE_REFUSED. Each read hold has a lease of its own, so a dead reader lapses by itself.
 */
export class ReadWriteLock {
  readonly name: string;
  readonly #read: Lock;
  readonly #write: Lock;

  /** Locks are made by a LockClient. */
  constructor({ env, lockName, key, preferWriters }: ReadWriteLockParts) {
    const parts = { env, lockName, key };
    this.name = lockName;
    this.#read = new Lock(env, new ReadPrimitive(parts, preferWriters));
    this.#write = new Lock(env, new WritePrimitive(parts, preferWriters));
  }

  /** The side that any number of owners may hold at a time. */
  readLock(): Lock {
    return this.#read;
  }

  /** The side that one owner may hold, while nobody else holds either. */
  writeLock(): Lock {
    return this.#write;
  }
}
