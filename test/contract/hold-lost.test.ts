/** Contract section 2: unlock of a Hold, "lost is final", and late grants. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient, LockLostError } from "../../src/index.js";
import {
  countCommands,
  named,
  type RedisServer,
  startProxy,
  startRedis,
  until,
  untilGone,
} from "../support/index.js";
import { countOf, failure, recordEvents, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock("a");
  await warmUp(lock);
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const LOST = { code: "LOCK_LOST", lockName: "a" };
const NOT_OWNER = { code: "NOT_OWNER", lockName: "a" };

describe("unlock of a Hold", () => {
  test("works from any async context", async () => {
    const holds: Hold[] = await client.scope(() =>
      Promise.all([lock.lock(), lock.lock(), lock.lock(), lock.lock()]),
    );
    const [one, two, three, four] = holds as [Hold, Hold, Hold, Hold];
    await new Promise<void>((resolve, reject) =>
      setTimeout(() => void one.unlock().then(resolve, reject), 1),
    );
    await client.scope(() => two.unlock());
    await client.getLock("b").run(() => three.unlock());
    expect(await countOf(server, "a")).toBe(1);
    await four.unlock();
    expect(await redis.exists("a")).toBe(0);
  });

  test("a second call shares the first one's outcome", async () => {
    const events = recordEvents(client);
    const hold = await lock.lock();
    await using counter = await countCommands(server);
    await Promise.all([hold.unlock(), hold.unlock()]);
    await hold.unlock();
    await counter.settle();
    expect(counter.all()).toHaveLength(1);
    expect(events.filter(({ name }) => name === "released")).toHaveLength(1);
  });

  test("a second call never frees a later hold", async () => {
    const first = await lock.lock();
    await first.unlock();
    const second = await lock.lock();
    await first.unlock();
    expect(second.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await second.unlock();
  });

  test("the same, of nested holds of one owner", async () => {
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    await Promise.all([inner.unlock(), inner.unlock(), inner.unlock()]);
    expect(await countOf(server, "a")).toBe(1);
    expect(outer.isHeld).toBe(true);
    await outer.unlock();
  });

  test("after UNAVAILABLE the release goes on in the background, and a further call asks again", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 600 });
    const hold = await through.getLock("a").lock({ lease: 60_000 });
    proxy.blackhole();
    expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE", lockName: "a" });
    expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE", lockName: "a" });
    expect(hold.isHeld).toBe(false);
    proxy.restore();
    await untilGone(redis, "a");
    await until("a further call tells so", () => hold.unlock().then(() => true));
    expect(hold.signal.aborted).toBe(false);
  });

  test("so does lock.unlock() in a scope", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 600 });
    const mine = through.getLock("a");
    await through.scope(async () => {
      await mine.lock({ lease: 60_000 });
      proxy.blackhole();
      expect(await failure(mine.unlock())).toMatchObject({ code: "UNAVAILABLE" });
      expect(await failure(mine.unlock())).toMatchObject({ code: "UNAVAILABLE" });
      proxy.restore();
      await untilGone(redis, "a");
      await until("a further call finds nothing to give back", async () => {
        return ((await failure(mine.unlock())) as { code?: string }).code === "NOT_OWNER";
      });
    });
  });
});

describe("lost is final", () => {
  test("signal, isHeld, unlock and run agree, even if Redis has the key again", async () => {
    const result = lock.run(async (hold) => {
      const state = await redis.hgetall("a");
      await redis.del("a");
      expect(await failure(hold.extend(10_000))).toMatchObject({ ...LOST, reason: "expired" });
      await redis.hset("a", state);
      await redis.pexpire("a", 60_000);
      expect(hold.signal.aborted).toBe(true);
      expect(hold.isHeld).toBe(false);
      expect(await failure(hold.extend(10_000))).toMatchObject(LOST);
      expect(await failure(hold.unlock())).toMatchObject(LOST);
      return "done";
    });
    expect(await failure(result)).toMatchObject({ ...LOST, reason: "expired", result: "done" });
  });

  test("the error: LockLostError with since and reason, the signal's reason too", async () => {
    const before = Date.now();
    const hold = await lock.lock();
    await redis.flushall();
    const error = (await failure(hold.unlock())) as LockLostError;
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ ...LOST, reason: "expired", name: "LockLostError" });
    expect(error.since).toBeGreaterThanOrEqual(before - 5);
    expect(error.since).toBeLessThanOrEqual(Date.now() + 5);
    expect(hold.signal.reason).toMatchObject({ ...LOST, reason: "expired" });
    expect("result" in error && error.result !== undefined).toBe(false);
  });

  test("a leased hold is lost at its local deadline without any call", async () => {
    const events = recordEvents(client);
    const hold = await lock.lock({ lease: 400 });
    await until("the signal", () => hold.signal.aborted);
    expect(hold.isHeld).toBe(false);
    expect(events.at(-1)).toMatchObject({ name: "lost", payload: { reason: "expired", lockName: "a" } });
    expect(await failure(hold.unlock())).toMatchObject({ ...LOST, reason: "expired" });
  });

  test("lock.unlock() that reaches it rejects LOCK_LOST once and drops it", async () => {
    await client.scope(async () => {
      await lock.lock();
      await lock.lock();
      await redis.del("a");
      expect(await failure(lock.unlock())).toMatchObject(LOST);
      expect(await failure(lock.unlock())).toMatchObject(LOST);
      expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
    });
  });

  test("the lost Hold's unlock() drops it for lock.unlock() too", async () => {
    await client.scope(async () => {
      const hold = await lock.lock();
      await redis.del("a");
      expect(await failure(hold.unlock())).toMatchObject(LOST);
      expect(await failure(hold.unlock())).toMatchObject(LOST); // shares the outcome
      expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
    });
  });

  test("a loss of one nested hold by its lease leaves the outer one", async () => {
    await client.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.lock({ lease: 400 });
      await until("it is lost", () => inner.signal.aborted);
      expect(await failure(lock.unlock())).toMatchObject({ ...LOST, reason: "expired" });
      expect(outer.isHeld).toBe(true);
      await until("it is given back", async () => (await countOf(server, "a")) === 1);
      await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("a nested call notices it, and starts afresh", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      await redis.del("a");
      const second = await lock.lock({ wait: 5_000 });
      expect(second.ownerId).not.toBe(first.ownerId);
      expect(first.signal.reason).toMatchObject({ ...LOST, reason: "expired" });
      expect(await redis.hgetall("a")).toEqual({ [second.ownerId]: "1" });
      expect(await failure(first.unlock())).toMatchObject(LOST);
      expect(second.isHeld).toBe(true);
      await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("the next acquire starts afresh, like a stranger", async () => {
    await client.scope(async () => {
      const first = await lock.lock({ lease: 400 });
      await until("it is lost", () => first.signal.aborted);
      await using rival = new LockClient(redis);
      const theirs = await rival.getLock("a").lock();
      expect(await lock.tryLock()).toBeNull();
      await theirs.unlock();
      const second = await lock.lock();
      expect(second.ownerId).not.toBe(first.ownerId);
      await lock.unlock(); // the innermost, which is not the lost one
      expect(second.isHeld).toBe(false);
      expect(await failure(lock.unlock())).toMatchObject(LOST);
    });
  });

  test("taken by another: their hold is left alone", async () => {
    const hold = await lock.lock();
    await redis.del("a");
    await using rival = new LockClient(redis);
    const theirs = await rival.getLock("a").lock();
    expect(await failure(hold.unlock())).toMatchObject({ ...LOST, reason: "taken" });
    expect(theirs.isHeld).toBe(true);
    expect(await redis.hgetall("a")).toEqual({ [theirs.ownerId]: "1" });
    await theirs.unlock();
  });
});

describe("a grant that arrives at or after its deadline is given back and the call rejects LOCK_LOST", () => {
  test.each([
    ["lock", () => lock.lock({ lease: 1 })],
    ["tryLock", () => lock.tryLock(0, 1)],
    ["tryLock with a wait", () => lock.tryLock(1_000, 1)],
    ["run", () => lock.run(() => "never", { lease: 1 })],
  ])("%s with lease 1", async (_, call) => {
    const events = recordEvents(client);
    expect(await failure(call())).toMatchObject({ ...LOST, reason: "expired" });
    expect(await redis.exists("a")).toBe(0);
    expect(events.filter(({ name }) => name === "acquired" || name === "released")).toEqual([]);
    await (await lock.lock({ wait: 2_000 })).unlock();
  });

  test("one that was slow to arrive", async () => {
    await using proxy = await startProxy(server);
    await using slow = new LockClient(proxy.connect());
    await warmUp(slow.getLock("b"));
    proxy.delayReplies(250, named("EVAL", "EVALSHA"));
    const [taking, later] = [
      slow.getLock("a").lock({ lease: 200 }),
      slow.getLock("c").lock({ lease: 60_000 }),
    ];
    expect(await failure(taking)).toMatchObject({ ...LOST, reason: "expired" });
    expect((await later).isHeld).toBe(true);
    await (await later).unlock();
    expect(await redis.exists("a")).toBe(0);
  });

  test("a nested one is undone alone", async () => {
    const outer = await lock.lock({ lease: 60_000 });
    expect(await failure(lock.lock({ owner: outer, lease: 1 }))).toMatchObject(LOST);
    expect(outer.isHeld).toBe(true);
    await until("it is undone", async () => (await countOf(server, "a")) === 1);
    expect(await redis.pttl("a")).toBeGreaterThan(50_000);
    const nested = await lock.lock({ owner: outer });
    expect(await countOf(server, "a")).toBe(2);
    await nested.unlock();
    await outer.unlock();
    expect(await redis.exists("a")).toBe(0);
  });
});
