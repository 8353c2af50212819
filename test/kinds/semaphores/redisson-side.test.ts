/**
 * Semaphores and latches shared with Redisson: raw commands do what its clients do, and a subscriber hears what they
 * hear.
 */
import { describe, expect, test } from "vitest";
import { manyAtOnce, soon, useStage } from "../../faults/harness.js";
import { hear } from "./hear.js";
import { asleep, latchChannel, NO_LEASE, permitChannel, Site, timeoutsOf } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const THEIRS = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";

describe.concurrent("Redisson acts, our waiters are woken", () => {
  test("a release: INCRBY, and the new total is announced", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "0");
    const waiting = await site.parked(0, () => site.semaphore().acquire(2));
    await site.redis.publish(permitChannel(site.name), String(await site.redis.incrby(site.name, 3)));
    await soon(waiting);
    await site.expectOnly("1");
  });

  test("one permit after the other, each by a message of the total", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "0");
    const waiting = await site.parked(0, () => site.semaphore().acquire(3));
    for (let i = 1; i <= 3; i++)
      await site.redis.publish(permitChannel(site.name), String(await site.redis.incrby(site.name, 1)));
    await soon(waiting);
    await site.expectOnly("0");
  });

  test("a drain and a negative addPermits are taken as they come", async () => {
    await using site = await Site.of(stage);
    await site.redis.set(site.name, "0");
    await site.redis.set(site.name, "-2"); // the SET of a negative addPermits(): the value plus the argument
    await site.redis.publish(permitChannel(site.name), "-2");
    expect(await site.semaphore().tryAcquire()).toBe(false);
    expect(await site.semaphore().availablePermits()).toBe(-2);
    await site.semaphore().release(3);
    await site.expectOnly("1");
  });

  test("an expirable permit is given back: ZREM, INCRBY, and the new total is announced", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "0");
    await site.enter(THEIRS, NO_LEASE);
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: 60_000 }));
    await site.redis
      .multi()
      .zrem(timeoutsOf(site.name), Buffer.from(THEIRS, "hex"))
      .incrby(site.name, 1)
      .publish(permitChannel(site.name), "1")
      .exec();
    await soon(waiting);
    await site.expectPermits(0, 1);
  });

  test("a list of permits is given back: the message is their number, not the total", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "0");
    const ids = Array.from({ length: 3 }, (_, i) => `${i}`.repeat(32));
    for (const id of ids) await site.enter(id, NO_LEASE);
    const waiting = [await site.parked(0, () => site.permits().acquire({ lease: 60_000 }))];
    await site.redis
      .multi()
      .zrem(timeoutsOf(site.name), ...ids.map((id) => Buffer.from(id, "hex")))
      .incrby(site.name, 3)
      .publish(permitChannel(site.name), "3")
      .exec();
    for (const call of waiting) await soon(call);
    await site.expectPermits(2, 1);
  });

  test("the last countDown: DECR, DEL, and 0 is announced", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "1");
    const waiting = await site.parked(0, () => site.latch().await());
    await site.redis.multi().decr(site.name).del(site.name).publish(latchChannel(site.name), "0").exec();
    expect(await soon(waiting)).toBe(true);
  });

  test("a permit with a lease of theirs is granted to us when it is over", async () => {
    await using site = await Site.of(stage, asleep);
    await site.redis.set(site.name, "0");
    await site.enter(THEIRS, (await site.now()) + 1_000);
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: 60_000 }));
    await soon(waiting);
    expect((await site.entries()).has(THEIRS)).toBe(false);
    await site.expectPermits(0, 1);
  });
});

describe.concurrent("we act, Redisson's clients find what they expect", () => {
  test("an expirable permit: the free ones and the entry, in Redisson's form", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(3);
    const id = await site.permits().acquire({ lease: 60_000 });
    expect(await site.value()).toBe("2");
    const score = await site.redis.zscore(timeoutsOf(site.name), Buffer.from(id, "hex"));
    expect(String(score)).toMatch(/^\d{13}$/); // whole milliseconds
    // Redisson gives the permit back.
    await site.redis.zrem(timeoutsOf(site.name), Buffer.from(id, "hex"));
    await site.redis.incrby(site.name, 1);
    await expect(site.permits().release(id)).rejects.toMatchObject({ code: "NOT_OWNER" });
    await site.expectPermits(3, 0);
  });

  test("messages are whole numbers, each after what it tells", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, permitChannel(site.name));
    await site.semaphore().trySetPermits(4);
    await site.semaphore().acquire(3);
    await site.semaphore().release(2);
    await site.semaphore().addPermits(2);
    await site.semaphore().drainPermits();
    expect(await heard.messages()).toEqual(["4", "3", "5"]);
  });

  test("a latch: 1 when it is set, 0 when it opens", async () => {
    await using site = await Site.of(stage);
    await using heard = await hear(stage, latchChannel(site.name));
    await site.latch().trySetCount(2);
    await site.latch().countDown();
    await site.latch().countDown();
    await site.latch().countDown();
    expect(await heard.messages()).toEqual(["1", "0"]);
  });

  test("nothing of ours stays for ever beside Redisson's keys", async () => {
    await using site = await Site.of(stage, { commandTimeout: 3_000 });
    await site.permits().trySetPermits(3);
    const { proxy } = site.bed(0);
    const ids: string[] = [];
    for (const arm of [() => proxy.cutReplyOf(site.own), () => proxy.dropRequest(site.own)]) {
      arm();
      ids.push(await site.permits().acquire({ lease: 600_000 }));
    }
    for (const id of ids) {
      proxy.cutReplyOf(site.own);
      await site.permits().release(id);
    }
    await site.expectPermits(3, 0);
    for (const [key, { ttl }] of Object.entries(await site.bed(0).keys())) {
      if (key === site.name) continue;
      expect(ttl, key).toBeGreaterThan(0);
      expect(ttl, key).toBeLessThanOrEqual(60_000);
    }
  });
});
