/** The least that a lock does, on connections of another library; the contract suite has the rest. */
import { expect } from "vitest";
import { LockClient, type LockClientOptions, type RedisConnection } from "../../src/index.js";
import { failure, takeBriefly, untilWaiting } from "../contract/helpers.js";
import { freshName } from "../faults/harness.js";
import { forTest, UNHURRIED } from "../support/index.js";

/** Times so long that only a message can wake a waiter in time. */
export const FAR: LockClientOptions = { ...UNHURRIED, pollCap: 600_000, watchdogTimeout: 60_000 };

/** Two clients of the library, each on a connection of its own. */
export function twoClients(
  connect: () => RedisConnection,
  options: LockClientOptions = FAR,
): [LockClient, LockClient] {
  const make = () => forTest(new LockClient(connect(), options));
  return [make(), make()];
}

/** A lock is taken, refused to others, passed on by a message, given back, and free again at the end of its lease. */
export async function expectLocks(
  connect: () => RedisConnection,
  options: LockClientOptions = {},
): Promise<void> {
  const [ours, theirs] = twoClients(connect, { ...FAR, ...options });
  const name = freshName();
  const [lock, other] = [ours.getLock(name), theirs.getLock(name)];
  const hold = await lock.lock();
  expect(await other.tryLock()).toBeNull();
  const { done } = await untilWaiting(theirs, () => other.lock());
  await hold.unlock();
  await (await done).unlock();
  expect(await lock.isLocked()).toBe(false);
  const leased = await takeBriefly(other, 300);
  await lock.run(() => expect(leased.isHeld).toBe(false));
  expect(await lock.isLocked()).toBe(false);
  // The server's errors arrive as such.
  await ours.getSemaphore(`text ${name}`).trySetPermits(1);
  expect(await failure(ours.getLock(`text ${name}`).lock())).toMatchObject({ code: "WRONG_DATA" });
}
