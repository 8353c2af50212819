/** Waiting for expirable permits while leases end: those of other clients, and the waiter's own. */
import { describe, expect, test } from "vitest";
import { failsSoon, manyAtOnce, soon, useStage, type Watched, watch } from "../../faults/harness.js";
import { SLACK, until } from "../../support/index.js";
import { asleep, NEVER, Site } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("a waiter for an expirable permit", () => {
  test("is woken by the end of somebody's lease, without any message", async () => {
    await using site = await Site.of(stage, { ...asleep, presence: false }, {});
    await site.permits().trySetPermits(1);
    const began = performance.now();
    await site.permits(1).acquire({ lease: 4_000 });
    const waiting = await site.parked(0, () => site.permits().acquire({ lease: NEVER }));
    await soon(waiting, 4_000 + SLACK);
    expect(performance.now() - began).toBeGreaterThan(3_900);
    expect(site.asked()).toBeLessThanOrEqual(6);
    await site.expectPermits(0, 1);
  });

  test("is woken by the end of many leases at once: all who wait are granted, in every process", async () => {
    await using site = await Site.of(stage, asleep, asleep, {});
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

  test("is told LOCK_LOST if the grant comes after its lease is over; the permit is given back", async () => {
    await using site = await Site.of(stage);
    await site.permits().trySetPermits(2);
    site.bed(0).proxy.delayReplies(600, site.own);
    const call = watch(site.permits().acquire({ lease: 200 }));
    expect(await failsSoon(call)).toMatchObject({ code: "LOCK_LOST", lockName: site.name });
    site.bed(0).proxy.restore();
    await until("it is back", async () => (await site.permits().availablePermits()) === 2);
    await site.expectPermits(2, 0);
  });
});
