/** Contract section 2: deadlines, extend, and what a Hold says of its own time. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient } from "../../src/index.js";
import { named, type RedisServer, startProxy, startRedis, until } from "../support/index.js";
import { countOf, failure, recordEvents, untilWaiting, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;
/** Its watchdog renews every 300 ms. */
let brisk: LockClient;
/** Somebody else. */
let rival: LockClient;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  brisk = new LockClient(redis, { watchdogTimeout: 900 });
  rival = new LockClient(server.connect());
  lock = client.getLock("a");
});
afterAll(async () => {
  for (const each of [client, brisk, rival]) await each?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

/** The key's TTL is that of a lease of `ms` that was set within the last seconds. */
async function expectTtl(ms: number, slack = 5_000): Promise<void> {
  const ttl = await redis.pttl("a");
  expect(ttl).toBeGreaterThan(ms - slack);
  expect(ttl).toBeLessThanOrEqual(ms);
}

const take = (lease: number, owner?: Hold): Promise<Hold> => lock.lock(owner ? { lease, owner } : { lease });

describe("every Hold has its own deadline; the key lives until the latest of them", () => {
  test("a nested acquire never shortens an outer hold", async () => {
    const outer = await take(60_000);
    const inner = await take(10_000, outer);
    await expectTtl(60_000);
    expect(outer.remaining).toBeGreaterThan(50_000);
    expect(inner.remaining).toBeLessThanOrEqual(10_000);
    expect(inner.remaining).toBeGreaterThan(5_000);
    await inner.unlock();
    await outer.unlock();
  });

  test("nor does one that the watchdog renews", async () => {
    const events = recordEvents(brisk);
    const mine = brisk.getLock("a");
    const outer = await mine.lock({ lease: 60_000 });
    const inner = await mine.lock({ owner: outer });
    await until("two renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
    await expectTtl(60_000, 10_000);
    await inner.unlock();
    await outer.unlock();
  });

  test("a nested acquire may lengthen the key's life", async () => {
    const outer = await take(10_000);
    const inner = await take(60_000, outer);
    await expectTtl(60_000);
    expect(outer.remaining).toBeLessThanOrEqual(10_000);
    await inner.unlock();
    await outer.unlock();
  });

  test("leases never add up", async () => {
    const outer = await take(10_000);
    const holds = [outer];
    for (let i = 0; i < 3; i++) holds.push(await take(10_000, outer));
    await expectTtl(10_000);
    expect(await countOf(server, "a")).toBe(4);
    for (const hold of holds) await hold.unlock();
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("an unlock, in any order, sets the key to the latest deadline left", () => {
  const LEASES = [20_000, 60_000, 40_000];
  const ORDERS = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];

  test.each(ORDERS)("%i, %i, %i", async (...order) => {
    const outer = await take(LEASES[0] as number);
    const holds = [outer, await take(LEASES[1] as number, outer), await take(LEASES[2] as number, outer)];
    const left = new Set([0, 1, 2]);
    for (const which of order) {
      await holds[which]?.unlock();
      left.delete(which);
      expect(await countOf(server, "a")).toBe(left.size);
      if (left.size > 0) await expectTtl(Math.max(...[...left].map((i) => LEASES[i] as number)));
      for (const i of left) expect(holds[i]?.isHeld).toBe(true);
    }
    expect(await redis.exists("a")).toBe(0);
  });

  test("a watchdog's hold gives way to a leased one and the other way round", async () => {
    const outer = await take(10_000);
    const inner = await lock.lock({ owner: outer });
    await expectTtl(30_000);
    await inner.unlock();
    await expectTtl(10_000);
    const second = await lock.lock({ owner: outer });
    await outer.unlock();
    await expectTtl(30_000);
    await second.unlock();
  });

  test("a leased hold is never renewed for its own sake, and ends at its deadline though another goes on", async () => {
    const events = recordEvents(brisk);
    const mine = brisk.getLock("a");
    const leased = await mine.lock({ lease: 800 });
    const watched = await mine.lock({ owner: leased });
    await until("the leased one is lost", () => leased.signal.aborted);
    await until("the other one is renewed", () => events.some(({ name }) => name === "renewed"));
    expect(watched.isHeld).toBe(true);
    await until("the server counts one", async () => (await countOf(server, "a")) === 1);
    expect(await failure(leased.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(watched.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await watched.unlock();
    expect(await redis.exists("a")).toBe(0);
  });

  test("if none lies ahead it is released and announced, and the holds left are lost (expired)", async () => {
    const short = await take(800);
    const long = await take(60_000, short);
    const waiter = await untilWaiting(rival, () => rival.getLock("a").lock({ wait: 10_000 }));
    await until("its deadline is over", () => !short.isHeld);
    await long.unlock();
    const began = performance.now();
    const theirs = await waiter.done;
    expect(performance.now() - began).toBeLessThan(2_000); // by message, not by pollCap
    expect(short.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await failure(short.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await redis.hgetall("a")).toEqual({ [theirs.ownerId]: "1" });
    await theirs.unlock();
  });
});

describe("extend", () => {
  test("sets the deadline to now + lease, up", async () => {
    const hold = await take(10_000);
    await hold.extend(60_000);
    await expectTtl(60_000);
    expect(hold.remaining).toBeGreaterThan(50_000);
    expect(hold.remaining).toBeLessThanOrEqual(60_000 * 0.99 - 2);
    await hold.unlock();
  });

  test("and down", async () => {
    const hold = await take(60_000);
    await hold.extend(10_000);
    await expectTtl(10_000);
    expect(hold.remaining).toBeLessThanOrEqual(10_000);
    await hold.extend(300);
    await until("it ends then", () => hold.signal.aborted, { timeout: 3_000 });
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("never another hold's", async () => {
    const outer = await take(60_000);
    const inner = await take(20_000, outer);
    await inner.extend(5_000);
    await expectTtl(60_000);
    expect(outer.remaining).toBeGreaterThan(50_000);
    await outer.extend(10_000);
    await expectTtl(10_000);
    expect(inner.isHeld).toBe(true);
    await inner.unlock();
    await outer.unlock();
  });

  test("a watchdog hold never below watchdogTimeout, which goes on renewing", async () => {
    const events = recordEvents(brisk);
    const hold = await brisk.getLock("a").lock();
    await hold.extend(1);
    await expectTtl(900, 800);
    expect(hold.remaining).toBeGreaterThan(100);
    await until("renewals", () => events.filter(({ name }) => name === "renewed").length >= 4);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  });

  test("a watchdog hold above it; renewals do not lower that", async () => {
    const events = recordEvents(brisk);
    const hold = await brisk.getLock("a").lock();
    await hold.extend(60_000);
    await until("renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
    await expectTtl(60_000, 10_000);
    expect(hold.remaining).toBeGreaterThan(50_000);
    await hold.unlock();
  });

  test("resolves with nothing, and costs one command", async () => {
    const hold = await take(10_000);
    expect(await hold.extend(20_000)).toBeUndefined();
    await hold.unlock();
  });

  test.each([
    ["gone", "expired", () => redis.del("a")],
    [
      "taken by another",
      "taken",
      async () => {
        await redis.del("a");
        await redis.hset("a", "somebody:1", "1");
      },
    ],
  ])("LOCK_LOST when the key is %s", async (_, reason, act) => {
    const hold = await take(10_000);
    await act();
    const before = await redis.hgetall("a");
    expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason });
    expect(hold.signal.aborted).toBe(true);
    expect(hold.isHeld).toBe(false);
    expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason });
    expect(await redis.hgetall("a")).toEqual(before);
  });

  test("LOCK_LOST after its deadline", async () => {
    const hold = await take(400);
    await until("its deadline is over", () => !hold.isHeld);
    expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await redis.exists("a")).toBe(0);
  });

  test("NOT_OWNER if given back, by its unlock or by lock.unlock()", async () => {
    const hold = await take(10_000);
    await hold.unlock();
    expect(await failure(hold.extend(20_000))).toMatchObject({ code: "NOT_OWNER" });
    await client.scope(async () => {
      const scoped = await take(10_000);
      await lock.unlock();
      expect(await failure(scoped.extend(20_000))).toMatchObject({ code: "NOT_OWNER" });
    });
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("remaining", () => {
  test("counts from when the command was sent, less drift and 2 ms", async () => {
    await using proxy = await startProxy(server);
    await using slow = new LockClient(proxy.connect());
    await warmUp(slow.getLock("b"));
    proxy.delayReplies(300, named("EVAL", "EVALSHA"));
    const hold = await slow.getLock("a").lock({ lease: 10_000 });
    expect(hold.remaining).toBeLessThanOrEqual(10_000 * 0.99 - 2 - 295);
    expect(hold.remaining).toBeGreaterThan(5_000);
    proxy.restore();
    await hold.unlock();
  });

  test.each([
    [0, 10_000 - 2],
    [0.01, 10_000 * 0.99 - 2],
    [0.5, 5_000 - 2],
  ])("drift %d", async (drift, most) => {
    await using drifting = new LockClient(redis, { drift });
    const hold = await drifting.getLock("a").lock({ lease: 10_000 });
    expect(hold.remaining).toBeLessThanOrEqual(most);
    expect(hold.remaining).toBeGreaterThan(most - 2_000);
    await expectTtl(10_000);
    await hold.unlock();
  });

  test("falls, never rises by itself, and is 0 when over", async () => {
    const hold = await take(400);
    const first = hold.remaining;
    await until("it falls", () => hold.remaining < first);
    await until("it is over", () => !hold.isHeld);
    expect(hold.remaining).toBe(0);
    await failure(hold.unlock());
    const second = await take(10_000);
    const unlocking = second.unlock();
    expect(second.remaining).toBe(0);
    await unlocking;
  });
});

describe("a Hold's face", () => {
  test("lockName, ownerId, acquiredAt", async () => {
    const before = Date.now();
    const hold = await take(10_000);
    expect(hold.lockName).toBe("a");
    expect(Object.keys(await redis.hgetall("a"))).toEqual([hold.ownerId]);
    expect(hold.acquiredAt).toBeGreaterThanOrEqual(before - 5);
    expect(hold.acquiredAt).toBeLessThanOrEqual(Date.now() + 5);
    expect(hold.signal).toBeInstanceOf(AbortSignal);
    expect(hold.signal).toBe(hold.signal);
    await hold.unlock();
  });

  test("isHeld is false from the call of unlock on; the signal never tells of an unlock", async () => {
    const hold = await take(10_000);
    const { signal } = hold;
    expect(hold.isHeld).toBe(true);
    const unlocking = hold.unlock();
    expect(hold.isHeld).toBe(false);
    await unlocking;
    expect(signal.aborted).toBe(false);
    expect(hold.signal.aborted).toBe(false);
  });

  test("assertHeld throws LockLostError unless isHeld", async () => {
    const hold = await take(10_000);
    expect(hold.assertHeld()).toBeUndefined();
    await lock.forceUnlock();
    const lost = expect.objectContaining({ name: "LockLostError", code: "LOCK_LOST", lockName: "a" });
    expect(() => hold.assertHeld()).toThrow(lost);
    const second = await take(10_000);
    await second.unlock();
    expect(() => second.assertHeld()).toThrow(lost);
  });
});
