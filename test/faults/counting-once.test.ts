/** Every operation counts once, also if its command never arrives, or is executed and its reply is lost. */
import { describe, expect, test } from "vitest";
import { nextEvent } from "../contract/helpers.js";
import { KINDS, type Kind, PLAIN } from "../contract/kinds.js";
import { type Fault, type Matcher, STEADY } from "../support/index.js";
import { type Bed, manyAtOnce, type ScriptName, script, useStage } from "./harness.js";
import { expectHeld, expectHeldBesidesMarkers, expectNothingLeft, ttlOf } from "./remains.js";
import { everyWay } from "./ways.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

type Strike = (bed: Bed, name: ScriptName) => Fault;
const arm: Record<string, (bed: Bed, match: Matcher) => Fault> = {
  "the reply is lost [F1] [F2] [F4] [F5]": (bed, match) => bed.proxy.cutReplyOf(match),
  "the reply is lost twice [F1] [F2] [F4] [F5]": (bed, match) => bed.proxy.cutReplyOf(match, 2),
  "the request is lost [F3]": (bed, match) => bed.proxy.dropRequest(match),
};

const operations: Record<string, (bed: Bed, strike: Strike) => Promise<void>> = {
  acquire: async (bed, strike) => {
    const fault = strike(bed, "acquire");
    const hold = await bed.lock.lock();
    await fault.done;
    await expectHeld(bed, hold.ownerId, 1);
    await hold.unlock();
    await expectNothingLeft(bed, 20_000);
  },

  "nested acquire": async (bed, strike) => {
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      const fault = strike(bed, "reenter");
      const inner = await bed.lock.lock();
      await fault.done;
      await expectHeld(bed, outer.ownerId, 2);
      expect(await bed.lock.getHoldCount()).toBe(2);
      await inner.unlock();
      expect(await bed.lock.getHoldCount()).toBe(1);
      await outer.unlock();
      await expectNothingLeft(bed, 20_000);
    });
  },

  renewal: async (bed, strike) => {
    const hold = await bed.lock.lock();
    const fault = strike(bed, "renew");
    await nextEvent(bed.client, "renewed");
    await fault.done;
    await expectHeld(bed, hold.ownerId, 1);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await expectNothingLeft(bed, 20_000);
  },

  extend: async (bed, strike) => {
    const hold = await bed.lock.lock({ lease: 10_000 });
    const fault = strike(bed, "extend");
    await hold.extend(60_000);
    await fault.done;
    await expectHeld(bed, hold.ownerId, 1);
    expect(await ttlOf(bed)).toBeGreaterThan(50_000);
    expect(hold.remaining).toBeGreaterThan(50_000);
    await hold.unlock();
    await expectNothingLeft(bed, 20_000);
  },

  "partial release": async (bed, strike) => {
    await bed.client.scope(async () => {
      const holds = [await bed.lock.lock(), await bed.lock.lock(), await bed.lock.lock()];
      const fault = strike(bed, "release");
      await bed.lock.unlock();
      await fault.done;
      // A release that leaves the count above 0 writes no marker.
      await expectHeld(bed, holds[0]?.ownerId ?? "", 2);
      await bed.lock.unlock();
      // There may be a marker now, in case the first release arrives once more.
      await expectHeldBesidesMarkers(bed, holds[0]?.ownerId ?? "", 1);
      await bed.lock.unlock();
      await expectNothingLeft(bed, 20_000);
    });
  },

  "full release": async (bed, strike) => {
    const hold = await bed.lock.lock();
    const fault = strike(bed, "release");
    await hold.unlock();
    await fault.done;
    await expectNothingLeft(bed, 20_000);
    const next = await bed.lock.tryLock();
    await expect(next?.unlock()).resolves.toBeUndefined();
  },

  "release of two holds at once": async (bed, strike) => {
    await bed.client.scope(async () => {
      const [outer, inner] = [await bed.lock.lock(), await bed.lock.lock()];
      const fault = strike(bed, "release");
      await Promise.all([outer.unlock(), inner.unlock()]);
      await fault.done;
      await expectNothingLeft(bed, 20_000);
    });
  },
};

/** A third run of a script is nothing new to it, but to the connection, which is the same for all kinds. */
const armsOf = (kind: Kind) =>
  Object.entries(arm).filter(([what]) => kind === PLAIN || !what.endsWith("twice"));

describe.concurrent.each(everyWay(KINDS))("%s, %s, ioredis %i", (_kind, topology, version, kind) => {
  describe.each(armsOf(kind))("when %s", (_, armed) => {
    test.each(Object.entries(operations))("%s counts once", async (_name, operate) => {
      const client = { watchdogTimeout: STEADY };
      await using bed = await stage.bed({ kind, topology, version, client });
      await operate(bed, (each, name) => armed(each, script(name, each.name)));
      expect(bed.troubles).toEqual([]);
    });
  });
});
