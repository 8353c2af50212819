/** How long both sides live: each hold for its own lease, the key for the latest of them, and nobody for another's. */
import { expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import { recordEvents, type SeenEvent } from "../contract/helpers.js";
import { SOON, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { expectStillWaiting, keysOf, NEVER, Scene, unlockAll } from "./helpers.js";

const stage = await useStage("standalone");

/** Renewed every third of it: a process may stand still for two thirds. */
const WATCHDOG = 4_500;
/** What a test may take between two commands on a busy machine; leases differ by more. */
const SLACK = 8_000;

async function expectTtl(scene: Scene, expected: number, key = scene.name): Promise<void> {
  const ttl = await scene.ttl(key);
  expect(ttl, key).toBeLessThanOrEqual(expected);
  expect(ttl, key).toBeGreaterThan(expected - SLACK);
}

const renewals = (seen: readonly SeenEvent[]): number => seen.filter(({ name }) => name === "renewed").length;

/** Four renewals of a side in a row are over more than the lease. */
async function expectRenewed(scene: Scene, hold: Hold, seen: readonly SeenEvent[], times = 4): Promise<void> {
  const before = renewals(seen);
  await until(`it is renewed ${times} times`, () => renewals(seen) >= before + times, { timeout: SOON });
  expect(hold.isHeld).toBe(true);
  expect(await scene.ttl()).toBeGreaterThan(0);
}

for (const side of ["read", "write"] as const) {
  test(`nested ${side} leases neither add up nor shorten, and an unlock leaves the latest one left`, async () => {
    await using scene = await Scene.of(stage, {});
    const owner = scene.client(0).newOwner();
    const take = (lease: number): Promise<Hold> => scene[side](0).lock({ lease, owner });
    const [middle, long, short] = [await take(60_000), await take(100_000), await take(20_000)];
    await expectTtl(scene, 100_000);
    await long.unlock();
    await expectTtl(scene, 60_000);
    const again = await take(80_000);
    await expectTtl(scene, 80_000);
    await again.unlock();
    await expectTtl(scene, 60_000);
    await middle.unlock();
    await expectTtl(scene, 20_000);
    expect(short.isHeld).toBe(true);
    await short.extend(40_000);
    await expectTtl(scene, 40_000);
    await short.unlock();
    await scene.expectNothingLeft();
  });
}

test("each read hold has a key of its own, numbered without gaps, with the leases that are left", async () => {
  await using scene = await Scene.of(stage, {});
  const owner = scene.client(0).newOwner();
  const read = scene.read(0);
  const first = await read.lock({ lease: 40_000, owner });
  const second = await read.lock({ lease: 80_000, owner });
  const third = await read.lock({ lease: 20_000, owner });
  const hold = (i: number): string => keysOf.hold(scene.name, first.ownerId, i);
  for (const [i, lease] of [40_000, 80_000, 20_000].entries()) await expectTtl(scene, lease, hold(i + 1));
  await first.unlock();
  const ttls = [await scene.ttl(hold(1)), await scene.ttl(hold(2))].sort((a, b) => a - b);
  expect(ttls[0]).toBeLessThanOrEqual(20_000);
  expect(ttls[1]).toBeGreaterThan(80_000 - SLACK);
  expect(await scene.ttl(hold(3))).toBe(-2);
  await second.unlock();
  await expectTtl(scene, 20_000, hold(1));
  await third.unlock();
  await scene.expectNothingLeft();
});

test("extend moves one hold's end, to either side, and no other's", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const other = await scene.read(1).lock({ lease: 80_000 });
  const mine = await scene.read(0).lock({ lease: 60_000 });
  const nested = await scene.read(0).lock({ lease: 40_000, owner: mine });
  await mine.extend(20_000);
  expect(mine.remaining).toBeLessThanOrEqual(20_000);
  expect(nested.remaining).toBeGreaterThan(40_000 - SLACK);
  await expectTtl(scene, 20_000, keysOf.hold(scene.name, mine.ownerId, 1));
  await expectTtl(scene, 40_000, keysOf.hold(scene.name, mine.ownerId, 2));
  await expectTtl(scene, 80_000);
  await other.unlock();
  await expectTtl(scene, 40_000);
  await mine.extend(100_000);
  await expectTtl(scene, 100_000);
  await unlockAll([mine, nested]);

  const write = await scene.write(0).lock({ lease: 60_000 });
  const read = await scene.read(0).lock({ lease: 40_000, owner: write });
  await write.extend(20_000);
  await expectTtl(scene, 40_000);
  await read.extend(100_000);
  await expectTtl(scene, 100_000);
  await read.unlock();
  await expectTtl(scene, 20_000);
  await write.unlock();
  await scene.expectNothingLeft();
});

test("a short reader neither cuts nor stretches a long one's lease, whoever leaves first", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const long = await scene.read(0).lock({ lease: 100_000 });
  const short = await scene.read(1).lock({ lease: 20_000 });
  await expectTtl(scene, 100_000);
  await short.unlock();
  await expectTtl(scene, 100_000);
  const other = await scene.read(1).lock({ lease: 20_000 });
  await long.unlock();
  await expectTtl(scene, 20_000);
  expect(other.isHeld).toBe(true);
  await other.unlock();
  await scene.expectNothingLeft();
});

test("a writer's lease is never cut by what it reads, and its read lease never by its write unlock", async () => {
  await using scene = await Scene.of(stage, {});
  const write = await scene.write(0).lock({ lease: 100_000 });
  const short = await scene.read(0).lock({ lease: 20_000, owner: write });
  await expectTtl(scene, 100_000);
  await short.unlock();
  await expectTtl(scene, 100_000);
  const read = await scene.read(0).lock({ lease: 60_000, owner: write });
  const long = await scene.read(0).lock({ lease: 140_000, owner: write });
  await expectTtl(scene, 140_000);
  await long.unlock();
  await expectTtl(scene, 100_000);
  await write.unlock();
  await expectTtl(scene, 60_000);
  expect(read.isHeld).toBe(true);
  await read.unlock();
  await scene.expectNothingLeft();
});

for (const [given, kept] of [
  ["read", "write"],
  ["write", "read"],
] as const) {
  test.concurrent(`giving back the ${given} side leaves the watchdog to the ${kept} side`, async () => {
    await using scene = await Scene.of(stage, { watchdogTimeout: WATCHDOG });
    const seen = recordEvents(scene.client(0));
    const write = await scene.write(0).lock();
    const holds = { write, read: await scene.read(0).lock({ owner: write }) };
    await expectRenewed(scene, holds[kept], seen, 1);
    await holds[given].unlock();
    await expectRenewed(scene, holds[kept], seen);
    expect(await scene[kept](0).getHoldCount({ owner: write })).toBe(1);
    await holds[kept].unlock();
    await scene.expectNothingLeft();
  });
}

test.concurrent("a leased read beside a watched write lapses by itself, and the write goes on", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: WATCHDOG });
  const seen = recordEvents(scene.client(0));
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ lease: 3_000, owner: write });
  await until("the read has lapsed", () => !read.isHeld);
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await expectRenewed(scene, write, seen);
  expect(await scene.read(0).isLocked()).toBe(false);
  await write.unlock();
  await scene.expectNothingLeft();
});

test.concurrent("a renewal never lowers the TTL that a longer lease of another reader has given the lock", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: WATCHDOG }, {});
  const seen = recordEvents(scene.client(0));
  const long = await scene.read(1).lock({ lease: 100_000 });
  const watched = await scene.read(0).lock();
  await expectRenewed(scene, watched, seen);
  await expectTtl(scene, 100_000);
  await unlockAll([watched, long]);
});

test.concurrent("a reader whose hold key vanished is told that it is lost at the next renewal", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: WATCHDOG }, { pollCap: NEVER });
  const seen = recordEvents(scene.client(0));
  const read = await scene.read(0).lock();
  const others = await scene.read(0).lock();
  expect(await scene.call("DEL", keysOf.hold(scene.name, read.ownerId, 1))).toBe(1);
  expect(await scene.read(0).isHeldByCurrentOwner({ owner: read })).toBe(false);
  await until("it is told", () => read.signal.aborted, { timeout: SOON });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(seen).toContainEqual({
    name: "lost",
    payload: expect.objectContaining({ lockName: scene.name, kind: "readwrite", ownerId: read.ownerId }),
  });
  expect(await scene.ttl(keysOf.hold(scene.name, read.ownerId, 1))).toBe(-2);
  expect(others.isHeld).toBe(true);
  await others.unlock();
  await scene.expectNothingLeft();
});

test.concurrent("the only reader, whose hold key vanished, is told that it is over and not that others took it", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: WATCHDOG });
  const read = await scene.read(0).lock();
  await scene.call("DEL", keysOf.hold(scene.name, read.ownerId, 1));
  await until("it is told", () => read.signal.aborted, { timeout: SOON });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await scene.expectNothingLeft();
});

test("a lock in mode read whose readers have all lapsed keeps no writer out, and counts as free", async () => {
  await using scene = await Scene.of(stage, { pollCap: NEVER });
  await scene.call(
    "HSET",
    scene.name,
    "mode",
    "read",
    "b0e5b1a2-0000-4000-8000-000000000000:1",
    1,
    "b0e5b1a2-0000-4000-8000-000000000000:2",
    3,
  );
  await scene.call("PEXPIRE", scene.name, 600_000);
  expect(await scene.read(0).isLocked()).toBe(false);
  expect(await scene.read(0).remainTimeToLive()).toBe(-2);
  const writing = watch(scene.write(0).lock());
  const write = await soon(writing);
  expect((await scene.hash()).value).toEqual({ mode: "write", [`${write.ownerId}:write`]: "1" });
  await write.unlock();
  await scene.expectNothingLeft();
});

test("a reader that is leased for less than another leaves by itself, and the writer waits for the other only", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap: NEVER });
  const long = await scene.read(0).lock({ lease: 60_000 });
  const short = await scene.read(0).lock({ lease: 20_000 });
  const writer = await scene.parked(1, () => scene.write(1).lock());
  await short.extend(1_000);
  await until(
    "it has lapsed",
    async () => (await scene.ttl(keysOf.hold(scene.name, short.ownerId, 1))) === -2,
  );
  await expectStillWaiting(scene, writer);
  await long.unlock();
  await (await soon(writer)).unlock();
  await expect(short.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await scene.expectNothingLeft();
});
