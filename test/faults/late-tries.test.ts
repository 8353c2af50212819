/**
 * Requests that arrive late. The connection is reset while the request is on its way. Then ioredis sends it again, or
 * the call is given up; only after that the old bytes reach the server. They must take no lock, and change no count.
 */
import { describe, expect, test } from "vitest";
import { type HeldRequest, SLACK, until } from "../support/index.js";
import { type Bed, failsSoon, manyAtOnce, type ScriptName, script, useStage, watch } from "./harness.js";
import { expectNothingLeft, expectNothingLeftSoon, untilMarked } from "./remains.js";

manyAtOnce();
const stage = await useStage("standalone", "cluster");

function hold(bed: Bed, operation: ScriptName): HeldRequest {
  return bed.proxy.holdRequest(script(operation, bed.name));
}

/** Withholds the call's request, and refuses the client any other connection to the server. */
async function stuck(bed: Bed, operation: ScriptName): Promise<HeldRequest> {
  const ghost = hold(bed, operation);
  await ghost.fired;
  bed.proxy.refuse();
  return ghost;
}

describe.concurrent.each(["standalone", "cluster"] as const)("%s: a late try", (topology) => {
  test("that arrives after its call was given up and undone gets nothing [F6]", async () => {
    await using bed = await stage.bed({ topology });
    const call = watch(bed.lock.tryLock(200));
    const ghost = await stuck(bed, "take");
    expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
    expect(call.took).toBeLessThan(200 + SLACK);
    bed.proxy.restore();
    await until("its clean-up was sent", () => bed.proxy.count(script("end", bed.name)) > 0);
    await bed.own.ping();
    await untilMarked(bed);
    await ghost.deliver();
    await expectNothingLeft(bed);
    await expectNothingLeftSoon(bed);
  });
});
