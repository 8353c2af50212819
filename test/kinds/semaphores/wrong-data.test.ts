/** If a key holds other data, a call fails with Redis' error and the name; the data stays unchanged. */
import type { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { failsSoon, manyAtOnce, useStage } from "../../faults/harness.js";
import { failure, keyState, SLACK, until } from "../../support/index.js";
import { calls } from "./calls.js";
import { hear } from "./hear.js";
import { latchChannel, permitChannel, Site, timeoutsOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const DATA: [type: string, write: (redis: Redis, key: string) => Promise<unknown>][] = [
  ["text", (redis, key) => redis.set(key, "paid")],
  ["a fraction", (redis, key) => redis.set(key, "2.5")],
  ["text with a TTL", (redis, key) => redis.set(key, "paid", "PX", 600_000)],
  ["a hash", (redis, key) => redis.hset(key, "a", "b")],
  ["a list", (redis, key) => redis.rpush(key, "a", "b")],
  ["a sorted set", (redis, key) => redis.zadd(key, 1, "a")],
];

/** Calls that look only at the permits in use. */
const BY_ID = ["permits release", "permits tryRelease", "permits updateLeaseTime", "permits acquiredPermits"];
/** Calls that do not look at the permits in use. */
const OF_NUMBER = ["permits trySetPermits", "permits addPermits"];
const atName = calls.filter(([name]) => !BY_ID.includes(name));
const inUse = calls.filter(([name]) => name.startsWith("permits") && !OF_NUMBER.includes(name));

describe.concurrent("other data at the name: text, a fraction, a hash, a list, a sorted set", () => {
  test.each(atName)("%s", async (name, call) => {
    await using site = await Site.of(stage);
    const channel = name.startsWith("latch") ? latchChannel : permitChannel;
    await using heard = await hear(stage, channel(site.name));
    for (const [what, write] of DATA) {
      await site.redis.del(site.name);
      await write(site.redis, site.name);
      const before = await site.state();
      const began = performance.now();
      const error = await failure(call(site));
      expect(performance.now() - began).toBeLessThan(SLACK); // wrong data is no outage, so the call does not wait
      expect(error, what).toMatchObject({ code: "WRONG_DATA", lockName: site.name });
      expect(error.message).toContain(site.name);
      const after = await site.state();
      expect(after, what).toEqual({ ...before, ttl: after.ttl });
      expect(after.ttl < 0).toBe(before.ttl < 0);
      expect(await heard.messages(), what).toEqual([]);
      expect(await site.lasting(), what).toEqual({ [site.name]: before.value });
      expect(await site.redis.exists(timeoutsOf(site.name))).toBe(0);
    }
  });
});

describe.concurrent("data where the permits in use should be", () => {
  test.each(inUse)("%s", async (_, call) => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "5");
    await site.redis.set(timeoutsOf(site.name), "theirs");
    await expect(call(site)).rejects.toMatchObject({ code: "WRONG_DATA", lockName: site.name });
    expect(await site.redis.get(timeoutsOf(site.name))).toBe("theirs");
    expect(await site.value()).toBe("5");
  });
});

describe.concurrent("data that is put there while somebody waits", () => {
  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["semaphore acquire", (site) => site.semaphore().acquire()],
    ["permits acquire", (site) => site.permits().acquire()],
  ])("ends %s", async (_, call) => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "0");
    const waiting = await site.parked(0, () => call(site));
    await site.redis.del(site.name);
    await site.redis.rpush(site.name, "theirs");
    await site.redis.publish(permitChannel(site.name), "1");
    expect(await failsSoon(waiting)).toMatchObject({ code: "WRONG_DATA", lockName: site.name });
    expect(await site.redis.lrange(site.name, 0, -1)).toEqual(["theirs"]);
    await site.untilNobodyListens();
  });

  test("is a loss of kept permits, and stays", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 6_000 });
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
