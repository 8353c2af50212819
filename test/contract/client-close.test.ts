/** Contract section 1: what close() does to calls, waiters, holds, timers and connections. */
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient, type LockLostError } from "../../src/index.js";
import {
  type FaultProxy,
  named,
  type RedisServer,
  startProxy,
  startRedis,
  until,
  untilGone,
} from "../support/index.js";
import { connectionsOf, deferred, failure, recordEvents, untilWaiting, warmUp, watch } from "./helpers.js";

let server: RedisServer;
/** Looks on. */
let redis: Redis;
let mine: Redis;
let client: LockClient;
let lock: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
});
afterAll(() => server?.stop());
beforeEach(async () => {
  await redis.flushall();
  mine = server.connect();
  client = new LockClient(mine);
  lock = client.getLock("a");
});
afterEach(async () => {
  await client.close({ timeout: 0 });
  mine.disconnect();
});

const CLOSED = { code: "CLIENT_CLOSED", name: "ClientClosedError" };
const LOST = { code: "LOCK_LOST", reason: "closed", lockName: "a" };

describe("close refuses new calls", () => {
  const calls: [name: string, call: () => unknown][] = [
    ["lock", () => lock.lock()],
    ["tryLock", () => lock.tryLock()],
    ["tryLock with a wait", () => lock.tryLock(500)],
    ["run", () => lock.run(() => "never")],
    ["forceUnlock", () => lock.forceUnlock()],
    ["isLocked", () => lock.isLocked()],
    ["remainTimeToLive", () => lock.remainTimeToLive()],
    ["ready", () => client.ready()],
    ["scope", () => client.scope(() => "never")],
    ["newOwner", () => client.newOwner()],
  ];

  test.each(calls)("%s, when closed", async (_, call) => {
    await client.close();
    expect(await failure(call)).toMatchObject(CLOSED);
  });

  test.each(calls)("%s, while live holds have their grace", async (_, call) => {
    const hold = await lock.lock();
    const closing = client.close();
    expect(await failure(call)).toMatchObject(CLOSED);
    await hold.unlock();
    await closing;
  });

  test("a nested call of a live hold too", async () => {
    const hold = await lock.lock();
    const closing = client.close();
    expect(await failure(lock.lock({ owner: hold }))).toMatchObject({ ...CLOSED, lockName: "a" });
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await closing;
  });

  test("a client that never made a call", async () => {
    const fresh = new LockClient(mine);
    await fresh.close();
    expect(await failure(fresh.getLock("a").lock())).toMatchObject(CLOSED);
  });
});

describe("close rejects waiters with CLIENT_CLOSED", () => {
  test("of lock, tryLock and run, at once, before any hold has ended", async () => {
    const hold = await lock.lock();
    const waiters = [
      await untilWaiting(client, () => lock.lock()),
      await untilWaiting(client, () => lock.tryLock(60_000)),
      await untilWaiting(client, () => lock.run(() => "never")),
    ];
    const closing = client.close();
    for (const { done } of waiters) expect(await failure(done)).toMatchObject({ ...CLOSED, lockName: "a" });
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await closing;
  });

  test("of a run that waits for its turn", async () => {
    await client.scope(async () => {
      const running = deferred();
      const finish = deferred();
      const run = lock.run(async () => {
        running.resolve();
        await finish.promise;
      });
      await running.promise;
      const sibling = await untilWaiting(client, () => lock.run(() => "never"));
      const closing = client.close();
      expect(await failure(sibling.done)).toMatchObject(CLOSED);
      finish.resolve();
      await run;
      await closing;
    });
  });

  test("of calls whose command is on its way; what it is granted is given back", async () => {
    await using proxy = await startProxy(server);
    const slow = new LockClient(proxy.connect());
    await warmUp(slow.getLock("b"));
    proxy.delayReplies(150, named("EVAL", "EVALSHA"));
    const taking = slow.getLock("a").lock();
    watch(taking);
    await until("it is granted", () => redis.exists("a"));
    const closing = slow.close({ timeout: 0 });
    expect(await failure(taking)).toMatchObject(CLOSED);
    await closing;
    await untilGone(redis, "a");
  });
});

describe("close gives live holds up to `timeout` to end by themselves", () => {
  test("it resolves when they have", async () => {
    const events = recordEvents(client);
    const bare = await lock.lock();
    const finish = deferred();
    const running = deferred();
    const run = client.getLock("b").run(async () => {
      running.resolve();
      await finish.promise;
      return "done";
    });
    await running.promise;
    const closing = client.close({ timeout: 60_000 });
    const watched = watch(closing);
    await bare.unlock();
    expect(watched.state).toBe("pending");
    expect(await redis.exists("a")).toBe(0);
    finish.resolve();
    expect(await run).toBe("done");
    await closing;
    expect(bare.signal.aborted).toBe(false);
    expect(await redis.keys("?")).toEqual([]);
    expect(events.filter(({ name }) => name === "lost")).toEqual([]);
    expect(events.filter(({ name }) => name === "released")).toHaveLength(2);
  });

  test("they are renewed, and may be extended, until then", async () => {
    await using brisk = new LockClient(mine, { watchdogTimeout: 900 });
    const events = recordEvents(brisk);
    const hold = await brisk.getLock("a").lock();
    const closing = brisk.close({ timeout: 60_000 });
    await until("two renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
    await hold.extend(5_000);
    expect(hold.remaining).toBeGreaterThan(3_000);
    await hold.unlock();
    await closing;
  });

  test("the rest ends then: signal first, and the release is sent after it", async () => {
    await using proxy = await startProxy(server);
    const through = new LockClient(proxy.connect());
    const hold = await through.getLock("a").lock();
    proxy.clear();
    const order: string[] = [];
    proxy.onCommand(({ command: [name] }) => {
      if (name?.startsWith("EVAL")) order.push("release");
    });
    hold.signal.addEventListener("abort", () => order.push("abort"));
    const events = recordEvents(through);
    const began = performance.now();
    await through.close({ timeout: 100 });
    expect(performance.now() - began).toBeGreaterThanOrEqual(95);
    expect(order).toEqual(["abort", "release"]);
    expect(hold.signal.reason).toMatchObject({ ...LOST, name: "LockLostError" });
    expect(hold.isHeld).toBe(false);
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining(LOST));
    expect(await redis.exists("a")).toBe(0);
    expect(events).toContainEqual({
      name: "lost",
      payload: expect.objectContaining({
        lockName: "a",
        kind: "lock",
        ownerId: hold.ownerId,
        reason: "closed",
      }),
    });
  });
});

describe("timeout: 0 ends them at once", () => {
  test("their later unlock() resolves", async () => {
    const [bare, other] = [await lock.lock(), await client.getLock("b").lock()];
    const nested = await lock.lock({ owner: bare });
    const began = performance.now();
    await client.close({ timeout: 0 });
    expect(performance.now() - began).toBeLessThan(3_000);
    expect(await redis.keys("?")).toEqual([]);
    for (const hold of [bare, nested, other]) {
      expect(hold.signal.aborted).toBe(true);
      await hold.unlock();
      await hold.unlock();
      await hold[Symbol.asyncDispose]();
    }
  });

  test("also by lock.unlock() in the scope that took it", async () => {
    await client.scope(async () => {
      await lock.lock();
      await client.close({ timeout: 0 });
      await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("extend rejects LOCK_LOST", async () => {
    const hold = await lock.lock();
    await client.close({ timeout: 0 });
    expect(await failure(hold.extend(1_000))).toMatchObject(LOST);
  });

  test("their run rejects LOCK_LOST with fn's result", async () => {
    const running = deferred();
    const finish = deferred();
    const run = lock.run(async () => {
      running.resolve();
      await finish.promise;
      return "done";
    });
    await running.promise;
    await client.close({ timeout: 0 });
    finish.resolve();
    const error = (await failure(run)) as LockLostError;
    expect(error).toMatchObject({ ...LOST, result: "done" });
  });

  test("fn's own error still wins", async () => {
    const running = deferred();
    const finish = deferred();
    const run = lock.run(async () => {
      running.resolve();
      await finish.promise;
      throw new Error("mine");
    });
    await running.promise;
    await client.close({ timeout: 0 });
    finish.resolve();
    expect((await failure(run)).message).toBe("mine");
  });
});

describe("close is idempotent", () => {
  test("calls at once and after share the end", async () => {
    const hold = await lock.lock();
    const first = client.close({ timeout: 60_000 });
    const second = client.close({ timeout: 60_000 });
    const watched = watch(second);
    await hold.unlock();
    await Promise.all([first, second]);
    expect(watched.state).toBe("resolved");
    await client.close();
    await client[Symbol.asyncDispose]();
  });
});

describe("connections and timers", () => {
  test("own connections are gone; the user's is open and has no listener of ours", async () => {
    const listeners = () => mine.eventNames().map((name) => [String(name), mine.listenerCount(name)]);
    const fresh = server.connect();
    await fresh.ping();
    const before = (await connectionsOf(server)).length;
    const bare = fresh.eventNames().map((name) => [String(name), fresh.listenerCount(name)]);
    fresh.disconnect();
    const hold = await lock.lock();
    const waiter = await untilWaiting(client, () => lock.lock());
    await until("it listens", async () =>
      (await connectionsOf(server)).some(({ subscribed }) => subscribed > 0),
    );
    await client.close({ timeout: 0 });
    await failure(waiter.done);
    await until("only the user's are left", async () => (await connectionsOf(server)).length <= before - 1);
    expect(listeners()).toEqual(bare);
    expect(mine.status).toBe("ready");
    expect(await mine.ping()).toBe("PONG");
    expect(hold.isHeld).toBe(false);
  });

  test("close ends though Redis does not answer", async () => {
    await using proxy = await startProxy(server);
    const cut = new LockClient(proxy.connect(), { commandTimeout: 200 });
    const hold = await cut.getLock("a").lock({ lease: 60_000 });
    proxy.blackhole();
    const began = performance.now();
    await cut.close({ timeout: 50 });
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(hold.signal.reason).toMatchObject(LOST);
    await hold.unlock();
  });

  test("close ends though Redis was never reached", async () => {
    const nobody = LockClient.connect({ host: "127.0.0.1", port: 1 }, { commandTimeout: 100 });
    const calling = nobody.getLock("a").lock();
    watch(calling);
    await nobody.close();
    expect(await failure(calling)).toBeInstanceOf(Error);
  });

  test("unlocks on their way are waited for", async () => {
    await using proxy: FaultProxy = await startProxy(server);
    const slow = new LockClient(proxy.connect());
    const hold = await slow.getLock("a").lock();
    proxy.delayReplies(150, named("EVAL", "EVALSHA"));
    const unlocking = hold.unlock();
    await slow.close({ timeout: 0 });
    await unlocking;
    expect(await redis.exists("a")).toBe(0);
    expect(hold.signal.aborted).toBe(false);
  });
});

describe("await using", () => {
  test("ends a client", async () => {
    let kept: LockClient;
    {
      await using disposed = new LockClient(mine);
      kept = disposed;
      await warmUp(disposed.getLock("a"));
    }
    expect(await failure(kept.getLock("a").lock())).toMatchObject(CLOSED);
  });

  test("gives a hold back, with the errors of unlock", async () => {
    {
      await using hold = await lock.lock();
      expect(hold.isHeld).toBe(true);
    }
    expect(await redis.exists("a")).toBe(0);
    const error = await failure(async () => {
      await using hold = await lock.lock();
      await redis.del("a");
      expect(hold.isHeld).toBe(true);
    });
    expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("of null, which tryLock may give", async () => {
    const hold = await lock.lock();
    {
      await using none = await lock.tryLock();
      expect(none).toBeNull();
    }
    await hold.unlock();
  });
});
