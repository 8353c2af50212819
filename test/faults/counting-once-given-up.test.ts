/** Calls that end without an answer, by an abort or a close: nothing stays on the server once it answers again. */
import { describe, expect, test } from "vitest";
import { PLAIN } from "../contract/kinds.js";
import { atLast, type Bed, manyAtOnce, pause, turn, useStage, watch } from "./harness.js";
import { expectNothingLeftSoon, untilFree } from "./remains.js";
import { byTopology } from "./ways.js";

manyAtOnce();

const stage = await useStage("standalone", "cluster");

describe.concurrent.each(byTopology())("%s, %s", (_kind, topology, kind) => {
  test("an abort with the grant in flight rejects at once with the signal's reason and leaves nothing [F42]", async () => {
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

  // Repeated, because it is a matter of a millisecond whether close() or the call gives up first.
  test.each(kind === PLAIN ? [1, 2, 3] : [1])(
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
