/** Takes a lock from whoever holds it, of whatever kind it is. */
import type { LockClient, LockInfo } from "../../index.js";

/** Whether a lock has holders in addition to those that were shown to the operator; null is a free one. */
export function hasOthers(lock: LockInfo | null, shown: readonly string[]): boolean {
  return (lock?.holders ?? []).some(({ ownerId }) => !shown.includes(ownerId));
}

/** Resolves with whether anybody held it. */
export async function force(client: LockClient, { name, kind, mode, holders }: LockInfo): Promise<boolean> {
  if (kind === "fair") return client.getFairLock(name).forceUnlock();
  if (kind === "fenced") return client.getFencedLock(name).forceUnlock();
  if (kind === "lock") return client.getLock(name).forceUnlock();
  const lock = client.getReadWriteLock(name);
  if (mode === "read") return lock.readLock().forceUnlock();
  const unlocked = await lock.writeLock().forceUnlock();
  try {
    // The writer's own read holds are left, and the operator meant them as well.
    const left = await client.inspect(name);
    const [writer] = holders;
    if (left?.mode === "read" && left.holders.every(({ ownerId }) => ownerId === writer?.ownerId)) {
      await lock.readLock().forceUnlock();
    }
  } catch (error) {
    // The writer has lost the lock, and whoever is told of unlocks has to know. What is left shows in the next look.
    if (!unlocked) throw error;
  }
  return unlocked;
}
