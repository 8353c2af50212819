/** Renewal outlives a restart, and tells what a restart took. */
import { describe, expect, test } from "vitest";
import { until } from "../support/index.js";
import { manyAtOnce, Stage } from "./harness.js";
import { expectHeld, expectNothingLeft } from "./remains.js";

manyAtOnce();

describe.concurrent("the watchdog", () => {
  test("survives a restart of the server that keeps its data [F22]", async () => {
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

  test("tells what a restart without data took as soon as the connection is back [F22] [B272]", async () => {
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
