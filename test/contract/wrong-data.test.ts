/** Contract section 6: a key that holds other data gives the Redis error with the lock's name; the data is untouched. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { keyState, type RedisServer, startRedis, until } from "../support/index.js";
import { failure, recordEvents, untilWaiting, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;

const NAME = "invoices";
const never = (): never => {
  throw new Error("fn was called");
};

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock(NAME);
  await warmUp(client.getLock("other"));
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});

const DATA: [type: string, write: () => Promise<unknown>][] = [
  ["string", () => redis.set(NAME, "paid")],
  ["string with a TTL", () => redis.set(NAME, "paid", "PX", 60_000)],
  ["list", () => redis.rpush(NAME, "a", "b")],
  ["set", () => redis.sadd(NAME, "a")],
  ["zset", () => redis.zadd(NAME, 1, "a")],
];

const CALLS: [name: string, call: () => Promise<unknown>][] = [
  ["lock", () => lock.lock()],
  ["lock with a lease and a wait", () => lock.lock({ lease: 5_000, wait: 5_000 })],
  ["tryLock", () => lock.tryLock()],
  ["tryLock with a wait", () => lock.tryLock(5_000, 5_000)],
  ["run", () => lock.run(never)],
  ["forceUnlock", () => lock.forceUnlock()],
  ["isLocked", () => lock.isLocked()],
  ["remainTimeToLive", () => lock.remainTimeToLive()],
];

describe.each(DATA)("a %s at the lock's key", (_, write) => {
  beforeEach(async () => {
    await redis.flushall();
    await write();
  });

  test.each(CALLS)("%s", async (_, call) => {
    const before = await keyState(redis, NAME);
    const began = performance.now();
    const error = await failure(call());
    expect(performance.now() - began).toBeLessThan(2_000); // it is no outage: nothing is waited for
    expect(error.message).toContain("WRONGTYPE");
    expect(error.message).toContain(NAME);
    expect(error).toMatchObject({ lockName: NAME });
    const after = await keyState(redis, NAME);
    expect(after).toEqual({ ...before, ttl: after.ttl });
    expect(after.ttl < 0).toBe(before.ttl < 0);
    if (before.ttl > 0) expect(after.ttl).toBeGreaterThan(50_000);
  });
});

test("questions about an owner that holds nothing are answered without Redis, so they do not fail", async () => {
  await redis.set(NAME, "paid");
  expect(await lock.getHoldCount()).toBe(0);
  expect(await lock.isHeldByCurrentOwner()).toBe(false);
  expect(await redis.get(NAME)).toBe("paid");
});

describe("data that somebody writes over a held lock", () => {
  beforeEach(() => redis.flushall());

  test("is a loss to the holder, and stays when the hold is given back", async () => {
    const hold = await lock.lock();
    await redis.set(NAME, "paid");
    expect(await failure(hold.unlock())).toMatchObject({
      code: "LOCK_LOST",
      reason: "taken",
      lockName: NAME,
    });
    expect(await redis.get(NAME)).toBe("paid");
  });

  test("is noticed by the watchdog, and does not disturb other locks' renewal", async () => {
    await using brisk = new LockClient(redis, { watchdogTimeout: 900 });
    const events = recordEvents(brisk);
    const lost = await brisk.getLock(NAME).lock();
    const kept = await brisk.getLock("kept").lock();
    await redis.set(NAME, "paid");
    await until("the loss is noticed", () => lost.signal.aborted);
    await until("the other one is renewed", () =>
      events.some(({ name, payload }) => name === "renewed" && payload.lockName === "kept"),
    );
    expect(kept.isHeld).toBe(true);
    await kept.unlock();
    expect(await redis.get(NAME)).toBe("paid");
  });

  test("rejects those who wait", async () => {
    const hold = await lock.lock();
    const waiter = await untilWaiting(client, () => lock.lock());
    await redis.set(NAME, "paid");
    await redis.publish(`redisson_lock__channel:{${NAME}}`, "0");
    expect((await failure(waiter.done)).message).toContain("WRONGTYPE");
    await failure(hold.unlock());
    expect(await redis.get(NAME)).toBe("paid");
  });
});
