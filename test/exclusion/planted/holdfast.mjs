// The real locks behind the same face, to pass where the planted ones are found; or a mutant of the library.
import { register } from "node:module";
import { MUTANTS } from "./mutants.mjs";

/** Ms for an answer: what is tried here has nothing to do with a machine that is busy. */
const PATIENCE = 20_000;

/** What a place in the line counts for. */
const BEFORE = { fair: { only: "all" }, readwrite: { write: "readers" } };

/**
 * A lease of `watchdogTimeout` is left to the watchdog.
 * @param {import("ioredis").Redis} redis
 * @param {{ kind?: string, mutant?: string, skew?: number, watchdogTimeout: number, pollCap?: number }} options
 * @param {(lock: string) => void} onWaiting told when a call has found the lock closed
 * @returns {Promise<import("./shared.mjs").Adapter>}
 */
export async function connect(redis, { kind = "lock", mutant, skew, watchdogTimeout, pollCap }, onWaiting) {
  if (mutant !== undefined) {
    register("./mutation.mjs", import.meta.url, { data: MUTANTS[mutant]({ skew }) });
  }
  const { isLockError, LockClient } = await import("holdfast");
  const client = new LockClient(redis, { watchdogTimeout, pollCap, commandTimeout: PATIENCE });
  await client.ready();
  const waits = new Map();
  client.on("waiting", ({ ownerId, lockName }) => {
    waits.set(ownerId, process.hrtime.bigint());
    onWaiting(lockName);
  });
  const open = (name, side) => {
    if (kind === "fair") return client.getFairLock(name);
    if (kind === "fenced") return client.getFencedLock(name);
    if (kind === "lock") return client.getLock(name);
    const lock = client.getReadWriteLock(name);
    return side === "read" ? lock.readLock() : lock.writeLock();
  };
  return {
    async take(name, wait, lease, { side, within: owner, signal }) {
      const asked = lease === watchdogTimeout ? undefined : lease;
      try {
        return await open(name, side).tryLock(wait, asked, { owner, signal });
      } catch (error) {
        if (isLockError(error, "UPGRADE_REFUSED") || error === signal?.reason) return null;
        // A short wait, and a machine that is busy.
        if (wait > 0 && isLockError(error, "UNAVAILABLE")) return null;
        throw error;
      }
    },
    placeOf({ ownerId }, side) {
      const at = waits.get(ownerId);
      const before = BEFORE[kind]?.[side];
      return at !== undefined && before ? { at, before } : undefined;
    },
  };
}
