/** How many permits an expirable semaphore has, free and in use, and who changes that. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, useStage } from "../faults/harness.js";
import { hear } from "./hear.js";
import { permitChannel, Site, timeoutsOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("the counts", () => {
  test("trySetPermits sets once, and announces", async () => {
    await using site = await Site.of(stage, {}, {});
    await using heard = await hear(stage, permitChannel(site.name));
    expect(await site.permits(0).trySetPermits(4)).toBe(true);
    expect(await site.permits(1).trySetPermits(9)).toBe(false);
    expect(await heard.messages()).toEqual(["4"]);
    await site.expectOnly("4");
  });

  test("availablePermits, acquiredPermits, getPermits", async () => {
    await using site = await Site.of(stage);
    const counts = async () => [
      await site.permits().availablePermits(),
      await site.permits().acquiredPermits(),
      await site.permits().getPermits(),
    ];
    expect(await counts()).toEqual([0, 0, 0]);
    await site.expectOnly(null);
    await site.permits().trySetPermits(5);
    expect(await counts()).toEqual([5, 0, 5]);
    const ids = [await site.permits().acquire(), await site.permits().acquire({ lease: 60_000 })];
    expect(await counts()).toEqual([3, 2, 5]);
    for (const id of ids) await site.permits().release(id);
    expect(await counts()).toEqual([5, 0, 5]);
  });

  test("addPermits adds to the free ones, and makes what is missing", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.permits().addPermits(2);
    await site.expectOnly("2");
    await site.permits().acquire({ lease: 60_000 });
    await site.permits().addPermits(3);
    await site.expectPermits(4, 1);
    expect(await site.permits().getPermits()).toBe(5);
    expect(await heard.messages()).toHaveLength(2);
  });

  test("setPermits sets the total: those in use count", async () => {
    await using site = await Site.of(stage);
    await site.permits().setPermits(3);
    await site.expectOnly("3");
    const ids = [await site.permits().acquire(), await site.permits().acquire()];
    await site.permits().setPermits(10);
    await site.expectPermits(8, 2);
    await site.permits().setPermits(2);
    await site.expectPermits(0, 2);
    expect(await site.permits().getPermits()).toBe(2);
    for (const id of ids) await site.permits().release(id);
    await site.expectPermits(2, 0);
  });

  test("fewer than are in use: the free ones go below 0, which is never announced", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(3);
    const ids = [
      await site.permits().acquire(),
      await site.permits().acquire(),
      await site.permits().acquire(),
    ];
    await using heard = await hear(stage, permitChannel(site.name));
    await site.permits().setPermits(1);
    await site.expectPermits(-2, 3);
    expect(await site.permits().getPermits()).toBe(1);
    expect(await site.permits().tryAcquire()).toBeNull();
    for (const id of ids) await site.permits().release(id);
    await site.expectPermits(1, 0);
    expect((await heard.messages()).filter((message) => Number(message) < 0)).toEqual([]);
    await site.permits().setPermits(0);
    await site.expectPermits(0, 0);
  });

  test("a TTL of the number of permits is kept", async () => {
    await using site = await Site.of(stage);
    const calls: (() => Promise<unknown>)[] = [
      () => site.permits().acquire({ lease: 60_000 }),
      async () => site.permits().release(await site.permits().acquire()),
      () => site.permits().addPermits(2),
      () => site.permits().setPermits(2),
      () => site.permits().setPermits(20),
      () => site.permits().availablePermits(),
    ];
    for (const call of calls) {
      await site.redis.del(timeoutsOf(site.name));
      await site.redis.set(site.name, "5", "PX", 600_000);
      await call();
      const { ttl } = await site.state();
      expect(ttl).toBeGreaterThan(500_000);
      expect(ttl).toBeLessThanOrEqual(600_000);
    }
  });

  test("the permits in use of a semaphore with a TTL have that TTL too, as by Redisson", async () => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "5", "PX", 600_000);
    await site.permits().acquire({ lease: 5_000 });
    const { ttl } = await site.state(timeoutsOf(site.name));
    expect(ttl).toBeGreaterThan(500_000);
    expect(ttl).toBeLessThanOrEqual(600_000);
  });
});
