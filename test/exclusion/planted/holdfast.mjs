// The real locks behind the planted locks' interface, which must pass the same tests; or a mutant of the library.
import { register } from "node:module";
import { MUTANTS } from "./mutants.mjs";

/** Milliseconds for an answer: a busy machine is not the subject here. */
const PATIENCE = 20_000;

/** The calls before which a place in the queue is served. */
const BEFORE = { fair: { only: "all" }, readwrite: { write: "readers" } };

/**
 * A lease of `watchdogTimeout` is left to the watchdog.
 * @param {import("ioredis").Redis} redis
 * @param {{ kind?: string, mutant?: string, skew?: number, watchdogTimeout: number, pollCap?: number }} options
 * @param {(lock: string) => void} onWaiting called when a call has found the lock held
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
        // The wait was short, and the machine is busy.
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
