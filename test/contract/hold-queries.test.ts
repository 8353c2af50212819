/** Contract section 2: forceUnlock, and the questions one may ask of a lock. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient } from "../../src/index.js";
import {
  type CommandCounter,
  countCommands,
  type RedisServer,
  startProxy,
  startRedis,
  until,
} from "../support/index.js";
import { countOf, failure, nextEvent, recordEvents, untilWaiting, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;
/** Somebody else. */
let rival: LockClient;
let counter: CommandCounter;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  rival = new LockClient(server.connect());
  lock = client.getLock("a");
  await warmUp(lock);
  await warmUp(rival.getLock("a"));
  counter = await countCommands(server);
});
afterAll(async () => {
  counter?.stop();
  for (const each of [client, rival]) await each?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const theirs = (): Promise<Hold> => rival.getLock("a").lock();

describe("forceUnlock", () => {
  test("false of a free lock, true of a held one, whoever holds it", async () => {
    expect(await lock.forceUnlock()).toBe(false);
    const hold = await theirs();
    await rival.getLock("a").lock({ owner: hold });
    expect(await lock.forceUnlock()).toBe(true);
    expect(await redis.exists("a")).toBe(0);
    expect(await lock.forceUnlock()).toBe(false);
    await failure(hold.unlock());
  });

  test("of a lock that another library's process holds", async () => {
    await redis.hset("a", "b0e5b1a2-0000-4000-8000-000000000000:17", "2");
    expect(await lock.forceUnlock()).toBe(true);
    expect(await redis.exists("a")).toBe(0);
  });

  test("the holder learns `forced` at once, of the same client", async () => {
    const events = recordEvents(client);
    const hold = await lock.lock();
    const nested = await lock.lock({ owner: hold });
    expect(await lock.forceUnlock()).toBe(true);
    for (const each of [hold, nested]) {
      await until("it is told", () => each.signal.aborted);
      expect(each.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "forced", lockName: "a" });
      expect(await failure(each.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    }
    expect(events.filter(({ name }) => name === "lost")).toHaveLength(2);
  });

  test("the best known reason is `forced` too if another client of this process did it", async () => {
    const hold = await theirs();
    expect(await lock.forceUnlock()).toBe(true);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  });

  test("wakes waiters", async () => {
    const hold = await theirs();
    const waiter = await untilWaiting(client, () => lock.lock());
    const began = performance.now();
    await rival.getLock("a").forceUnlock();
    const mine = await waiter.done;
    expect(performance.now() - began).toBeLessThan(2_000);
    await failure(hold.unlock());
    expect(mine.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await mine.unlock();
  });
});

describe("questions", () => {
  test("isLocked and remainTimeToLive: whoever holds it", async () => {
    expect(await lock.isLocked()).toBe(false);
    expect(await lock.remainTimeToLive()).toBe(-2);
    const hold = await rival.getLock("a").lock({ lease: 10_000 });
    expect(await lock.isLocked()).toBe(true);
    const ttl = await lock.remainTimeToLive();
    expect(ttl).toBeGreaterThan(5_000);
    expect(ttl).toBeLessThanOrEqual(10_000);
    await hold.unlock();
    expect(await lock.isLocked()).toBe(false);
  });

  test("isHeldByCurrentOwner and getHoldCount: the current owner's", async () => {
    await client.scope(async () => {
      await lock.lock();
      await lock.lock();
      expect(await lock.isHeldByCurrentOwner()).toBe(true);
      expect(await lock.getHoldCount()).toBe(2);
      await lock.unlock();
      expect(await lock.getHoldCount()).toBe(1);
      await lock.unlock();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.getHoldCount()).toBe(0);
    });
  });

  test("they ask Redis", async () => {
    await client.scope(async () => {
      const hold = await lock.lock();
      await counter.reset();
      expect(await lock.isHeldByCurrentOwner()).toBe(true);
      expect(await lock.getHoldCount()).toBe(1);
      await counter.settle();
      expect(counter.all()).toHaveLength(2);
      await redis.del("a");
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.getHoldCount()).toBe(0);
      await failure(hold.unlock());
    });
  });

  test("false and 0 without a call for an owner that holds nothing, or no owner", async () => {
    const hold = await lock.lock();
    const owner = client.newOwner();
    await counter.reset();
    expect(await lock.isHeldByCurrentOwner()).toBe(false);
    expect(await lock.getHoldCount()).toBe(0);
    expect(await lock.isHeldByCurrentOwner({ owner })).toBe(false);
    expect(await lock.getHoldCount({ owner })).toBe(0);
    await client.scope(async () => {
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.getHoldCount()).toBe(0);
    });
    await client.getLock("b").run(async () => {
      await counter.reset();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      await counter.settle();
      expect(counter.all()).toEqual([]);
    });
    await hold.unlock();
    await counter.reset();
    expect(await lock.getHoldCount({ owner: hold })).toBe(0);
    await counter.settle();
    expect(counter.all()).toEqual([]);
  });

  test("the same without a call before the first use of a client", async () => {
    const fresh = new LockClient(server.connect({ lazyConnect: true }));
    expect(await fresh.getLock("a").isHeldByCurrentOwner()).toBe(false);
    expect(await fresh.getLock("a").getHoldCount()).toBe(0);
    await fresh.close();
  });

  test("without an answer they reject UNAVAILABLE", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 600 });
    const mine = through.getLock("a");
    const hold = await mine.lock({ lease: 60_000 });
    proxy.blackhole();
    const calls = [
      () => mine.isLocked(),
      () => mine.remainTimeToLive(),
      () => through.getLock("b").forceUnlock(), // may be executed later: its outcome is unknown
      () => mine.getHoldCount({ owner: hold }),
      () => mine.isHeldByCurrentOwner({ owner: hold }),
    ];
    for (const call of calls) expect(await failure(call())).toMatchObject({ code: "UNAVAILABLE" });
    const released = nextEvent(through, "released");
    proxy.restore();
    await until("Redis answers", () => hold.unlock().then(() => true));
    await released;
  });
});
