/** Who waits for permits is woken by message, or else by a poll, at no cost while nothing happens. */
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

describe.concurrent("a waiter is woken", () => {
  const wakers: Record<string, (site: Site) => Promise<unknown>> = {
    "another client's release": (site) => site.semaphore(1).release(),
    "its own client's release": (site) => site.semaphore(0).release(),
    "another client's addPermits": (site) => site.semaphore(1).addPermits(2),
    "another client's trySetPermits": async (site) => {
      await site.redis.del(site.name);
      expect(await site.semaphore(1).trySetPermits(3)).toBe(true);
    },
    "the end of another client's run": async (site) => {
      await site.redis.incr(site.name);
      await site.semaphore(1).run(() => {});
    },
  };

  test.each(Object.entries(wakers))("by %s", async (_, wake) => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const waiting = await site.parked(0, () => site.semaphore().acquire());
    await wake(site);
    await soon(waiting);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });

  test("when there are as many permits as it asked for, and not before", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(1);
    const waiting = await site.parked(0, () => site.semaphore().acquire(3));
    await site.semaphore(1).release();
    await site.expectStillWaiting(waiting);
    expect(await site.value()).toBe("2");
    await site.semaphore(1).release(2);
    await soon(waiting);
    await site.expectOnly("1");
  });

  test("one message of many permits wakes as many, in every process", async () => {
    await using site = await Site.of(stage(), asleep, asleep, {});
    await site.semaphore().trySetPermits(0);
    const first = [
      await site.parked(0, () => site.semaphore(0).acquire()),
      await site.parked(1, () => site.semaphore(1).acquire()),
    ];
    const more = [0, 1].flatMap((i) => Array.from({ length: 9 }, () => watch(site.semaphore(i).acquire())));
    await turn();
    await site.semaphore(2).release(20);
    for (const call of [...first, ...more]) await soon(call);
    await site.expectOnly("0");
  });

  test("a message of few permits wakes as few; the others sleep on", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const calls = [await site.parked(0, () => site.semaphore().acquire())];
    for (let i = 0; i < 9; i++) calls.push(watch(site.semaphore().acquire()));
    await site.semaphore(1).release(4);
    await until("four have it", () => over(calls) === 4);
    await site.expectStillWaiting(...calls.slice(4));
    await site.semaphore(1).release(6);
    for (const call of calls) await soon(call);
  });

  test("by a release that falls between its refusal and its subscription", async () => {
    await using site = await Site.of(stage(), { ...asleep, split: true }, {});
    const { proxy, subscribing } = site.bed(0);
    await site.semaphore().trySetPermits(0);
    subscribing.stall();
    const waiting = watch(site.semaphore().acquire());
    await until("it has been refused", () => proxy.count(site.own) >= 2);
    await site.semaphore(1).release();
    expect(await site.listeners()).toBe(0);
    subscribing.restore();
    await soon(waiting);
  });

  test("though its subscriber was killed at the moment of the release", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, asleep, asleep, {});
    await site.semaphore().trySetPermits(0);
    for (let round = 0; round < 10; round++) {
      const calls = [0, 0, 1].map((i) => watch(site.semaphore(i).acquire()));
      await until("both listen", async () => (await site.listeners()) >= 2);
      const kill = own.server.call("CLIENT", "KILL", "TYPE", "pubsub");
      await Promise.all([kill, site.semaphore(2).release(3)]);
      for (const call of calls) await soon(call);
    }
    await site.expectOnly("0");
  });

  test("by a message that is no number, and harmed by none", async () => {
    await using site = await Site.of(stage(), asleep, {});
    await site.semaphore().trySetPermits(0);
    const waiting = await site.parked(0, () => site.semaphore().acquire());
    const [channel = ""] = (await site.redis.pubsub("CHANNELS", `*${site.name}*`)) as string[];
    for (const junk of ["", "-3", "0", "x".repeat(1_000_000), "1e400", "NaN", "99999999999999999999"])
      await site.redis.publish(channel, junk);
    await site.expectStillWaiting(waiting);
    await site.redis.incr(site.name);
    await site.redis.publish(channel, "1");
    await soon(waiting);
  });
});

describe.concurrent("without a message", () => {
  test.each([
    ["released", (site: Site) => site.redis.incrby(site.name, 3)],
    ["set anew", (site: Site) => site.redis.set(site.name, "3")],
  ])("permits that are %s by hand are seen within pollCap, by all who wait", async (_, act) => {
    await using site = await Site.of(stage(), { pollCap: 400 });
    await site.semaphore().trySetPermits(0);
    const calls = [await site.parked(0, () => site.semaphore().acquire())];
    for (let i = 0; i < 2; i++) calls.push(watch(site.semaphore().acquire()));
    await act(site);
    for (const call of calls) await soon(call, 400 + SLACK);
    await site.expectOnly("0");
  });

  test("as behind a subscriber connection that is half open", async () => {
    await using site = await Site.of(stage(), { pollCap: 500, split: true }, {});
    await site.semaphore().trySetPermits(0);
    const waiting = await site.parked(0, () => site.semaphore().acquire());
    site.bed(0).subscribing.blackhole();
    await site.semaphore(1).release();
    await soon(waiting, 500 + SLACK);
  });

  test("200 idle waiters cost at most 5 commands in 3 seconds", async () => {
    await using site = await Site.of(stage(), {});
    await site.semaphore().trySetPermits(0);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [await site.parked(0, () => site.semaphore().acquire(1, { signal }))];
    for (let i = 1; i < 200; i++) calls.push(watch(site.semaphore().acquire(1, { signal })));
    await turn();
    site.bed(0).proxy.clear();
    await pause(3_000);
    expect(over(calls)).toBe(0);
    expect(site.bed(0).proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    controller.abort("enough");
    for (const call of calls) expect(await failsSoon(call)).toBe("enough");
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("nobody listens", async () => (await site.listeners()) === 0);
  });
});
