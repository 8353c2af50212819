/** Each call on a semaphore or latch counts once, even if its request or its reply is lost or late. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, useStage } from "../../faults/harness.js";
import type { Fault, FaultProxy, Matcher } from "../../support/index.js";
import { hear } from "./hear.js";
import { latchChannel, permitChannel, type Setting, Site } from "./helpers.js";
import { expectAsIs, isOfEachSort, operations, prepare } from "./operations.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const faults: Record<string, (proxy: FaultProxy, match: Matcher) => Fault> = {
  "its reply is lost": (proxy, match) => proxy.cutReplyOf(match),
  "its reply is lost twice": (proxy, match) => proxy.cutReplyOf(match, 2),
  "its request is lost": (proxy, match) => proxy.dropRequest(match),
};

const all = Object.entries(operations);
const few = all.filter(isOfEachSort);
const ways: [string, Setting, typeof all][] = [
  ["default options", {}, all],
  ["autoResendUnfulfilledCommands: false", { redis: { autoResendUnfulfilledCommands: false } }, few],
  ["maxRetriesPerRequest: 0", { redis: { maxRetriesPerRequest: 0 } }, few],
  ["a cluster", { topology: "cluster" }, all],
];

describe.concurrent.each(ways)("%s", (_, way, calls) => {
  describe.each(Object.entries(faults))("when %s", (fault, strike) => {
    test.each(fault.endsWith("twice") ? few : calls)("%s", async (_name, operation) => {
      await using site = await Site.of(stage, way);
      const id = await prepare(site, operation);
      const fault = strike(site.bed(0).proxy, site.own);
      expect(await operation.call(site, id)).toEqual(operation.gives);
      await fault.done;
      await expectAsIs(site, operation, "after");
      expect(site.bed(0).troubles).toEqual([]);
    });
  });

  describe("when its first request arrives after its second", () => {
    test.each(calls)("%s", async (_name, operation) => {
      await using site = await Site.of(stage, way);
      const id = await prepare(site, operation);
      const ghost = site.bed(0).proxy.holdRequest(site.own);
      expect(await operation.call(site, id)).toEqual(operation.gives);
      expect(ghost.hits).toBe(1);
      await ghost.deliver();
      await expectAsIs(site, operation, "after");
    });
  });
});

describe.concurrent("what is late finds things changed, and takes no part in them", () => {
  test("an acquire that was given back since", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(5);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.semaphore().acquire(2);
    await site.semaphore().release(2);
    await ghost.deliver();
    await site.expectOnly("5");
  });

  test("a refused acquire, when there are permits", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(0);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    expect(await site.semaphore().tryAcquire()).toBe(false);
    await site.semaphore().release(4);
    await ghost.deliver();
    await site.expectOnly("4");
  });

  test("a refused acquire of an expirable permit, when there are permits", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(0);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    expect(await site.permits().tryAcquire(0, 5_000)).toBeNull();
    await site.permits().addPermits(4);
    await ghost.deliver();
    await site.expectPermits(4, 0);
  });

  test("an acquire of an expirable permit that was given back since", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(5);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    const id = await site.permits().acquire();
    await site.permits().release(id);
    await ghost.deliver();
    await site.expectPermits(5, 0);
  });

  test("a new lease of a permit that was given back since", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(5);
    const id = await site.permits().acquire();
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.permits().updateLeaseTime(id, 60_000);
    await site.permits().release(id);
    await ghost.deliver();
    await site.expectPermits(5, 0);
  });

  test("a new lease, when there is a later one", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(5);
    const id = await site.permits().acquire({ lease: 5_000 });
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.permits().updateLeaseTime(id, 10_000);
    await site.permits().updateLeaseTime(id, 600_000);
    await ghost.deliver();
    expect((await site.entries()).get(id)).toBeGreaterThan((await site.now()) + 500_000);
  });

  test("a renewal of a permit that was given back since", async () => {
    await using site = await Site.of(stage, { watchdogTimeout: 6_000 });
    await site.permits().trySetPermits(5);
    const id = await site.permits().acquire();
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await ghost.fired;
    await site.permits().release(id);
    await ghost.deliver();
    await site.expectPermits(5, 0);
  });

  test("the last countDown, when the latch was set anew", async () => {
    await using site = await Site.of(stage);
    await site.latch().trySetCount(1);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.latch().countDown();
    expect(await site.latch().trySetCount(3)).toBe(true);
    await ghost.deliver();
    await site.expectOnly("3");
  });

  test("a trySetCount, when the latch is open", async () => {
    await using site = await Site.of(stage);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.latch().trySetCount(1);
    await site.latch().countDown();
    await ghost.deliver();
    await site.expectOnly(null);
  });

  test("a trySetCount that came too late, when the latch is open", async () => {
    await using site = await Site.of(stage, {}, {});
    await site.latch(1).trySetCount(1);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    expect(await site.latch().trySetCount(5)).toBe(false);
    await site.latch(1).countDown();
    await ghost.deliver();
    await site.expectOnly(null);
  });

  test("a drain, when there are permits again", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(5);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    expect(await site.semaphore().drainPermits()).toBe(5);
    await site.semaphore().release(3);
    await ghost.deliver();
    await site.expectOnly("3");
  });

  test("setPermits, when the number was changed since", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(5);
    const ghost = site.bed(0).proxy.holdRequest(site.own);
    await site.permits().setPermits(8);
    await site.permits().setPermits(2);
    await ghost.deliver();
    await site.expectPermits(2, 0);
  });
});

describe.concurrent("what counts once is announced with the right number each time", () => {
  test("a release whose reply is lost", async () => {
    await using site = await Site.of(stage);
    await site.semaphore().trySetPermits(5);
    await using heard = await hear(stage, permitChannel(site.name));
    const fault = site.bed(0).proxy.cutReplyOf(site.own);
    await site.semaphore().release(2);
    await fault.done;
    expect(new Set(await heard.messages())).toEqual(new Set(["7"]));
  });

  test("the last countDown whose reply is lost", async () => {
    await using site = await Site.of(stage);
    await site.latch().trySetCount(1);
    await using heard = await hear(stage, latchChannel(site.name));
    const fault = site.bed(0).proxy.cutReplyOf(site.own);
    await site.latch().countDown();
    await fault.done;
    expect(new Set(await heard.messages())).toEqual(new Set(["0"]));
  });
});
