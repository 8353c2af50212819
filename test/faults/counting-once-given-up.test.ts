/**
 * Calls that end without an answer: time-outs, aborts, a closed client, a silent or slow network. The caller learns of
 * it in time, and nothing stays on the server once it answers again.
 */
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { PLAIN } from "../contract/kinds.js";
import { SLACK, until } from "../support/index.js";
import { atLast, type Bed, failsSoon, manyAtOnce, pause, script, turn, useStage, watch } from "./harness.js";
import {
  expectHeldBesidesMarkers,
  expectNothingLeft,
  expectNothingLeftSoon,
  ttlOf,
  untilFree,
} from "./remains.js";
import { byTopology } from "./ways.js";

/** A delay that ends only by `restore`. */
const FOREVER = 60_000;

manyAtOnce();

const stage = await useStage("standalone", "cluster");

describe.concurrent.each(byTopology)("%s, %s", (_kind, topology, kind) => {
  test("black hole: tryLock(200) rejects UNAVAILABLE in time and leaves nothing when it is over", async () => {
    await using bed = await stage.bed({ kind, topology });
    bed.proxy.blackhole();
    const call = watch(bed.lock.tryLock(200));
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(200 + SLACK);
    bed.proxy.restore();
    await expectNothingLeftSoon(bed);
  });

  test("stalled network: what was given up is executed late and undone", async () => {
    await using bed = await stage.bed({ kind, topology, client: { commandTimeout: 300 } });
    bed.proxy.stall();
    const call = watch(bed.lock.lock());
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    bed.proxy.restore();
    await until("it was executed after all", async () => Object.keys(await bed.keys()).length > 0);
    await expectNothingLeftSoon(bed);
  });

  test("an abort with the grant in flight rejects at once with the signal's reason and leaves nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    const delays = Array.from({ length: 26 }, (_, i) => i * 10);
    await (await bed.lock.lock()).unlock();
    bed.proxy.delayReplies(200);
    const outcomes = await Promise.all(delays.map((delay, i) => abortAfter(bed, i, delay)));
    expect(outcomes.filter((outcome) => outcome === "aborted").length).toBeGreaterThan(3);
    bed.proxy.restore();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("an abort with a nested grant in flight leaves the outer hold as it was", async () => {
    await using bed = await stage.bed({ kind, topology });
    await bed.client.scope(async () => {
      const outer = await bed.lock.lock();
      await bed.lock.lock();
      await bed.lock.unlock();
      bed.proxy.delayReplies(FOREVER, script("reenter"));
      const controller = new AbortController();
      const call = watch(bed.lock.lock({ signal: controller.signal }));
      await until("it was executed", async () => {
        const value = (await bed.keys())[bed.name]?.value;
        return isDeepStrictEqual(value, kind.fields(outer.ownerId, 2));
      });
      controller.abort("enough");
      await turn();
      expect(call.error).toBe("enough");
      bed.proxy.restore();
      expect(await bed.lock.getHoldCount()).toBeLessThanOrEqual(2);
      await until("it is undone", async () => (await bed.lock.getHoldCount()) === 1);
      await bed.lock.lock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 2);
      await bed.lock.unlock();
      await expectHeldBesidesMarkers(bed, outer.ownerId, 1);
      await bed.lock.unlock();
    });
    await expectNothingLeft(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("an abort and close() right behind it leave nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    bed.proxy.delayReplies(FOREVER, script("acquire"));
    const controller = new AbortController();
    const call = watch(bed.lock.lock({ signal: controller.signal }));
    await until("it was executed", async () => (await ttlOf(bed)) > 0);
    controller.abort("enough");
    const closing = bed.client.close({ timeout: 0 });
    await turn();
    expect(call.error).toBe("enough");
    bed.proxy.restore();
    await closing;
    await bed.redis.ping();
    await expectNothingLeft(bed);
  });

  test("close() right behind a call that was given up leaves nothing", async () => {
    await using bed = await stage.bed({ kind, topology });
    bed.proxy.delayReplies(FOREVER, script("acquire"));
    const call = watch(bed.lock.tryLock(100));
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    setTimeout(() => bed.proxy.restore(), 200);
    await bed.client.close({ timeout: 0 });
    await bed.redis.ping();
    await expectNothingLeft(bed);
  });

  // Repeated, because it is a matter of a millisecond whether close() or the call gives up first.
  test.each(kind === PLAIN ? [1, 2, 3, 4, 5, 6] : [1, 2])(
    "close() while Redis is away (%i): the release and the clean-ups arrive later",
    async () => {
      await using bed = await stage.bed({ kind, topology, client: { commandTimeout: 300 } });
      const hold = await atLast(() => bed.make(`{${bed.name}}-held`).lock());
      bed.proxy.stall();
      const call = watch(bed.lock.lock());
      const closing = bed.client.close({ timeout: 0 });
      await turn();
      expect(call.error).toMatchObject({ code: "CLIENT_CLOSED" });
      expect(hold.isHeld).toBe(false);
      await closing;
      bed.proxy.restore();
      await bed.redis.ping();
      await untilFree(bed);
    },
  );
});

async function abortAfter(bed: Bed, i: number, delay: number): Promise<"aborted" | "granted"> {
  const controller = new AbortController();
  const call = watch(bed.make(`{${bed.name}}-${i}`).lock({ signal: controller.signal }));
  await Promise.race([pause(delay), call.promise.catch(() => {})]);
  const wasGranted = call.state === "resolved";
  controller.abort(new Error(`aborted after ${delay} ms`));
  await turn();
  if (wasGranted) {
    await call.value?.unlock();
    return "granted";
  }
  expect(call.error).toBe(controller.signal.reason);
  return "aborted";
}
