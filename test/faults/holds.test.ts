/**
 * Holds that end before their unlock: how the loss is noticed, who is told what, and what the client never does after.
 */
import { describe, expect, test } from "vitest";
import { type Hold, isLockError, type LockLostError } from "../../src/index.js";
import { STEADY, until } from "../support/index.js";
import { atLast, type Bed, manyAtOnce, pause, Stage, script, useStage } from "./harness.js";
import { expectNothingLeft, untilFree } from "./remains.js";

/** A renewal must notice the loss on the server before the hold's time is over. */
const WATCHED = { watchdogTimeout: STEADY / 2 };

manyAtOnce();
const stage = await useStage("standalone");

/** All properties of a lost hold agree, and its unlock rejects with the loss. */
async function expectLost(bed: Bed, hold: Hold, reason: string): Promise<void> {
  expect(hold.isHeld).toBe(false);
  expect(hold.remaining).toBe(0);
  expect(hold.signal.aborted).toBe(true);
  const loss = hold.signal.reason as LockLostError;
  expect(isLockError(loss, "LOCK_LOST")).toBe(true);
  expect(loss).toMatchObject({ reason, lockName: hold.lockName });
  expect(Math.abs(Date.now() - loss.since)).toBeLessThan(20_000);
  expect(() => hold.assertHeld()).toThrow(loss);
  await expect(hold.extend(1_000)).rejects.toMatchObject({ code: "LOCK_LOST", reason });
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason });
  expect(lostEvents(bed)).toEqual([expect.objectContaining({ lockName: hold.lockName, reason })]);
  expect(lostEvents(bed)).toMatchObject([{ ownerId: hold.ownerId, kind: bed.kind.kind }]);
}

function lostEvents(bed: Bed): unknown[] {
  return bed.troubles.filter(([name]) => name === "lost").map(([, event]) => event);
}

function untilAborted(hold: Hold): Promise<unknown> {
  return until("the hold's signal has aborted", () => hold.signal.aborted);
}

/** The client sends no renewal from now on, for more than one renewal interval of this lease. */
async function expectNoMoreRenewals(bed: Bed, lease: number): Promise<void> {
  await until("ioredis has sent its queue", () => bed.own.ping());
  bed.proxy.clear();
  await pause(lease / 2);
  expect(bed.proxy.count(script("keep"))).toBe(0);
}

describe.concurrent("lost on the server", () => {
  test("many holds lost at once (FLUSHALL) are all told, though nobody listens to most of them [F21]", async () => {
    await using own = await Stage.start(["standalone"]);
    await using bed = await own.bed({ client: WATCHED });
    const locks = Array.from({ length: 250 }, (_, i) => bed.make(`${bed.name}-${i}`));
    const holds = await Promise.all(locks.map((lock) => lock.lock()));
    await own.server.call("FLUSHALL");
    await until("all are lost", () => lostEvents(bed).length === holds.length);
    expect(holds.some((hold) => hold.isHeld)).toBe(false);
    expect(holds.every((hold) => hold.signal.aborted)).toBe(true); // the signals are read here for the first time
    await expectNothingLeft(bed);
  });
});

describe.concurrent("the local deadline", () => {
  test("connections are swallowed beyond the lease: suspended, then lost as unreachable at the deadline [F19]", async () => {
    // From the failure of a renewal to the deadline it is a third of the lease.
    await using bed = await stage.bed({ client: { watchdogTimeout: STEADY, commandTimeout: 3_000 } });
    const seen: string[] = [];
    bed.client.on("suspended", ({ ownerId, cause }) => {
      seen.push("suspended");
      expect(ownerId).toBe(hold.ownerId);
      expect(cause).toMatchObject({ code: "UNAVAILABLE" });
    });
    bed.client.on("lost", () => seen.push("lost"));
    const hold = await atLast(() => bed.lock.lock());
    const since = performance.now();
    const left = hold.remaining;
    bed.proxy.blackhole();
    await untilAborted(hold);
    expect(seen).toEqual(["suspended", "lost"]);
    expect(performance.now() - since).toBeGreaterThan(left - 2);
    await expectLost(bed, hold, "unreachable");
    bed.proxy.restore();
    await expectNoMoreRenewals(bed, STEADY);
    await untilFree(bed);
  });
});
