/** Restarts of the server, which a hold survives or not, and an answer that comes when a hold is lost. */
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forTest, ownConnections, startRedis, until } from "../support/index.js";
import { manyAtOnce, Stage } from "./harness.js";
import { expectHeld, expectNothingLeft } from "./remains.js";

manyAtOnce();

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
