/**
 * Contract section 6: if a key holds other data, the call fails with Redis' error and the lock's name; the data stays.
 */
import type { Redis } from "ioredis";
import { describe, expect } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { connectionLike, keyState, SLACK, UNHURRIED, until } from "../support/index.js";
import { failure, recordEvents, untilWaiting } from "./helpers.js";
import { eachKind } from "./scene.js";

const never = (): never => {
  throw new Error("fn was called");
};

const READER = "6e3814a1-e847-452b-a982-45baf93a1df2:37";
const LARGE = { mode: "read", ...Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`f${i}`, i])) };

const DATA: [type: string, write: (redis: Redis, key: string) => Promise<unknown>][] = [
  ["string", (redis, key) => redis.set(key, "paid")],
  ["string with a TTL", (redis, key) => redis.set(key, "paid", "PX", 60_000)],
  ["list", (redis, key) => redis.rpush(key, "a", "b")],
  ["set", (redis, key) => redis.sadd(key, "a")],
  ["zset", (redis, key) => redis.zadd(key, 1, "a")],
  ["hash", (redis, key) => redis.hset(key, "name", "Ada")],
  ["hash of several fields", (redis, key) => redis.hset(key, { name: "Ada", age: 36 })],
  ["hash of counts", (redis, key) => redis.hset(key, { "sku:17": 2 })],
  ["hash with the field mode alone", (redis, key) => redis.hset(key, { mode: "read" })],
  ["hash with the field mode", (redis, key) => redis.hset(key, { mode: "dark", name: "Ada" })],
  ["hash whose mode is that of a read lock", (redis, key) => redis.hset(key, { mode: "read", name: "Ada" })],
  [
    "hash whose mode is that of a write lock",
    (redis, key) => redis.hset(key, { mode: "write", "a:write": 1 }),
  ],
  ["hash with an endless count", (redis, key) => redis.hset(key, { mode: "read", k: 10 ** 12 })],
  ["read lock with an endless count", (redis, key) => redis.hset(key, { mode: "read", [READER]: 10 ** 12 })],
  ["large hash", (redis, key) => redis.hset(key, LARGE)],
];

const CALLS: [name: string, call: (lock: Lock) => Promise<unknown>][] = [
  ["lock", (lock) => lock.lock()],
  ["lock with a lease and a wait", (lock) => lock.lock({ lease: 5_000, wait: 5_000 })],
  ["tryLock", (lock) => lock.tryLock()],
  ["tryLock with a wait", (lock) => lock.tryLock(5_000, 5_000)],
  ["run", (lock) => lock.run(never)],
  ["forceUnlock", (lock) => lock.forceUnlock()],
  ["isLocked", (lock) => lock.isLocked()],
  ["remainTimeToLive", (lock) => lock.remainTimeToLive()],
];

eachKind("a key that holds other data [F26]", (test, kind) => {
  test.for(CALLS)("%s fails and leaves it, whatever it is", async ([, call], { redis, lockName, lock }) => {
    for (const [what, write] of DATA) {
      await redis.del(lockName);
      await write(redis, lockName);
      const before = await keyState(redis, lockName);
      const began = performance.now();
      const error = await failure(call(lock));
      expect(performance.now() - began, what).toBeLessThan(SLACK); // wrong data is no outage, so no call waits
      expect(error.message, what).toContain("WRONGTYPE");
      expect(error.message, what).toContain(lockName);
      expect(error, what).toMatchObject({ code: "WRONG_DATA", lockName });
      const after = await keyState(redis, lockName);
      expect(after, what).toEqual({ ...before, ttl: after.ttl });
      expect(after.ttl < 0, what).toBe(before.ttl < 0);
      if (before.ttl > 0) expect(after.ttl, what).toBeGreaterThan(50_000);
    }
  });

  test("questions about an owner that holds nothing are answered without Redis, so they do not fail", async ({
    redis,
    lockName,
    lock,
  }) => {
    await redis.set(lockName, "paid");
    expect(await lock.getHoldCount()).toBe(0);
    expect(await lock.isHeldByCurrentOwner()).toBe(false);
    expect(await redis.get(lockName)).toBe("paid");
  });

  describe("data that somebody writes over a held lock", () => {
    test("is a loss to the holder, and stays when the hold is given back", async ({
      redis,
      lockName,
      lock,
    }) => {
      const hold = await lock.lock();
      await redis.set(lockName, "paid");
      expect(await failure(hold.unlock())).toMatchObject({
        code: "LOCK_LOST",
        reason: "taken",
        lockName,
      });
      expect(await redis.get(lockName)).toBe("paid");
    });

    test("is noticed by the watchdog, and does not disturb other locks' renewal", async ({
      redis,
      lockName,
    }) => {
      await using brisk = new LockClient(connectionLike(redis), { ...UNHURRIED, watchdogTimeout: 4_500 });
      const events = recordEvents(brisk);
      const lost = await kind.make(brisk, lockName).lock();
      const kept = await kind.make(brisk, "kept").lock();
      await redis.set(lockName, "paid");
      await until("the loss is noticed", () => lost.signal.aborted);
      expect(lost.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
      await until("the other one is renewed", () =>
        events.some(({ name, payload }) => name === "renewed" && payload.lockName === "kept"),
      );
      expect(kept.isHeld).toBe(true);
      await kept.unlock();
      expect(await redis.get(lockName)).toBe("paid");
    });

    test("rejects those who wait", async ({ redis, client, lockName, lock, rival, wire }) => {
      const hold = await rival.lock();
      const waiter = await untilWaiting(client, () => lock.lock());
      await until("it listens", async () => (await wire.channels()).length > 0);
      await redis.set(lockName, "paid");
      for (const channel of await wire.channels()) await redis.publish(channel, "0");
      expect((await failure(waiter.done)).message).toContain("WRONGTYPE");
      await failure(hold.unlock());
      expect(await redis.get(lockName)).toBe("paid");
    });
  });
});
