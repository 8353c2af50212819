/** Waiting for permits: in the order of the calls, and how a wait ends. */
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
  type Watched,
  watch,
} from "../faults/harness.js";
import { SLACK, until } from "../support/index.js";
import { failsSoon, NEVER, Site, useStage } from "./helpers.js";

manyAtOnce();
failOnUnhandledRejections();
const stage = useStage();

const asleep = { pollCap: NEVER };
const over = (calls: readonly Watched<unknown>[]): number =>
  calls.filter(({ state }) => state !== "pending").length;

describe.concurrent("first come, first served inside a process", () => {
  test("permits are granted in the order of the calls", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const order: number[] = [];
    const take = (i: number) =>
      site
        .semaphore()
        .acquire()
        .then(() => order.push(i));
    const calls = [await site.parked(0, () => take(0))];
    for (let i = 1; i < 12; i++) calls.push(watch(take(i)));
    for (const permits of [1, 3, 1, 5, 2]) await site.semaphore(1).release(permits);
    for (const call of calls) await soon(call);
    expect(order).toEqual(Array.from({ length: 12 }, (_, i) => i));
  });

  test("a large request is not starved by small ones that came later", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(2);
    const large = await site.parked(0, () => site.semaphore().acquire(5));
    const small = Array.from({ length: 3 }, () => watch(site.semaphore().acquire(1)));
    await site.semaphore(1).release();
    await site.expectStillWaiting(large, ...small);
    expect(await site.value()).toBe("3");
    await site.semaphore(1).release(2);
    await soon(large);
    await site.expectStillWaiting(...small);
    await site.semaphore(1).release(3);
    for (const call of small) await soon(call);
    await site.expectOnly("0");
  });

  test("a large request is not passed by small ones behind it, when the one before it is served", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const first = await site.parked(0, () => site.semaphore().acquire());
    const behind = [watch(site.semaphore().acquire(5)), watch(site.semaphore().acquire())];
    await turn();
    await site.semaphore(1).release(2);
    await soon(first);
    await site.expectStillWaiting(...behind);
    expect(await site.value()).toBe("1");
    await site.semaphore(1).release(5);
    for (const call of behind) await soon(call);
    await site.expectOnly("0");
  });

  test.each(["aborted", "timed out"])("one that is %s holds up nobody behind it", async (how) => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(2);
    const controller = new AbortController();
    const large = await site.parked<unknown>(0, () =>
      how === "aborted"
        ? site.semaphore().acquire(5, { signal: controller.signal })
        : site.semaphore().tryAcquire(5, 2_000),
    );
    const small = [watch(site.semaphore().acquire()), watch(site.semaphore().acquire())];
    await turn();
    controller.abort("enough");
    for (const call of small) await soon(call);
    if (how === "aborted") expect(await failsSoon(large)).toBe("enough");
    else expect(await soon(large)).toBe(false);
    await site.expectOnly("0");
  });

  test("an abort at the moment of the release loses no permit", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    for (let round = 0; round < 25; round++) {
      const controller = new AbortController();
      const first = watch(site.semaphore().acquire(1, { signal: controller.signal }));
      const second = watch(site.semaphore().acquire());
      await until("they listen", async () => (await site.listeners()) >= 1);
      const released = site.semaphore(1).release();
      if (round % 2) await pause(round % 5);
      controller.abort("enough");
      await released;
      await until("the first is over", () => first.state !== "pending");
      if (first.state === "resolved") await site.semaphore(1).release();
      await soon(second);
      await site.untilValue("0");
    }
  });
});

describe.concurrent("a wait that ends", () => {
  test("tryAcquire without a wait gives false at once, by one command", async () => {
    await using site = await Site.of(stage(), { split: true });
    await site.semaphore().trySetPermits(0);
    site.bed(0).proxy.clear();
    site.bed(0).subscribing.clear();
    expect(await site.semaphore().tryAcquire()).toBe(false);
    expect(await site.semaphore().tryAcquire(1, 0)).toBe(false);
    expect(site.asked()).toBeGreaterThanOrEqual(2);
    expect(site.bed(0).subscribing.count(([verb]) => verb === "SUBSCRIBE")).toBe(0);
    await site.expectOnly("0");
  });

  test("tryAcquire with a wait gives false in time, or true as soon as it can", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const short = watch(site.semaphore().tryAcquire(1, 1_000));
    const long = watch(site.semaphore().tryAcquire(1, NEVER));
    const endless = watch(site.semaphore().tryAcquire(1, Number.POSITIVE_INFINITY));
    expect(await soon(short)).toBe(false);
    expect(short.took).toBeGreaterThan(990);
    expect(short.took).toBeLessThan(1_000 + SLACK);
    await site.expectStillWaiting(long, endless);
    await site.semaphore(1).release(2);
    expect(await soon(long)).toBe(true);
    expect(await soon(endless)).toBe(true);
    await site.expectOnly("0");
  });

  test("an abort rejects with the signal's reason at once and leaves nothing", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const controller = new AbortController();
    const { signal } = controller;
    const first = await site.parked(0, () => site.semaphore().acquire(1, { signal }));
    const calls = [
      first,
      watch(site.semaphore().tryAcquire(1, NEVER, { signal })),
      watch(site.semaphore().run(() => {}, { signal })),
    ];
    const reason = new Error("enough");
    controller.abort(reason);
    await turn();
    expect(calls.map(({ error }) => error)).toEqual([reason, reason, reason]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("nobody listens", async () => (await site.listeners()) === 0);
    await site.semaphore(1).release(3);
    await site.expectOnly("3");
  });

  test("a signal that is aborted already: its reason, and nothing is sent", async () => {
    await using site = await Site.of(stage());
    await site.semaphore().trySetPermits(5);
    site.bed(0).proxy.clear();
    const signal = AbortSignal.abort("no");
    await expect(site.semaphore().acquire(1, { signal })).rejects.toBe("no");
    await expect(site.semaphore().tryAcquire(1, 0, { signal })).rejects.toBe("no");
    await expect(site.semaphore().tryAcquire(1, 100, { signal })).rejects.toBe("no");
    await expect(site.semaphore().run(() => {}, { signal })).rejects.toBe("no");
    expect(site.bed(0).proxy.count(ownCommand)).toBe(0);
  });

  test("an abort with the grant in flight gives the permits back", async () => {
    await using site = await Site.of(stage(), asleep);
    await site.semaphore().trySetPermits(40);
    site.bed(0).proxy.delayReplies(200, site.own);
    let granted = 0;
    const calls = Array.from({ length: 20 }, async (_, i) => {
      const controller = new AbortController();
      const call = watch(site.semaphore().acquire(2, { signal: controller.signal }));
      await Promise.race([pause(15 * i), call.promise.catch(() => {})]);
      controller.abort("enough");
      await turn();
      if (call.state === "resolved") granted++;
      else expect(call.error).toBe("enough");
    });
    await Promise.all(calls);
    site.bed(0).proxy.restore();
    expect(granted).toBeLessThan(18);
    await site.untilValue(String(40 - 2 * granted));
    await site.expectOnly(String(40 - 2 * granted));
  });
});

describe.concurrent("an outage", () => {
  test("while they wait is survived: all are granted after the restart", async () => {
    await using own = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
    await using site = await Site.of(own, { ...asleep, commandTimeout: 2_000 }, {});
    await site.semaphore().trySetPermits(0);
    const calls = [await site.parked(0, () => site.semaphore().acquire())];
    calls.push(watch(site.semaphore().acquire()));
    await own.server.kill();
    await pause(2_500); // longer than commandTimeout
    expect(over(calls)).toBe(0);
    await own.server.restart();
    await site.semaphore(1).release(2);
    for (const call of calls) await soon(call);
    await site.expectOnly("0");
    expect(site.bed(0).troubles).toEqual([]);
  });

  test("in which a wait ends makes it UNAVAILABLE", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { pollCap: 300, commandTimeout: 3_000 });
    await site.semaphore().trySetPermits(0);
    const waiting = await site.parked(0, () => site.semaphore().tryAcquire(1, 5_000));
    own.server.pause();
    expect(await failsSoon(waiting)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
    expect(waiting.took).toBeLessThan(5_000 + SLACK);
    own.server.resume();
    await site.untilValue("0");
  });
});
