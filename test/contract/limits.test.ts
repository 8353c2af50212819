/** Contract section 6: there is no upper limit below 2^53 for a lease, and what setTimeout cannot carry still works. */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import { LockClient } from "../../src/index.js";
import { connectionLike, recordWarnings } from "../support/index.js";
import { failure, untilWaiting } from "./helpers.js";
import { eachKind } from "./scene.js";

const warnings = recordWarnings();

eachKind("what setTimeout cannot carry", (test, kind) => {
  const LEASES = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1];

  describe.each(LEASES)("a lease of %d ms", (lease) => {
    test("is the key's TTL, and no timer fires at once", async ({ lock, wire, counter }) => {
      const hold = await lock.lock({ lease });
      await counter.reset();
      await sleep(100); // by then a wrong timer would have fired, with a TimeoutOverflowWarning
      expect(hold.isHeld).toBe(true);
      expect(hold.signal.aborted).toBe(false);
      await counter.settle();
      expect(counter.all()).toEqual([]);
      expect(warnings).toEqual([]);
      const ttl = await wire.ttl();
      expect(ttl).toBeGreaterThan(lease - 30_000);
      expect(ttl).toBeLessThanOrEqual(lease);
      expect(hold.remaining).toBeGreaterThan(lease * 0.98 - 30_000);
      expect(hold.remaining).toBeLessThanOrEqual(lease * 0.99);
      await hold.unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("of tryLock, run, extend and a nested call", async ({ lock, wire }) => {
      const near = async () => expect(await wire.ttl()).toBeGreaterThan(lease - 30_000);
      const tried = await lock.tryLock(0, lease);
      await near();
      await tried?.unlock();
      await lock.run(near, { lease });
      const hold = await lock.lock({ lease: 20_000 });
      await hold.extend(lease);
      await near();
      await hold.extend(20_000);
      const nested = await lock.lock({ owner: hold, lease });
      await near();
      await hold.unlock(); // sets the TTL to the deadline of the nested hold
      await near();
      await nested.unlock();
      expect(await wire.keys()).toEqual([]);
      expect(warnings).toEqual([]);
    });
  });

  test.for([2 ** 31, 2 ** 53, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    "a wait of %d ms is no time-out",
    async (wait, { client, lock, excluded }) => {
      const hold = await lock.lock();
      const waiter = await untilWaiting(client, () => excluded.tryLock(wait));
      await sleep(50);
      await hold.unlock();
      expect(await waiter.done).not.toBeNull();
      await (await waiter.done)?.unlock();
      expect(warnings).toEqual([]);
    },
  );

  test("a wait that is no whole number is taken", async ({ lock, excluded }) => {
    const hold = await lock.lock();
    expect(await excluded.tryLock(2_900.5)).toBeNull();
    expect(await failure(excluded.lock({ wait: 2_900.25 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
    await hold.unlock();
  });

  test.for([2 ** 31, 2 ** 53 - 1])("client options of %d ms", async (ms, { redis, lockName, wire }) => {
    const options = { watchdogTimeout: ms, pollCap: ms, commandTimeout: ms, fairWaitTimeout: ms };
    const patient = new LockClient(connectionLike(redis), options);
    const mine = kind.make(patient, lockName);
    const hold = await mine.lock();
    expect(await wire.ttl()).toBeGreaterThan(ms - 30_000);
    const waiter = await untilWaiting(patient, () => kind.rival.make(patient, lockName).lock());
    await sleep(50);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await (await waiter.done).unlock();
    const last = await mine.lock();
    const closing = patient.close({ timeout: ms });
    await last.unlock();
    await closing;
    expect(warnings).toEqual([]);
  });

  test("undefined is absent everywhere", async ({ lock, excluded, wire }) => {
    const nothing = { wait: undefined, lease: undefined, signal: undefined, owner: undefined };
    const hold = await lock.lock(nothing);
    expect(await wire.ttl()).toBeGreaterThan(20_000);
    expect(await excluded.tryLock(undefined, undefined, undefined)).toBeNull();
    expect(await excluded.tryLock(undefined, undefined, { signal: undefined, owner: undefined })).toBeNull();
    expect(await lock.isHeldByCurrentOwner({ owner: undefined })).toBe(false);
    expect(await lock.getHoldCount(undefined)).toBe(0);
    await hold.unlock();
    expect(await lock.run(() => 5, undefined)).toBe(5);
  });
});
