/** A key that holds other data gives the Redis error with the name; the data is untouched. */
import type { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { failOnUnhandledRejections, manyAtOnce } from "../faults/harness.js";
import { keyState, SLACK, until } from "../support/index.js";
import { hear } from "./hear.js";
import { failsSoon, latchChannel, permitChannel, Site, timeoutsOf, UNKNOWN, useStage } from "./helpers.js";

manyAtOnce();
failOnUnhandledRejections();
const stage = useStage();

const DATA: [type: string, write: (redis: Redis, key: string) => Promise<unknown>][] = [
  ["text", (redis, key) => redis.set(key, "paid")],
  ["a fraction", (redis, key) => redis.set(key, "2.5")],
  ["text with a TTL", (redis, key) => redis.set(key, "paid", "PX", 600_000)],
  ["a hash", (redis, key) => redis.hset(key, "a", "b")],
  ["a list", (redis, key) => redis.rpush(key, "a", "b")],
  ["a sorted set", (redis, key) => redis.zadd(key, 1, "a")],
];

const CALLS: [name: string, call: (site: Site) => Promise<unknown>][] = [
  ["semaphore trySetPermits", (site) => site.semaphore().trySetPermits(1)],
  ["semaphore acquire", (site) => site.semaphore().acquire()],
  ["semaphore tryAcquire", (site) => site.semaphore().tryAcquire(1, 5_000)],
  ["semaphore release", (site) => site.semaphore().release()],
  ["semaphore addPermits", (site) => site.semaphore().addPermits(1)],
  ["semaphore availablePermits", (site) => site.semaphore().availablePermits()],
  ["semaphore drainPermits", (site) => site.semaphore().drainPermits()],
  ["semaphore run", (site) => site.semaphore().run(() => {})],
  ["permits acquire", (site) => site.permits().acquire()],
  ["permits tryAcquire", (site) => site.permits().tryAcquire(5_000, 60_000)],
  ["permits setPermits", (site) => site.permits().setPermits(1)],
  ["permits addPermits", (site) => site.permits().addPermits(1)],
  ["permits availablePermits", (site) => site.permits().availablePermits()],
  ["permits getPermits", (site) => site.permits().getPermits()],
  ["permits trySetPermits", (site) => site.permits().trySetPermits(1)],
  ["latch trySetCount", (site) => site.latch().trySetCount(1)],
  ["latch countDown", (site) => site.latch().countDown()],
  ["latch await", (site) => site.latch().await()],
  ["latch getCount", (site) => site.latch().getCount()],
];

describe.concurrent.each(DATA)("%s at the name", (_, write) => {
  test.each(CALLS)("%s", async (name, call) => {
    await using site = await Site.of(stage());
    await write(site.redis, site.name);
    const channel = name.startsWith("latch") ? latchChannel : permitChannel;
    await using heard = await hear(stage(), channel(site.name));
    const before = await site.state();
    const began = performance.now();
    const error = await call(site).then(
      (value) => Promise.reject(new Error(`expected a failure, got ${String(value)}`)),
      (reason: unknown) => reason as Error,
    );
    expect(performance.now() - began).toBeLessThan(SLACK); // it is no outage: nothing is waited for
    expect(error).toMatchObject({ code: "WRONG_DATA", lockName: site.name });
    expect(error.message).toContain(site.name);
    const after = await site.state();
    expect(after).toEqual({ ...before, ttl: after.ttl });
    expect(after.ttl < 0).toBe(before.ttl < 0);
    expect(await heard.messages()).toEqual([]);
    expect(await site.lasting()).toEqual({ [site.name]: before.value });
    expect(await site.redis.exists(timeoutsOf(site.name))).toBe(0);
  });
});

describe.concurrent("data where the permits in use should be", () => {
  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["acquire", (site) => site.permits().acquire()],
    ["tryAcquire", (site) => site.permits().tryAcquire(0, 60_000)],
    ["release", (site) => site.permits().release(UNKNOWN)],
    ["tryRelease", (site) => site.permits().tryRelease(UNKNOWN)],
    ["updateLeaseTime", (site) => site.permits().updateLeaseTime(UNKNOWN, 60_000)],
    ["acquiredPermits", (site) => site.permits().acquiredPermits()],
    ["availablePermits", (site) => site.permits().availablePermits()],
    ["getPermits", (site) => site.permits().getPermits()],
    ["setPermits", (site) => site.permits().setPermits(9)],
  ])("%s", async (_, call) => {
    await using site = await Site.of(stage());
    await site.redis.set(site.name, "5");
    await site.redis.set(timeoutsOf(site.name), "theirs");
    await expect(call(site)).rejects.toMatchObject({ code: "WRONG_DATA", lockName: site.name });
    expect(await site.redis.get(timeoutsOf(site.name))).toBe("theirs");
    expect(await site.value()).toBe("5");
  });
});

describe.concurrent("data that is put there while somebody waits", () => {
  test.each<[string, (site: Site) => Promise<unknown>, (name: string) => string]>([
    ["semaphore acquire", (site) => site.semaphore().acquire(), permitChannel],
    ["permits acquire", (site) => site.permits().acquire(), permitChannel],
  ])("ends %s", async (_, call, channel) => {
    await using site = await Site.of(stage());
    await site.redis.set(site.name, "0");
    const waiting = await site.parked(0, () => call(site));
    await site.redis.del(site.name);
    await site.redis.rpush(site.name, "theirs");
    await site.redis.publish(channel(site.name), "1");
    expect(await failsSoon(waiting)).toMatchObject({ code: "WRONG_DATA", lockName: site.name });
    expect(await site.redis.lrange(site.name, 0, -1)).toEqual(["theirs"]);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("is a loss of kept permits, and stays", async () => {
    await using site = await Site.of(stage(), { watchdogTimeout: 6_000 });
    await site.permits().trySetPermits(2);
    const events = site.events();
    const id = await site.permits().acquire();
    const other = site.client(0).getPermitExpirableSemaphore(`${site.name}-other`);
    await other.trySetPermits(1);
    const kept = await other.acquire();
    await site.redis.set(timeoutsOf(site.name), "theirs");
    await until("the loss is told", () => events.of("lost").length > 0);
    expect(events.of("lost")).toMatchObject([{ permitId: id, lockName: site.name }]);
    const before = events.of("renewed").length;
    await until("the other one is renewed", () => events.of("renewed").length > before);
    expect(await site.redis.get(timeoutsOf(site.name))).toBe("theirs");
    await other.release(kept);
    expect((await keyState(site.bed(0).observer, timeoutsOf(`${site.name}-other`))).type).toBe("none");
  });
});
