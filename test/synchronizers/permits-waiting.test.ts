/** Waiting for expirable permits: woken by message, by the end of a lease, in order, at no cost meanwhile. */
import { describe, expect, test } from "vitest";
import {
  failOnUnhandledRejections,
  manyAtOnce,
  ownCommand,
  pause,
  soon,
  turn,
  type Watched,
  watch,
} from "../faults/harness.js";
import { SLACK, until } from "../support/index.js";
import { failsSoon, NEVER, NO_LEASE, Site, UNKNOWN, useStage } from "./helpers.js";

manyAtOnce();
failOnUnhandledRejections();
const stage = useStage();

const asleep = { pollCap: NEVER };

describe.concurrent("a waiter is woken", () => {
  test.each<[string, (site: Site, id: string) => Promise<unknown>]>([
    ["another client's release", (site, id) => site.permits(1).release(id)],
    ["another client's tryRelease", (site, id) => site.permits(1).tryRelease(id)],
    ["its own client's release", (site, id) => site.permits(0).release(id)],
    ["another client's addPermits", (site) => site.permits(1).addPermits(1)],
    ["another client's setPermits", (site) => site.permits(1).setPermits(2)],
  ])("by %s", async (_, wake) => {
    await using site = await Site.of(stage(), asleep, {});
    await site.permits().trySetPermits(1);
    const held = await site.permits(0).acquire({ lease: NEVER });
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: NEVER }));
    await wake(site, held);
    expect(await soon(waiting)).toMatch(/^[0-9a-f]{32}$/);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("by the end of somebody's lease, without any message", async () => {
    await using site = await Site.of(stage(), { ...asleep, presence: false }, {});
    await site.permits().trySetPermits(1);
    const began = performance.now();
    await site.permits(1).acquire({ lease: 4_000 });
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: NEVER }));
    await soon(waiting, 4_000 + SLACK);
    expect(performance.now() - began).toBeGreaterThan(3_900);
    expect(site.asked()).toBeLessThanOrEqual(6);
    await site.expectPermits(0, 1);
  });

  test("by the end of many leases at once: all who wait are granted, in every process", async () => {
    await using site = await Site.of(stage(), asleep, asleep, {});
    await site.permits().trySetPermits(10);
    await Promise.all(Array.from({ length: 10 }, () => site.permits(2).acquire({ lease: 5_500 })));
    const calls: Watched<string>[] = [];
    for (const i of [0, 1]) {
      calls.push(await site.parked(i, () => site.permits(i).acquire({ lease: NEVER })));
      for (let j = 0; j < 4; j++) calls.push(watch(site.permits(i).acquire({ lease: NEVER })));
    }
    const ids = new Set<string>();
    for (const call of calls) ids.add(await soon(call));
    expect(ids.size).toBe(10);
    await site.expectPermits(0, 10);
  });

  test("by one message of many permits, as many as there are", async () => {
    await using site = await Site.of(stage(), asleep, asleep, {});
    await site.permits().trySetPermits(0);
    const calls: Watched<string>[] = [];
    for (const i of [0, 1]) {
      calls.push(await site.parked(i, () => site.permits(i).acquire({ lease: NEVER })));
      for (let j = 0; j < 9; j++) calls.push(watch(site.permits(i).acquire({ lease: NEVER })));
    }
    await turn();
    await site.permits(2).addPermits(20);
    for (const call of calls) await soon(call);
    await site.expectPermits(0, 20);
  });

  test("by pollCap, when permits were added without a message", async () => {
    await using site = await Site.of(stage(), { pollCap: 400 });
    await site.permits().trySetPermits(0);
    await site.enter(UNKNOWN, NO_LEASE);
    const calls = [await site.parked(0, () => site.permits().acquire({ lease: NEVER }))];
    calls.push(watch(site.permits().acquire({ lease: NEVER })));
    await site.redis.incrby(site.name, 2);
    for (const call of calls) await soon(call, 400 + SLACK);
    await site.expectPermits(0, 3);
  });

  test("permits are granted in the order of the calls", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.permits().trySetPermits(0);
    const order: number[] = [];
    const take = async (i: number): Promise<void> => {
      await site.permits().acquire({ lease: NEVER });
      order.push(i);
    };
    const calls = [await site.parked(0, () => take(0))];
    for (let i = 1; i < 8; i++) calls.push(watch(take(i)));
    for (const permits of [1, 3, 4]) await site.permits(1).addPermits(permits);
    for (const call of calls) await soon(call);
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("100 idle waiters cost at most 5 commands in 3 seconds", async () => {
    await using site = await Site.of(stage(), {});
    await site.permits().trySetPermits(0);
    await site.enter(UNKNOWN, (await site.now()) + NEVER);
    const controller = new AbortController();
    const take = () => site.permits().acquire({ lease: NEVER, signal: controller.signal });
    const calls = [await site.parked(0, take)];
    for (let i = 1; i < 100; i++) calls.push(watch(take()));
    await turn();
    site.bed(0).proxy.clear();
    await pause(3_000);
    expect(site.bed(0).proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    controller.abort("enough");
    for (const call of calls) expect(await failsSoon(call)).toBe("enough");
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });
});

describe.concurrent("a wait that ends", () => {
  test("tryAcquire gives null in time, or at once without a wait", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.permits().trySetPermits(0);
    expect(await site.permits().tryAcquire()).toBeNull();
    expect(await site.permits().tryAcquire(0, 1_000)).toBeNull();
    const call = watch(site.permits().tryAcquire(1_000, 60_000));
    expect(await soon(call)).toBeNull();
    expect(call.took).toBeGreaterThan(990);
    expect(call.took).toBeLessThan(1_000 + SLACK);
    await site.expectPermits(0, 0);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("an abort rejects with the signal's reason, and holds up nobody behind it", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.permits().trySetPermits(0);
    const controller = new AbortController();
    const first = await site.parked(0, () => site.permits().acquire({ signal: controller.signal }));
    const second = watch(site.permits().acquire({ lease: NEVER }));
    await turn();
    controller.abort("enough");
    await turn();
    expect(first.error).toBe("enough");
    await site.permits(1).addPermits(1);
    await soon(second);
    await site.expectPermits(0, 1);
  });

  test("a signal that is aborted already: its reason, and nothing is sent", async () => {
    await using site = await Site.of(stage());
    await site.permits().trySetPermits(5);
    site.bed(0).proxy.clear();
    const signal = AbortSignal.abort("no");
    await expect(site.permits().acquire({ signal })).rejects.toBe("no");
    await expect(site.permits().tryAcquire(0, 1_000, { signal })).rejects.toBe("no");
    await expect(site.permits().tryAcquire(500, undefined, { signal })).rejects.toBe("no");
    expect(site.bed(0).proxy.count(ownCommand)).toBe(0);
  });

  test("an abort with the grant in flight gives the permit back", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.permits().trySetPermits(20);
    site.bed(0).proxy.delayReplies(200, site.own);
    let granted = 0;
    const calls = Array.from({ length: 20 }, async (_, i) => {
      const controller = new AbortController();
      const call = watch(site.permits().acquire({ signal: controller.signal }));
      await Promise.race([pause(15 * i), call.promise.catch(() => {})]);
      controller.abort("enough");
      await turn();
      if (call.state === "resolved") granted++;
      else expect(call.error).toBe("enough");
    });
    await Promise.all(calls);
    site.bed(0).proxy.restore();
    expect(granted).toBeLessThan(18);
    await site.untilValue(String(20 - granted));
    await site.expectPermits(20 - granted, granted);
    expect(site.bed(0).troubles).toEqual([]);
  });

  test("a grant that comes after its lease is over is given back", async () => {
    await using site = await Site.of(stage());
    await site.permits().trySetPermits(2);
    site.bed(0).proxy.delayReplies(600, site.own);
    const call = watch(site.permits().acquire({ lease: 200 }));
    expect(await failsSoon(call)).toMatchObject({ code: "LOCK_LOST", lockName: site.name });
    site.bed(0).proxy.restore();
    await until("it is back", async () => (await site.permits().availablePermits()) === 2);
    await site.expectPermits(2, 0);
  });
});
