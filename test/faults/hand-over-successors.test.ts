/**
 * Which calls can be successors inside one process: runs, owners with several calls, members of a group; and when none.
 */
import { describe, expect, test } from "vitest";
import { type Hold, MultiLock } from "../../src/index.js";
import { until } from "../support/index.js";
import { manyAtOnce, script, soon, turn, useStage, watch } from "./harness.js";
import { expectHolder, NEVER, PASS, PASSED, parked } from "./passing.js";
import { channels, expectNothingLeft, expectNothingLeftSoon, listeners, untilFree } from "./remains.js";

const PATIENT = { pollCap: NEVER };

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent.each(PASSED.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
  test("waiting runs have it one after the other, each by the command that ends the one before", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const giver = await bed.lock.lock();
    bed.proxy.clear();
    const order: number[] = [];
    let inside = 0;
    const runs = [0, 1, 2, 3].map((i) =>
      bed.lock.run(async (hold) => {
        expect(++inside).toBe(1);
        order.push(i);
        await expectHolder(bed, hold);
        const nested = await bed.lock.lock();
        await expectHolder(bed, hold, 2);
        await nested.unlock();
        inside--;
      }),
    );
    await parked(bed);
    const begun = performance.now();
    await giver.unlock();
    await Promise.all(runs);
    expect(order).toEqual([0, 1, 2, 3]);
    // After a second in one process the lock is released for all processes.
    const passes = performance.now() - begun < 1_000 ? 3 : 1;
    expect(bed.proxy.count(PASS)).toBeGreaterThanOrEqual(passes);
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  test("calls of one owner that wait re-enter as soon as one of them has inherited it", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const giver = await bed.lock.lock();
    bed.proxy.clear();
    const owner = bed.client.newOwner();
    const first = watch(bed.lock.lock({ owner }));
    const stranger = watch(bed.lock.lock());
    const second = watch(bed.lock.lock({ owner }));
    await parked(bed);
    bed.proxy.clear();
    const unlocked = giver.unlock();
    const third = watch(bed.lock.lock({ owner }));
    await unlocked;
    const holds = [await soon(first), await soon(second), await soon(third)];
    expect(new Set(holds.map(({ ownerId }) => ownerId)).size).toBe(1);
    expect(bed.proxy.count(PASS)).toBe(1);
    await expectHolder(bed, holds[0] as Hold, 3);
    expect(stranger.state).toBe("pending");
    for (const hold of holds) await hold.unlock();
    const last = await soon(stranger);
    await expectHolder(bed, last);
    await last.unlock();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });

  test("an owner whose other call gets the lock first needs nothing of what it was to inherit", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    await using other = await stage.bed({ kind, client: PATIENT });
    const theirs = await bed.lock.lock();
    bed.proxy.clear();
    const owner = bed.client.newOwner();
    const successor = watch(bed.lock.lock({ owner }));
    const outside = watch(other.make(bed.name).lock());
    await parked(bed);
    expect(await channels(stage.server, bed.name)).toHaveLength(1);
    await until("both listen", async () => (await listeners(stage.server, bed.name)) === 2);
    // The command asks the other client first. The owner's second call is sent before the successor's try.
    const unlocked = theirs.unlock();
    const tried = await bed.lock.tryLock(0, undefined, { owner });
    await unlocked;
    const hold = await soon(successor);
    expect(tried?.ownerId).toBe(hold.ownerId);
    await expectHolder(bed, hold, 2);
    expect(outside.state).toBe("pending");
    await tried?.unlock();
    await expectHolder(bed, hold);
    await hold.unlock();
    await (await soon(outside)).unlock();
    await expectNothingLeftSoon(bed);
    expect(bed.troubles).toEqual([]);
  });

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
