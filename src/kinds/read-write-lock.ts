/** The two sides of one lock, as users get them. */
import { checkTable, Lock } from "../locks/lock.js";
import type { LockTable } from "../locks/owner-lock.js";
import { ReadBackend } from "./read.js";
import type { Readers } from "./readers.js";
import { WriteBackend } from "./write.js";

export interface ReadWriteLockOptions {
  /** Whether waiting writers go before readers that come later, so that readers cannot starve them. Default true. */
  preferWriters?: boolean | undefined;
}

export interface ReadWriteLockParts {
  readonly table: LockTable;
  readonly readers: Readers;
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
  /** As it was asked for: without the prefix. */
  readonly name: string;
  readonly #read: Lock;
  readonly #write: Lock;

  /** Locks are made by a LockClient. @internal */
  constructor({ table, readers, lockName, key, preferWriters }: ReadWriteLockParts) {
    checkTable(table);
    const parts = { env: table.env, lockName, key };
    this.name = lockName;
    this.#read = new Lock(table, new ReadBackend(parts, readers, preferWriters));
    this.#write = new Lock(table, new WriteBackend(parts, preferWriters));
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
