/** Waiting for a latch to open: woken by message, at no cost meanwhile, and how a wait ends. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import {
  failOnUnhandledRejections,
  manyAtOnce,
  ownCommand,
  pause,
  Stage,
  soon,
  turn,
  watch,
} from "../faults/harness.js";
import { SLACK, until } from "../support/index.js";
import { failsSoon, latchChannel, NEVER, Site, useStage } from "./helpers.js";

manyAtOnce();
failOnUnhandledRejections();
const stage = useStage();

const asleep = { pollCap: NEVER };

describe.concurrent("await", () => {
  test("gives true at once of a latch that is missing", async () => {
    await using site = await Site.of(stage());
    expect(await site.latch().await()).toBe(true);
    expect(await site.latch().await(0)).toBe(true);
    expect(await site.latch().await(5_000)).toBe(true);
    await site.expectOnly(null);
  });

  test("gives true at once of a count that is not above 0", async () => {
    await using site = await Site.of(stage());
    for (const count of ["0", "-2"]) {
      await site.redis.set(site.name, count);
      expect(await site.latch().await(0)).toBe(true);
      expect(await site.latch().await()).toBe(true);
    }
  });

  test("gives false when its wait is over, also of 0", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.latch().trySetCount(1);
    expect(await site.latch().await(0)).toBe(false);
    const begun = performance.now();
    expect(await site.latch().await(1_000)).toBe(false);
    const took = performance.now() - begun;
    expect(took).toBeGreaterThan(990);
    expect(took).toBeLessThan(1_000 + SLACK);
    await site.expectOnly("1");
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("is woken by the last countDown, not by one before", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.latch().trySetCount(2);
    const waiting = await site.parked(0, () => site.latch().await());
    await site.latch(1).countDown();
    await site.expectStillWaiting(waiting);
    await site.latch(1).countDown();
    expect(await soon(waiting)).toBe(true);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("wakes all who wait, in every process, by one look each at most", async () => {
    await using site = await Site.of(stage(), asleep, asleep, {});
    await site.latch().trySetCount(1);
    const calls = [
      await site.parked(0, () => site.latch(0).await()),
      await site.parked(1, () => site.latch(1).await(NEVER)),
    ];
    for (let i = 0; i < 60; i++) calls.push(watch(site.latch(i % 2).await(i % 3 ? NEVER : undefined)));
    await turn();
    site.bed(0).proxy.clear();
    await site.latch(2).countDown();
    for (const call of calls) expect(await soon(call)).toBe(true);
    expect(site.asked(0)).toBeLessThanOrEqual(32);
  });

  test("is woken by a countDown that falls between its look and its subscription", async () => {
    await using site = await Site.of(stage(), { ...asleep, split: true }, {});
    await site.latch().trySetCount(1);
    const { proxy, subscribing } = site.bed(0);
    subscribing.stall();
    const waiting = watch(site.latch().await());
    await until("it has looked", () => proxy.count(site.own) >= 2);
    await site.latch(1).countDown();
    subscribing.restore();
    expect(await soon(waiting)).toBe(true);
  });

  test.each<[string, (site: Site) => Promise<unknown>]>([
    ["is deleted by hand", (site) => site.redis.del(site.name)],
    ["lapses", (site) => site.redis.pexpire(site.name, 50)],
  ])("notices within pollCap that the latch %s", async (_, act) => {
    await using site = await Site.of(stage(), { pollCap: 400 });
    await site.latch().trySetCount(3);
    const calls = [await site.parked(0, () => site.latch().await())];
    for (let i = 0; i < 5; i++) calls.push(watch(site.latch().await()));
    await act(site);
    for (const call of calls) expect(await soon(call, 400 + SLACK)).toBe(true);
  });

  test("is woken by a delete of Redisson's, which announces 1", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.latch().trySetCount(3);
    const waiting = await site.parked(0, () => site.latch().await());
    await site.redis.del(site.name);
    await site.redis.publish(latchChannel(site.name), "1");
    expect(await soon(waiting)).toBe(true);
  });

  test("is not woken by a message while the count is above 0", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.latch().trySetCount(3);
    const waiting = await site.parked(0, () => site.latch().await());
    for (const message of ["0", "1", "", "junk", "-1"])
      await site.redis.publish(latchChannel(site.name), message);
    await site.expectStillWaiting(waiting);
    await site.redis.del(site.name);
    await site.redis.publish(latchChannel(site.name), "0");
    expect(await soon(waiting)).toBe(true);
  });

  test("opens for who waited though the latch is set again at once", async () => {
    await using site = await Site.of(stage(), { pollCap: 500 }, {});
    for (let round = 0; round < 10; round++) {
      await site.latch(1).trySetCount(1);
      const waiting = await site.parked(0, () => site.latch().await());
      await site.latch(1).countDown();
      if (round % 2) await soon(waiting);
      await site.latch(1).trySetCount(1);
      await site.latch(1).countDown();
      expect(await soon(waiting)).toBe(true);
    }
  });

  test("can be aborted at once, and leaves nothing", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.latch().trySetCount(1);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [
      await site.parked(0, () => site.latch().await(undefined, { signal })),
      watch(site.latch().await(NEVER, { signal })),
    ];
    controller.abort("enough");
    await turn();
    expect(calls.map(({ error }) => error)).toEqual(["enough", "enough"]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("with a signal that is aborted already sends nothing", async () => {
    await using site = await Site.of(stage());
    site.bed(0).proxy.clear();
    const signal = AbortSignal.abort("no");
    await expect(site.latch().await(undefined, { signal })).rejects.toBe("no");
    await expect(site.latch().await(0, { signal })).rejects.toBe("no");
    expect(site.bed(0).proxy.count(ownCommand)).toBe(0);
  });

  test("100 who wait cost at most 5 commands in 3 seconds", async () => {
    await using site = await Site.of(stage(), {});
    await site.latch().trySetCount(1);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [await site.parked(0, () => site.latch().await(undefined, { signal }))];
    for (let i = 1; i < 100; i++) calls.push(watch(site.latch().await(undefined, { signal })));
    await pause(200);
    site.bed(0).proxy.clear();
    await pause(3_000);
    expect(site.bed(0).proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    controller.abort("enough");
    for (const call of calls) expect(await failsSoon(call)).toBe("enough");
  });

  test("survives an outage: the latch may have been opened meanwhile", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { ...asleep, commandTimeout: 2_000 });
    await site.latch().trySetCount(1);
    const waiting = await site.parked(0, () => site.latch().await());
    await own.server.kill();
    await pause(2_500); // longer than commandTimeout
    expect(waiting.state).toBe("pending");
    await own.server.restart(); // empty
    expect(await soon(waiting)).toBe(true);
    expect(site.bed(0).troubles).toEqual([]);
  });

  test("whose wait ends while Redis is away is UNAVAILABLE", async () => {
    await using own = await Stage.start(["standalone"]);
    // Away is who has been silent for a tenth of it.
    await using site = await Site.of(own, { pollCap: 200, commandTimeout: 3_000 });
    await site.latch().trySetCount(1);
    const waiting = await site.parked(0, () => site.latch().await(5_000));
    own.server.pause();
    expect(await failsSoon(waiting)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
    own.server.resume();
  });
});
