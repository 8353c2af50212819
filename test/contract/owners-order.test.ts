/** Contract section 3, last sentence: calls of one owner on one lock take effect one at a time in call order. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { type RedisServer, startRedis } from "../support/index.js";
import { countOf, deferred, failure, recordEvents, untilWaiting, watch } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;
/** Somebody else. */
let rival: LockClient;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  rival = new LockClient(server.connect());
  lock = client.getLock("a");
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await rival?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

describe("a second lock() while the first still waits", () => {
  test("re-enters as soon as the first is granted", async () => {
    const theirs = await rival.getLock("a").lock();
    await client.scope(async () => {
      const first = await untilWaiting(client, () => lock.lock());
      const second = lock.lock();
      const third = lock.tryLock(10_000);
      await theirs.unlock();
      const ids = [(await first.done).ownerId, (await second).ownerId, (await third)?.ownerId];
      expect(new Set(ids).size).toBe(1);
      expect(await countOf(server, "a")).toBe(3);
      for (let i = 0; i < 3; i++) await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("is granted though the first gave up", async () => {
    const theirs = await rival.getLock("a").lock();
    await client.scope(async () => {
      const controller = new AbortController();
      const first = await untilWaiting(client, () => lock.lock({ signal: controller.signal }));
      const late = await untilWaiting(client, () => lock.lock({ wait: 100 }));
      const second = lock.lock();
      controller.abort(new Error("enough"));
      expect((await failure(first.done)).message).toBe("enough");
      expect(await failure(late.done)).toMatchObject({ code: "WAIT_TIMEOUT" });
      await theirs.unlock();
      expect((await second).isHeld).toBe(true);
      expect(await countOf(server, "a")).toBe(1);
      await lock.unlock();
    });
  });

  test("re-enters though the first is of a run", async () => {
    const theirs = await rival.getLock("a").lock();
    await client.scope(async () => {
      const run = await untilWaiting(client, () => lock.run((hold) => hold.ownerId));
      const bare = lock.lock({ wait: 10_000 });
      await theirs.unlock();
      const [fromRun, fromBare] = [await run.done, await bare];
      await lock.unlock();
      expect(typeof fromRun).toBe("string");
      expect(fromBare.isHeld).toBe(false);
    });
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("one called after the last unlock() was called is a new acquisition", () => {
  test("by hold.unlock()", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const unlocking = first.unlock();
      const second = await lock.lock();
      await unlocking;
      expect(second.ownerId).not.toBe(first.ownerId);
      expect(await redis.hgetall("a")).toEqual({ [second.ownerId]: "1" });
      await second.unlock();
    });
  });

  test("by lock.unlock()", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const nested = await lock.lock();
      const unlocking = [lock.unlock(), lock.unlock()];
      const second = await lock.lock();
      await Promise.all(unlocking);
      expect(nested.ownerId).toBe(first.ownerId);
      expect(second.ownerId).not.toBe(first.ownerId);
      await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("a rival that waits may come between", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const theirs = await untilWaiting(rival, () => rival.getLock("a").lock());
      const unlocking = first.unlock();
      const second = lock.lock();
      await unlocking;
      await Promise.race([theirs.done, second]);
      await Promise.all([theirs.done.then((hold) => hold.unlock()), second.then((hold) => hold.unlock())]);
    });
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("one called before the last unlock() was called re-enters", () => {
  test("neither of them awaited", async () => {
    const events = recordEvents(client);
    await client.scope(async () => {
      const first = await lock.lock();
      const nesting = lock.lock();
      const unlocking = first.unlock();
      const nested = await nesting;
      await unlocking;
      expect(nested.ownerId).toBe(first.ownerId);
      expect(nested.isHeld).toBe(true);
      expect(await redis.hgetall("a")).toEqual({ [first.ownerId]: "1" });
      await lock.unlock();
    });
    expect(events.filter(({ name }) => name === "lost")).toEqual([]);
  });

  test("also behind another command of this owner", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const extending = first.extend(20_000);
      const nesting = lock.lock({ wait: 5_000 });
      const unlocking = first.unlock();
      const [nested] = await Promise.all([nesting, unlocking, extending.catch(() => {})]);
      expect(nested.ownerId).toBe(first.ownerId);
      expect(await redis.hgetall("a")).toEqual({ [first.ownerId]: "1" });
      await nested.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("and so on, for many at once", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const calls = Array.from({ length: 10 }, () => lock.lock({ wait: 5_000 }));
      const unlocking = first.unlock();
      const holds = await Promise.all(calls);
      await unlocking;
      expect(new Set([first, ...holds].map(({ ownerId }) => ownerId)).size).toBe(1);
      expect(await countOf(server, "a")).toBe(10);
      await Promise.all(holds.map((hold) => hold.unlock()));
    });
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("unlocks never wait behind waiters", () => {
  test("one that has nothing to give back says so at once", async () => {
    const theirs = await rival.getLock("a").lock();
    await client.scope(async () => {
      const waiter = await untilWaiting(client, () => lock.lock());
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      await theirs.unlock();
      await waiter.done;
      await lock.unlock();
    });
  });

  test("one of a bare hold goes through while a run of the owner waits for its turn", async () => {
    await client.scope(async () => {
      const running = deferred();
      const go = deferred();
      const first = lock.run(async () => {
        running.resolve();
        await go.promise;
        const bare = await lock.lock({ wait: 5_000 });
        await lock.unlock();
        expect(bare.isHeld).toBe(false);
        expect(await countOf(server, "a")).toBe(1);
        expect(watched.state).toBe("pending");
      });
      await running.promise;
      const sibling = await untilWaiting(client, () => lock.run(() => {}));
      const watched = watch(sibling.done);
      go.resolve();
      await Promise.all([first, sibling.done]);
    });
  });

  test("one while other waiters of the process queue", async () => {
    const hold = await lock.lock();
    const waiters = await Promise.all(
      Array.from({ length: 5 }, () => untilWaiting(client, () => lock.run((mine) => mine.ownerId))),
    );
    await hold.unlock();
    const ids = await Promise.all(waiters.map(({ done }) => done));
    expect(new Set(ids).size).toBe(5);
  });
});
