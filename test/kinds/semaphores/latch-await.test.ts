/** Waiting for a latch: an open latch costs one query; when a latch opens all waiters go on, even if it is set again. */
import { describe, expect, test } from "vitest";
import { manyAtOnce, pause, Stage, soon, turn, useStage, watch } from "../../faults/harness.js";
import { asleep, latchChannel, NEVER, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("await", () => {
  test("gives true at once of a latch that is missing", async () => {
    await using site = await Site.of(stage);
    expect(await site.latch().await()).toBe(true);
    expect(await site.latch().await(0)).toBe(true);
    expect(await site.latch().await(5_000)).toBe(true);
    await site.expectOnly(null);
  });

  test("gives true at once of a count that is not above 0", async () => {
    await using site = await Site.of(stage);
    for (const count of ["0", "-2"]) {
      await site.redis.set(site.name, count);
      expect(await site.latch().await(0)).toBe(true);
      expect(await site.latch().await()).toBe(true);
    }
  });

  test("is not woken by a countDown before the last one", async () => {
    await using site = await Site.of(stage, asleep, {});
    await site.latch().trySetCount(2);
    const waiting = await site.parked(0, () => site.latch().await());
    await site.latch(1).countDown();
    await site.expectStillWaiting(waiting);
    await site.latch(1).countDown();
    expect(await soon(waiting)).toBe(true);
    await site.untilNobodyListens();
  });

  test("wakes all who wait, in every process, by one look each at most", async () => {
    await using site = await Site.of(stage, asleep, asleep, {});
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

  test("is not woken by a message while the count is above 0", async () => {
    await using site = await Site.of(stage, asleep);
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
    await using site = await Site.of(stage, { pollCap: 500 }, {});
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

  test("survives an outage: the latch may have been opened meanwhile", async () => {
    await using own = await Stage.start(["standalone"]);
    await using site = await Site.of(own, { ...asleep, commandTimeout: 2_000 });
    await site.latch().trySetCount(1);
    const waiting = await site.parked(0, () => site.latch().await());
    await own.server.kill();
    await pause(2_500); // longer than commandTimeout
    expect(waiting.state).toBe("pending");
    await own.server.restart(); // without data
    expect(await soon(waiting)).toBe(true);
    expect(site.bed(0).troubles).toEqual([]);
  });
});
