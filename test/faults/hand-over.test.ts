/** A lock that goes from hand to hand inside one process: order, cost, leases, events; and the command counts once. */
import { beforeEach, describe, expect, test } from "vitest";
import { FencedHold, type Hold } from "../../src/index.js";
import { PLAIN } from "../contract/kinds.js";
import { type Fault, type HeldRequest, until } from "../support/index.js";
import { type Bed, manyAtOnce, NEVER, script, soon, turn, useStage, watch } from "./harness.js";
import { expectHolder, lineUp, needCounted, PASS, PASSED, parked } from "./passing.js";
import { expectHeldBesidesMarkers, expectNothingLeft, untilFree } from "./remains.js";
import { everyWay } from "./ways.js";

const WAITERS = 12;
const PATIENT = { pollCap: NEVER };

manyAtOnce();
const stage = await useStage("standalone", "cluster");

const table = everyWay(PASSED);

/** Events about holds, as `acquired 3` where 3 is the owner's place in the order of the grants. */
function notedEvents(bed: Bed): string[] {
  const noted: string[] = [];
  const owners: string[] = [];
  bed.client.on("acquired", ({ ownerId }) => noted.push(`acquired ${owners.push(String(ownerId)) - 1}`));
  bed.client.on("released", ({ ownerId }) => noted.push(`released ${owners.indexOf(String(ownerId))}`));
  return noted;
}

// These tests run one after the other, because the policy asks other processes at certain times.
describe.each(table)("%s, %s, ioredis %i", (_kind, topology, version, kind) => {
  test("goes to all who wait in the order of their calls, each by one command", async () => {
    await using bed = await stage.bed({ kind, topology, version, client: PATIENT });
    const events = notedEvents(bed);
    const first = await bed.lock.lock();
    bed.proxy.clear();
    const order: number[] = [];
    const tokens: bigint[] = [];
    const owners = new Set<string>();
    const visit = async (i: number): Promise<void> => {
      const hold: Hold = await bed.lock.lock();
      order.push(i);
      owners.add(hold.ownerId);
      if (hold instanceof FencedHold) tokens.push(hold.token);
      // A waiter that becomes the first on the write side tells the server so, and needs its answer.
      await bed.redis.ping();
      await turn();
      await hold.unlock();
    };
    const visits = Array.from({ length: WAITERS }, (_, i) => visit(i));
    await parked(bed);
    bed.proxy.clear();
    await first.unlock();
    await Promise.all(visits);
    expect(order).toEqual(Array.from({ length: WAITERS }, (_, i) => i));
    expect(owners.size).toBe(WAITERS);
    const passes = bed.proxy.count(PASS);
    expect(passes + bed.proxy.count(script("release"))).toBe(WAITERS + 1);
    // A waiter may be trying at the moment of the release: it was told that others are asked, or became the first of the
    // write side. It gets the lock by that try, so this is no hand-over.
    expect(passes).toBeGreaterThanOrEqual(kind.name === "write side" ? 1 : WAITERS / 2);
    expect(bed.proxy.count(script("acquire"))).toBeLessThanOrEqual(2 * WAITERS);
    expect(tokens).toEqual(rising(tokens));
    expect(tokens).toHaveLength(kind.name === "fenced lock" ? WAITERS : 0);
    // The "released" event of each hold comes before the "acquired" event of the next one.
    expect(events).toEqual(
      Array.from({ length: WAITERS + 1 }, (_, i) => [`acquired ${i}`, `released ${i}`]).flat(),
    );
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });
});

describe.concurrent.each(table)("%s, %s, ioredis %i", (_kind, topology, version, kind) => {
  beforeEach((context) => needCounted(topology, context));

  test.each<[string, (bed: Bed) => Fault]>([
    ["the reply is lost", (bed) => bed.proxy.cutReplyOf(PASS)],
    ["the reply is lost twice", (bed) => bed.proxy.cutReplyOf(PASS, 2)],
    ["the request is lost", (bed) => bed.proxy.dropRequest(PASS)],
  ])("counts once when %s", async (_, arm) => {
    await using bed = await stage.bed({ kind, topology, version, client: PATIENT });
    const { giver, successor, next } = await lineUp(bed);
    const fault = arm(bed);
    await giver.unlock();
    await fault.done;
    const hold = await soon(successor);
    await expectHolder(bed, hold);
    // The reply to the repeated command told the successor, so it did not try.
    expect(bed.proxy.count(script("acquire", hold.ownerId))).toBe(0);
    expect(await bed.lock.getHoldCount({ owner: hold })).toBe(1);
    expect(next.state).toBe("pending");
    await hold.unlock();
    const last = await soon(next);
    const tokens = [giver, hold, last].map((each) => (each as FencedHold).token ?? 0n);
    if (kind.name === "fenced lock") expect(tokens).toEqual(rising(tokens));
    await expectHeldBesidesMarkers(bed, last.ownerId, 1);
    await last.unlock();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });
});

describe.concurrent.each(PASSED.map((kind) => [kind.name, kind] as const))("%s", (_, kind) => {
  test.each([
    ["while the successor has the lock", false],
    ["when all is over", true],
  ])("a command that arrives once more %s changes nothing", async (_name, over) => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const { giver, successor, next } = await lineUp(bed);
    const late: HeldRequest = bed.proxy.holdRequest(PASS);
    await giver.unlock();
    const hold = await soon(successor);
    if (!over) await late.deliver();
    await expectHolder(bed, hold);
    await hold.unlock();
    await (await soon(next)).unlock();
    if (over) await late.deliver();
    await expectNothingLeft(bed, 20_000);
    expect(bed.troubles).toEqual([]);
  });

  test("what is renewed is renewed in every hand; a leased one behind it is not", async () => {
    await using bed = await stage.bed({ kind, client: { ...PATIENT, watchdogTimeout: 4_500 } });
    const renewed: string[] = [];
    bed.client.on("renewed", ({ ownerId }) => renewed.push(String(ownerId)));
    const giver = await bed.lock.lock();
    bed.proxy.clear();
    const successor = watch(bed.lock.lock());
    const next = watch(bed.lock.lock({ lease: 4_000 }));
    await parked(bed);
    await giver.unlock();
    const hold = await soon(successor);
    await until("it outlives its first lease", () => renewed.filter((id) => id === hold.ownerId).length >= 4);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    const last = await soon(next);
    await until("its lease ends", () => last.signal.aborted);
    expect(renewed).not.toContain(last.ownerId);
    await untilFree(bed);
    await expect(last.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });

  test("two who take it in turns need little more than a command for each turn", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    const turns = 50;
    const loop = async (): Promise<void> => {
      for (let i = 0; i < turns; i++) {
        const hold = await bed.lock.lock();
        await bed.redis.ping();
        await hold.unlock();
        // The other loop has the lock by now, and no call is in the queue.
        await turn();
      }
    };
    await Promise.all([loop(), loop()]);
    // Not the write side: a writer must tell the server at once that it waits.
    if (kind.name !== "write side") {
      expect(bed.proxy.count(PASS)).toBeGreaterThan(turns);
      expect(bed.proxy.count(script("acquire"))).toBeLessThan(turns);
    }
    await expectNothingLeft(bed, 20_000);
  });

  test("a release by another is heard of, behind an offer that was never made [B16]", async () => {
    await using bed = await stage.bed({ kind, client: PATIENT });
    await using other = await stage.bed({ kind });
    const theirs = kind.make(other.client, bed.name);
    const { giver, successor, next } = await lineUp(bed);
    await stage.server.call("DEL", bed.name);
    await expect(giver.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    const hold = await soon(successor);
    expect(await theirs.forceUnlock()).toBe(true);
    await (await soon(next)).unlock();
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    await expectNothingLeft(bed, 20_000);
  });
});

/** Sorted, without duplicates. */
function rising(tokens: readonly bigint[]): bigint[] {
  return [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1));
}

test("all kinds that are handed over are looked at here", () => {
  expect(PASSED).toHaveLength(3);
  expect(PASSED).toContain(PLAIN);
});
