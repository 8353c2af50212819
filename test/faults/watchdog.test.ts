/** Renewal outlives leases and outages, never creates a lock, never follows an unlock, and leaves no key without TTL. */
import { describe, expect, test } from "vitest";
import { STEADY, until } from "../support/index.js";
import { type Bed, manyAtOnce, pause, Stage, script, useStage } from "./harness.js";
import { expectHeld, expectNothingLeft, untilFree } from "./remains.js";

manyAtOnce();
const stage = await useStage("standalone");

/** Looks at the keys of a bed's lock all the time; the test fails if a key was ever without TTL. */
function sampleTtls(bed: Bed): { readonly samples: () => number; stop(): Promise<void> } {
  let running = true;
  let samples = 0;
  const immortal: string[] = [];
  const sampling = (async () => {
    for (; running; samples++) {
      for (const [key, { ttl }] of Object.entries(await bed.keys())) {
        // A queue may be without TTL as long as it has entries.
        if (ttl === -1 && !bed.kind.keeps(key) && !key.startsWith("redisson_lock_")) immortal.push(key);
      }
      await pause(2);
    }
  })();
  sampling.catch(() => {}); // the test may have failed already
  return {
    samples: () => samples,
    stop: async () => {
      running = false;
      await sampling;
      expect(immortal).toEqual([]);
    },
  };
}

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

  test("never renews after an unlock: 20 unlocks around the moment of the renewal [F20]", async () => {
    await using bed = await stage.bed({ client: { watchdogTimeout: STEADY } });
    const log: [verb: string, key: string][] = [];
    bed.proxy.onCommand(({ command }) => {
      for (const verb of ["keep", "end"] as const) {
        if (script(verb)(command)) for (const word of command) log.push([verb, word]);
      }
    });
    await Promise.all(
      Array.from({ length: 20 }, async (_, i) => {
        const name = `${bed.name}-${i}`;
        const hold = await bed.make(name).lock();
        await pause(STEADY / 3 - 15 + 1.5 * i); // the renewal is due after a third of STEADY
        await hold.unlock();
      }),
    );
    await pause(500);
    for (let i = 0; i < 20; i++) {
      const name = `${bed.name}-${i}`;
      const about = log.filter(([, word]) => word === name).map(([verb]) => verb);
      expect(about.indexOf("end"), name).toBe(about.length - 1);
    }
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  test("no key is ever without TTL, through nested holds, extends, partial releases, losses and aborts", async () => {
    await using bed = await stage.bed({ client: { watchdogTimeout: STEADY } });
    const sampler = sampleTtls(bed);
    const end = performance.now() + 1_500;
    for (let i = 0; performance.now() < end || i < 10 || sampler.samples() <= 5; i++) {
      await bed.client.scope(async () => {
        const outer = await bed.lock.lock(i % 2 ? {} : { lease: STEADY });
        await bed.lock.lock();
        await outer.extend(STEADY + 1_000);
        if (i % 5 === 4) await stage.server.call("DEL", bed.name);
        await bed.lock.unlock().catch(() => {});
        await pause(10);
        await bed.lock.unlock().catch(() => {});
      });
      const controller = new AbortController();
      const call = bed.lock.lock({ signal: controller.signal });
      controller.abort("enough");
      await expect(call).rejects.toBe("enough");
    }
    await sampler.stop();
    await untilFree(bed);
  });
});
