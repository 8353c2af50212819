/** Waiting for permits of a semaphore: requests of several sizes, and how many of them one message wakes. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import {
  failsSoon,
  manyAtOnce,
  ownCommand,
  pause,
  Stage,
  soon,
  turn,
  useStage,
  type Watched,
  watch,
} from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { asleep, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

const over = (calls: readonly Watched<unknown>[]): number =>
  calls.filter(({ state }) => state !== "pending").length;

describe.concurrent("first come, first served inside a process", () => {
  test("a large request is not starved by small ones that came later", async () => {
    await using site = await Site.of(stage, asleep, {});
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
    await using site = await Site.of(stage, asleep, {});
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
    await using site = await Site.of(stage, asleep, {});
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
    await using site = await Site.of(stage, asleep, {});
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

describe.concurrent("a waiter is woken", () => {
  test("a message of few permits wakes as few; the others sleep on", async () => {
    await using site = await Site.of(stage, asleep, {});
    await site.semaphore().trySetPermits(0);
    const calls = [await site.parked(0, () => site.semaphore().acquire())];
    for (let i = 0; i < 9; i++) calls.push(watch(site.semaphore().acquire()));
    await site.semaphore(1).release(4);
    await until("four have it", () => over(calls) === 4);
    await site.expectStillWaiting(...calls.slice(4));
    await site.semaphore(1).release(6);
    for (const call of calls) await soon(call);
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
    await using site = await Site.of(stage, asleep, {});
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

describe.concurrent("a wait", () => {
  test("an abort ends a run that waits, and one that has not begun", async () => {
    await using site = await Site.of(stage, asleep, {});
    await site.semaphore().trySetPermits(0);
    const controller = new AbortController();
    const run = (signal: AbortSignal) => site.semaphore().run(() => {}, { signal });
    const waiting = await site.parked(0, () => run(controller.signal));
    controller.abort("enough");
    await turn();
    expect(waiting.error).toBe("enough");
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await site.untilNobodyListens();
    await site.semaphore(1).release(3);
    site.bed(0).proxy.clear();
    await expect(run(AbortSignal.abort("no"))).rejects.toBe("no");
    expect(site.bed(0).proxy.count(ownCommand)).toBe(0);
    await site.expectOnly("3");
  });

  test("an outage while they wait is survived: all are granted after the restart", async () => {
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
});
