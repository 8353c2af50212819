/**
 * Some holds end before their unlock; restarts, stalls and outages leave others alone. These tests show how the client
 * notices a loss, what it tells whom, and what it never does after.
 */
import { describe, expect, test } from "vitest";
import { type Hold, isLockError, LockClient, type LockLostError } from "../../src/index.js";
import { forTest, ownConnections, STEADY, startRedis, startWorker, until } from "../support/index.js";
import { bundledWorker } from "./build-worker.js";
import { atLast, type Bed, manyAtOnce, pause, Stage, script, useStage } from "./harness.js";
import type { Stall } from "./holder-worker.js";
import { expectHeld, expectNothingLeft, untilFree } from "./remains.js";

/** A renewal must notice the loss on the server before the hold's time is over. */
const WATCHED = { watchdogTimeout: STEADY / 2 };

manyAtOnce();
const stage = await useStage("standalone");
const holder = bundledWorker("./holder-worker.ts");

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

describe.concurrent("a restart of the server", () => {
  test("that keeps its data is survived by the watchdog [F22]", async () => {
    await using own = await Stage.start(["standalone"], ["--appendonly", "yes", "--appendfsync", "always"]);
    await using bed = await own.bed({ client: { watchdogTimeout: 15_000 } });
    const hold = await bed.lock.lock();
    let renewed = 0;
    bed.client.on("renewed", () => renewed++);
    await own.server.restart();
    expect(hold.isHeld).toBe(true);
    await until("it is renewed after that", () => renewed > 0);
    await expectHeld(bed, hold.ownerId, 1);
    await hold.unlock();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  test("without its data is told as soon as the connection is back [F22] [B272]", async () => {
    await using own = await Stage.start(["standalone"]);
    // The next renewal by time is twenty minutes away.
    await using bed = await own.bed({ client: { watchdogTimeout: 3_600_000 } });
    const first = await bed.lock.lock();
    await own.server.restart();
    const second = await bed.lock.lock();
    await until("the first one is told", () => first.signal.aborted);
    expect(first.signal.reason).toMatchObject({
      code: "LOCK_LOST",
      reason: expect.stringMatching(/expired|taken/),
    });
    expect(second.isHeld).toBe(true);
    await second.unlock();
    await expectNothingLeft(bed, 20_000);
  });
});

test("after an event loop that stalled beyond the lease the first line finds it over, and the signal follows [F16]", async () => {
  await using bed = await stage.bed();
  await using process = await startWorker(holder());
  await process.request("take", { port: stage.server.port, name: bed.name, watchdogTimeout: 1_500 });
  const stall = await process.request<Stall>("stall", 2_000);
  const over = { isHeld: false, thrown: "LOCK_LOST" };
  expect(stall.first).toMatchObject({ ...over, remaining: 0 });
  expect(stall.afterMicrotask).toMatchObject(over);
  expect(stall.later).toMatchObject({ ...over, aborted: true });
  // The stall may have begun while a renewal was on its way.
  expect(stall.reason).toBeOneOf(["expired", "unreachable"]);
  expect(stall.lostEvents).toBe(1);
  expect(await process.request("unlock")).toBe("LOCK_LOST");
  await untilFree(bed);
  expect(await process.request("unhandled")).toEqual([]);
});

// After a stall the event loop reads the answers that have arrived before timers fire.
test("a hold whose deadline has passed stays lost, whatever answer to a renewal is read then [B2]", async () => {
  await using server = await startRedis();
  const redis = server.connect();
  const own = ownConnections(redis);
  const client = forTest(new LockClient(redis, { watchdogTimeout: 4_500 }));
  // Read anew each time, because ioredis makes a new queue when it connects.
  const unanswered = () => (own[0] as unknown as { commandQueue: { length: number } }).commandQueue.length;
  const hold = await client.getLock("revived").lock();
  server.pause();
  await until("a renewal is on its way", () => unanswered() > 0);
  // The answer to the renewal arrives while the event loop is blocked.
  server.resume();
  const never = new Int32Array(new SharedArrayBuffer(4));
  while (hold.isHeld) Atomics.wait(never, 0, 0, 10);
  Atomics.wait(never, 0, 0, 30);
  expect(hold.isHeld).toBe(false);
  await until("its signal says so", () => hold.signal.aborted);
  expect(hold.isHeld).toBe(false);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
});
