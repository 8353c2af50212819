/** Contract section 2: tryLock, wait, signal and outages. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient, LockTimeoutError } from "../../src/index.js";
import {
  type CommandCounter,
  countCommands,
  named,
  type RedisServer,
  startProxy,
  startRedis,
  until,
  untilGone,
} from "../support/index.js";
import { failure, untilWaiting, warmUp, watch } from "./helpers.js";

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

describe("tryLock", () => {
  test("gives a Hold of a free lock, with the lease asked for", async () => {
    const hold = await lock.tryLock(0, 10_000);
    expect(hold?.isHeld).toBe(true);
    expect(await redis.pttl("a")).toBeLessThanOrEqual(10_000);
    await hold?.unlock();
    const watched = await lock.tryLock();
    expect(await redis.pttl("a")).toBeGreaterThan(20_000);
    await watched?.unlock();
  });

  test.each([
    ["absent", () => lock.tryLock()],
    ["0", () => lock.tryLock(0)],
  ])("wait %s: one try, then null", async (_, call) => {
    const hold = await theirs();
    await counter.reset();
    expect(await call()).toBeNull();
    await counter.settle();
    expect(counter.all()).toHaveLength(1);
    await hold.unlock();
  });

  test("wait bounds the call", async () => {
    const hold = await theirs();
    const began = performance.now();
    expect(await lock.tryLock(120)).toBeNull();
    expect(performance.now() - began).toBeGreaterThanOrEqual(115);
    expect(performance.now() - began).toBeLessThan(3_000);
    await hold.unlock();
  });

  test("a lock that is given back in time is granted", async () => {
    const hold = await theirs();
    const waiter = await untilWaiting(client, () => lock.tryLock(10_000));
    const began = performance.now();
    await hold.unlock();
    const mine = await waiter.done;
    expect(performance.now() - began).toBeLessThan(2_000); // woken, not polled
    expect(mine?.isHeld).toBe(true);
    await mine?.unlock();
  });

  test("null always means contention: an outage rejects UNAVAILABLE", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 300 });
    const mine = through.getLock("a");
    await warmUp(mine);
    proxy.blackhole();
    let began = performance.now();
    expect(await failure(mine.tryLock())).toMatchObject({ code: "UNAVAILABLE", lockName: "a" });
    expect(performance.now() - began).toBeGreaterThanOrEqual(290);
    expect(performance.now() - began).toBeLessThan(4_000);
    began = performance.now();
    expect(await failure(mine.tryLock(80))).toMatchObject({ code: "UNAVAILABLE" });
    expect(performance.now() - began).toBeGreaterThanOrEqual(75);
    expect(await failure(mine.tryLock(60_000))).toMatchObject({ code: "UNAVAILABLE" });
    expect(await failure(mine.lock({ wait: 80 }))).toMatchObject({ code: "UNAVAILABLE" });
    expect(await failure(mine.lock())).toMatchObject({ code: "UNAVAILABLE" });
    expect(await failure(mine.run(() => "never"))).toMatchObject({ code: "UNAVAILABLE" });
    proxy.restore();
    await until("Redis answers", () => mine.isLocked().then(() => true));
    await untilGone(redis, "a");
  });
});

describe("WAIT_TIMEOUT", () => {
  test("lock and run that get no lock within wait; `waited` says how long", async () => {
    const hold = await theirs();
    for (const call of [() => lock.lock({ wait: 100 }), () => lock.run(() => "never", { wait: 100 })]) {
      const error = (await failure(call())) as LockTimeoutError;
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).toMatchObject({ code: "WAIT_TIMEOUT", name: "LockTimeoutError", lockName: "a" });
      expect(error.waited).toBeGreaterThanOrEqual(95);
      expect(error.waited).toBeLessThan(3_000);
    }
    await hold.unlock();
  });

  test("wait 0: one try", async () => {
    const hold = await theirs();
    await counter.reset();
    expect(await failure(lock.lock({ wait: 0 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
    await counter.settle();
    expect(counter.all()).toHaveLength(1);
    await hold.unlock();
    await (await lock.lock({ wait: 0 })).unlock();
  });

  test("leaves nothing behind", async () => {
    const hold = await theirs();
    await failure(lock.lock({ wait: 60 }));
    await until("no subscription is left", async () => {
      const [, count] = (await redis.pubsub("NUMSUB", "redisson_lock__channel:{a}")) as [string, number];
      return Number(count) === 0;
    });
    await counter.reset();
    await hold.unlock();
    await counter.settle();
    expect(counter.all()).toHaveLength(1);
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("an outage", () => {
  test("a wait that ends while Redis is away rejects UNAVAILABLE", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 200, pollCap: 100 });
    const hold = await theirs();
    const waiters = [
      await untilWaiting(through, () => through.getLock("a").tryLock(900)),
      await untilWaiting(through, () => through.getLock("a").lock({ wait: 900 })),
    ];
    proxy.refuse();
    for (const { done } of waiters) expect(await failure(done)).toMatchObject({ code: "UNAVAILABLE" });
    proxy.restore();
    await hold.unlock();
  });

  test("a call that waits already survives it, and so do those behind it", async () => {
    await using proxy = await startProxy(server);
    await using through = new LockClient(proxy.connect(), { commandTimeout: 600, pollCap: 200 });
    const mine = through.getLock("a");
    const hold = await theirs();
    const waiters = [
      await untilWaiting(through, () => mine.run((granted) => granted.ownerId)),
      await untilWaiting(through, () => mine.run((granted) => granted.ownerId)),
    ];
    proxy.refuse();
    await new Promise((resolve) => setTimeout(resolve, 1_200)); // longer than a command may take
    await hold.unlock();
    proxy.restore();
    const ids = await Promise.all(waiters.map(({ done }) => done));
    expect(new Set(ids).size).toBe(2);
    await untilGone(redis, "a");
  });
});

describe("signal", () => {
  test("ends the wait at once, with its reason; the others wait on", async () => {
    const hold = await theirs();
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = [
      await untilWaiting(client, () => lock.lock({ signal })),
      await untilWaiting(client, () => lock.tryLock(60_000, 1_000, { signal })),
      await untilWaiting(client, () => lock.run(() => "never", { signal })),
    ];
    const patient = await untilWaiting(client, () => lock.lock());
    const reason = new Error("enough");
    controller.abort(reason);
    for (const { done } of aborted) expect(await failure(done)).toBe(reason);
    await hold.unlock();
    await (await patient.done).unlock();
    expect(await redis.exists("a")).toBe(0);
  });

  test("does nothing once the lock is granted", async () => {
    const controller = new AbortController();
    const hold = await lock.lock({ signal: controller.signal });
    const result = lock.run(() => "never", { signal: controller.signal });
    watch(result);
    controller.abort(new Error("late"));
    expect(hold.isHeld).toBe(true);
    expect(hold.signal.aborted).toBe(false);
    await failure(result);
    await hold.unlock();
  });

  test("with the grant on its way nothing is left behind", async () => {
    await using proxy = await startProxy(server);
    await using slow = new LockClient(proxy.connect());
    await warmUp(slow.getLock("b"));
    proxy.delayReplies(150, named("EVAL", "EVALSHA"));
    const controller = new AbortController();
    const taking = slow.getLock("a").lock({ signal: controller.signal });
    watch(taking);
    await until("it is granted", () => redis.exists("a"));
    const reason = new Error("enough");
    controller.abort(reason);
    expect(await failure(taking)).toBe(reason);
    await untilGone(redis, "a");
  });

  test("the platform's time-out signal", async () => {
    const hold = await theirs();
    expect((await failure(lock.lock({ signal: AbortSignal.timeout(50) }))).name).toBe("TimeoutError");
    await hold.unlock();
  });

  test("one signal for many waiters gives no warning and keeps no listener", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => void warnings.push(warning);
    process.on("warning", onWarning);
    const hold = await theirs();
    const controller = new AbortController();
    const waiters = await Promise.all(
      Array.from({ length: 30 }, () => untilWaiting(client, () => lock.lock({ signal: controller.signal }))),
    );
    controller.abort(new Error("enough"));
    for (const { done } of waiters) expect((await failure(done)).message).toBe("enough");
    process.off("warning", onWarning);
    expect(warnings).toEqual([]);
    await hold.unlock();
  });
});
