/** The kinds of locks that the model knows. */

import type { FencedHold } from "../../src/index.js";
import { fair, plain, readWrite, type Side } from "./rules.js";
import type { Kind } from "./scene.js";

function readWriteKind(name: string, preferWriters: boolean): Kind {
  return {
    name,
    rules: readWrite(preferWriters),
    lock(client, lockName, side: Side) {
      const lock = client.getReadWriteLock(lockName, { preferWriters });
      return side === "read" ? lock.readLock() : lock.writeLock();
    },
  };
}

export const kinds: readonly Kind[] = [
  { name: "plain lock", rules: plain, lock: (client, name) => client.getLock(name) },
  {
    name: "fenced lock",
    rules: plain,
    lock: (client, name) => client.getFencedLock(name),
    counters: /^redisson_lock_token/,
    token: (hold) => (hold as FencedHold).token,
  },
  {
    name: "fair lock",
    rules: fair,
    lock: (client, name) => client.getFairLock(name),
    queues: /^(redisson_lock_queue|redisson_lock_timeout|holdfast_)/,
  },
  readWriteKind("read-write lock, writers first", true),
  readWriteKind("read-write lock, nobody first", false),
];
