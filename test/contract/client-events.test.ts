/** Contract section 1: the events of a client, each with its payload. */
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient, type LockEventName } from "../../src/index.js";
import { type FaultProxy, type RedisServer, startProxy, startRedis, until } from "../support/index.js";
import { failure, nextEvent, recordEvents, type SeenEvent, untilWaiting } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let proxy: FaultProxy;
let client: LockClient;
let lock: Lock;
let events: SeenEvent[];
const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown) => void unhandled.push(reason);

beforeAll(async () => {
  process.on("unhandledRejection", onUnhandled);
  server = await startRedis();
  redis = server.connect();
});
afterAll(async () => {
  process.off("unhandledRejection", onUnhandled);
  await server?.stop();
});
beforeEach(async () => {
  await redis.flushall();
  proxy = await startProxy(server);
  client = new LockClient(proxy.connect(), { watchdogTimeout: 1_500, commandTimeout: 450 });
  lock = client.getLock("a");
  await until("Redis answers", () => client.ready().then(() => true));
  events = recordEvents(client);
});
afterEach(async () => {
  proxy.restore();
  await client.close({ timeout: 0 });
  await proxy.stop();
  expect(unhandled).toEqual([]);
});

const named = (name: LockEventName) => events.filter((event) => event.name === name);
const of = (name: LockEventName) => named(name).map(({ payload }) => payload);

const ABOUT = { lockName: "a", kind: "lock" };

describe("payloads", () => {
  test("acquired: waited; released: held", async () => {
    const hold = await lock.lock();
    await new Promise((resolve) => setTimeout(resolve, 60));
    await hold.unlock();
    const about = { ...ABOUT, ownerId: hold.ownerId };
    expect(events).toEqual([
      { name: "acquired", payload: { ...about, waited: expect.any(Number) } },
      { name: "released", payload: { ...about, held: expect.any(Number) } },
    ]);
    expect(of("acquired")[0]?.waited).toBeGreaterThanOrEqual(0);
    expect(of("acquired")[0]?.waited).toBeLessThan(1_000);
    expect(of("released")[0]?.held).toBeGreaterThanOrEqual(50);
    expect(of("released")[0]?.held).toBeLessThan(5_000);
  });

  test("waiting, and what was waited counts from the call", async () => {
    const hold = await lock.lock({ lease: 60_000 });
    const waiter = await untilWaiting(client, () => lock.lock());
    await new Promise((resolve) => setTimeout(resolve, 80));
    await hold.unlock();
    const second = await waiter.done;
    expect(of("waiting")).toEqual([{ ...ABOUT, ownerId: second.ownerId }]);
    expect(of("acquired")[1]).toMatchObject({ ...ABOUT, ownerId: second.ownerId });
    expect(of("acquired")[1]?.waited).toBeGreaterThanOrEqual(70);
    await second.unlock();
  });

  test("each hold has its own, nested ones too, and of a run", async () => {
    await client.scope(async () => {
      await lock.lock();
      await lock.run(() => lock.tryLock());
      await lock.unlock();
      await lock.unlock();
    });
    expect(named("acquired")).toHaveLength(3);
    expect(named("released")).toHaveLength(3);
    expect(new Set(of("acquired").map(({ ownerId }) => ownerId)).size).toBe(1);
    expect(named("waiting")).toEqual([]);
  });

  test("a try that is refused at once announces nothing", async () => {
    const hold = await lock.lock({ lease: 60_000 });
    events.length = 0;
    expect(await lock.tryLock()).toBeNull();
    expect(events).toEqual([]);
    await hold.unlock();
  });

  test("renewed", async () => {
    const hold = await lock.lock();
    await until("renewals", () => named("renewed").length >= 2);
    expect(of("renewed")[0]).toEqual({ ...ABOUT, ownerId: hold.ownerId });
    await hold.unlock();
  });

  test("a hold with a lease is never renewed", async () => {
    const hold = await lock.lock({ lease: 1_600 });
    await until("it is lost", () => hold.signal.aborted);
    expect(named("renewed")).toEqual([]);
  });

  test("suspended: cause; then lost: unreachable", async () => {
    const hold = await lock.lock();
    proxy.blackhole();
    await until("lost", () => named("lost").length > 0);
    const about = { ...ABOUT, ownerId: hold.ownerId };
    expect(of("suspended")[0]).toEqual({ ...about, cause: expect.objectContaining({ code: "UNAVAILABLE" }) });
    expect(of("lost")).toEqual([{ ...about, reason: "unreachable", held: expect.any(Number) }]);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
  });

  test("lost: unreachable, also when the renewal has not even timed out by then", async () => {
    await using patient = new LockClient(proxy.connect(), { watchdogTimeout: 600 });
    const hold = await patient.getLock("a").lock();
    expect(hold.isHeld).toBe(true);
    proxy.blackhole();
    await until("lost", () => hold.signal.aborted);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    proxy.restore();
  });

  test.each([
    ["expired", async () => void (await redis.del("a"))],
    [
      "taken",
      async () => {
        await redis.del("a");
        await redis.hset("a", "somebody:1", "1");
        await redis.pexpire("a", 5_000);
      },
    ],
    ["forced", async () => void (await lock.forceUnlock())],
  ])("lost: %s", async (reason, act) => {
    const hold = await lock.lock();
    await act();
    await until("lost", () => named("lost").length > 0);
    expect(of("lost")).toEqual([{ ...ABOUT, ownerId: hold.ownerId, reason, held: expect.any(Number) }]);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason });
    await failure(hold.unlock());
    expect(named("lost")).toHaveLength(1);
    expect(named("released")).toEqual([]);
  });

  test("error: cause, and what it is about", async () => {
    const owner = await lock.run((hold) => {
      proxy.blackhole();
      return hold.ownerId;
    });
    await until("error", () => named("error").length > 0);
    const cause = expect.objectContaining({ code: "UNAVAILABLE" });
    expect(of("error")[0]).toEqual({ ...ABOUT, ownerId: owner, cause });
  });
});

describe("listeners", () => {
  test("an unheard error throws nothing", async () => {
    await using quiet = new LockClient(proxy.connect(), { watchdogTimeout: 1_500, commandTimeout: 450 });
    await until("Redis answers", () => quiet.ready().then(() => true));
    const result = await quiet.getLock("b").run(() => {
      proxy.blackhole();
      return "done";
    });
    expect(result).toBe("done");
    proxy.restore();
  });

  test("one that throws disturbs no lock", async () => {
    const thrown: string[] = [];
    const names: LockEventName[] = [
      "acquired",
      "released",
      "waiting",
      "renewed",
      "suspended",
      "lost",
      "error",
    ];
    for (const name of names) {
      client.on(name, () => {
        thrown.push(name);
        throw new Error(`of the ${name} listener`);
      });
    }
    const hold = await lock.lock();
    const waiter = lock.lock();
    await until("it waits", () => thrown.includes("waiting"));
    await until("renewals go on", () => thrown.filter((name) => name === "renewed").length >= 2);
    await hold.unlock();
    const second = await waiter;
    await redis.del("a");
    await until("the loss is noticed", () => second.signal.aborted);
    expect(await failure(second.unlock())).toMatchObject({ code: "LOCK_LOST" });
    expect(await lock.run(() => "fine")).toBe("fine");
    expect(new Set(thrown)).toEqual(new Set(["acquired", "waiting", "renewed", "released", "lost"]));
  });

  test("one that throws does not disturb the signal's listeners, nor they it", async () => {
    client.on("lost", () => {
      throw new Error("of the listener");
    });
    const hold = await lock.lock();
    const aborted = new Promise((resolve) => hold.signal.addEventListener("abort", resolve));
    await lock.forceUnlock();
    await aborted;
    expect(named("lost")).toHaveLength(1);
  });

  test("on, once and off; each returns the client", async () => {
    let heard = 0;
    const listener = () => void heard++;
    expect(client.on("acquired", listener)).toBe(client);
    await (await lock.lock()).unlock();
    expect(client.off("acquired", listener)).toBe(client);
    expect(client.once("acquired", listener)).toBe(client);
    await (await lock.lock()).unlock();
    await (await lock.lock()).unlock();
    expect(heard).toBe(2);
  });

  test("acquired comes no later than the call's result, released no later than unlock's", async () => {
    const hold = await lock.lock();
    expect(named("acquired")).toHaveLength(1);
    await hold.unlock();
    expect(named("released")).toHaveLength(1);
  });

  test("those of one client hear nothing of another's locks", async () => {
    await using other = new LockClient(redis);
    const heard = nextEvent(other, "acquired");
    await (await other.getLock("a").lock()).unlock();
    await heard;
    expect(events).toEqual([]);
  });
});
