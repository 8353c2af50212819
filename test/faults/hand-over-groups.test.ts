/** A group of locks as the successor of one of its members, inside one process. */
import { describe, expect, test } from "vitest";
import { MultiLock } from "../../src/index.js";
import { until } from "../support/index.js";
import { manyAtOnce, NEVER, script, soon, turn, useStage, watch } from "./harness.js";
import { PASSED, parked } from "./passing.js";
import { expectNothingLeftSoon, untilFree } from "./remains.js";

const PATIENT = { pollCap: NEVER };

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent.each(PASSED.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
  test("a group of locks inherits a member, gives it back while it waits for another, and leaves nothing", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const beside = bed.make(`${bed.name}~`);
    const group = new MultiLock(bed.lock, beside);
    const [one, two] = [await bed.lock.lock(), await beside.lock()];
    bed.proxy.clear();
    const all = watch(group.lock());
    const next = watch(bed.lock.lock());
    await parked(bed);
    await one.unlock();
    // The group's call waits for the second lock without holding the first one.
    await (await soon(next)).unlock();
    expect(all.state).toBe("pending");
    await two.unlock();
    const hold = await soon(all);
    expect(hold.members).toHaveLength(2);
    const queued = watch(bed.lock.lock());
    await until("it waits", () => bed.proxy.count(script("acquire", bed.name)) > 0);
    await hold.unlock();
    await (await soon(queued)).unlock();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("a group of locks that is aborted while a member is on its way leaves nothing", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const group = new MultiLock(bed.lock, bed.make(`${bed.name}~`));
    const giver = await bed.lock.lock();
    bed.proxy.clear();
    const controller = new AbortController();
    const all = watch(group.lock({ signal: controller.signal }));
    await parked(bed);
    const next = watch(bed.lock.lock());
    bed.proxy.stall();
    const unlocked = watch(giver.unlock());
    await turn();
    controller.abort("enough");
    await turn();
    expect(all.error).toBe("enough");
    bed.proxy.restore();
    await soon(unlocked);
    await (await soon(next)).unlock();
    await untilFree(bed);
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });
});
