/** Each kind of lock by its name: in options, on command lines, and as `inspect` and `list` have shown it. */

import type { Hold, LockClient, LockFace, LockInfo } from "../../index.js";
import type { LockedKind } from "../decorator.js";

export const LOCKS: Readonly<Record<LockedKind, (client: LockClient, name: string) => LockFace<Hold>>> = {
  lock: (client, name) => client.getLock(name),
  fair: (client, name) => client.getFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  read: (client, name) => client.getReadWriteLock(name).readLock(),
  write: (client, name) => client.getReadWriteLock(name).writeLock(),
};

/** Takes a lock from whoever holds it, by one command. Resolves with whether anybody held it. */
export function force(client: LockClient, { name, kind, mode = "write" }: LockInfo): Promise<boolean> {
  const lockOf = LOCKS[(kind === "readwrite" ? mode : kind) as LockedKind] ?? LOCKS.lock;
  return lockOf(client, name).forceUnlock();
}
