/** The release by force of what somebody else has, whatever kind of lock it is. */
import type { LockClient, LockInfo } from "../../index.js";

/** Sends one command. Resolves with true if something was held. */
export function forceUnlock(client: LockClient, { name, kind, mode }: LockInfo): Promise<boolean> {
  // Another program may use the name for another kind of lock.
  if (kind !== "readwrite") return client.getLock(name).forceUnlock();
  const lock = client.getReadWriteLock(name);
  return (mode === "read" ? lock.readLock() : lock.writeLock()).forceUnlock();
}
