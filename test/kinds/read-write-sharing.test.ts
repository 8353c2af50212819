/** Many readers or one writer, over several clients; both sides reentrant; each side asked and forced on its own. */
import { expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import { recordEvents } from "../contract/helpers.js";
import { SOON, soon, useStage, type Watched, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { expectStillWaiting, keysOf, NEVER, Room, Scene, unlockAll } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

test("any number of owners read at once, through any number of clients", async () => {
  await using scene = await Scene.of(stage, {}, {}, {});
  const readers = await Promise.all(
    Array.from({ length: 30 }, (_, i) => scene.read(i % 3).lock({ wait: SOON })),
  );
  expect(new Set(readers.map(({ ownerId }) => ownerId)).size).toBe(30);
  expect(Object.keys((await scene.hash()).value ?? {})).toHaveLength(31);
  expect(await scene.write(0).tryLock()).toBeNull();
  await unlockAll(readers);
  await scene.expectNothingLeft();
});

test("a writer keeps everybody else out of both sides, until its release lets them in by message", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient);
  const writer = await scene.write(0).lock();
  expect(await scene.read(0).tryLock()).toBeNull();
  expect(await scene.write(0).tryLock()).toBeNull();
  expect(await scene.read(1).tryLock()).toBeNull();
  const reader = await scene.parked(1, () => scene.read(1, false).lock());
  await expectStillWaiting(scene, reader);
  await writer.unlock();
  const hold = await soon(reader);
  const next = await scene.parked(2, () => scene.write(2).lock());
  await expectStillWaiting(scene, next);
  await hold.unlock();
  await (await soon(next)).unlock();
  await scene.expectNothingLeft();
});

test("the last of several readers lets the waiting writer in by message, the others do not", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const readers = await Promise.all([0, 0, 0].map((i) => scene.read(i).lock()));
  const writer = await scene.parked(1, () => scene.write(1).lock());
  for (const reader of readers) {
    await expectStillWaiting(scene, writer);
    await reader.unlock();
  }
  await (await soon(writer)).unlock();
});

test("fifty readers that wait in three processes' worth of clients all enter together after a write", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient, patient);
  const writer = await scene.write(3).lock();
  const room = new Room();
  const full = (): Promise<unknown> => until("all are inside", () => room.most === 50, { timeout: SOON });
  const visit = (i: number) => () => scene.read(i).run(() => room.visit(full));
  const readers: Watched<void>[] = [];
  for (const i of [0, 1, 2]) readers.push(await scene.parked(i, visit(i)));
  for (let n = 3; n < 50; n++) readers.push(watch(visit(n % 3)()));
  await expectStillWaiting(scene, ...readers);
  expect(room.most).toBe(0);
  await writer.unlock();
  await Promise.all(readers.map((reader) => soon(reader, 2 * SOON)));
  expect(room.most).toBe(50);
  await scene.expectNothingLeft();
});

test("both sides are reentrant, and a writer reads and writes in any order", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const [read, write] = [scene.read(0), scene.write(0)];
  await scene.client(0).scope(async () => {
    const steps = [write, read, write, read];
    const holds: Hold[] = [];
    for (const side of steps) holds.push(await side.lock());
    const [first] = holds;
    expect(new Set(holds.map(({ ownerId }) => ownerId))).toEqual(new Set([first?.ownerId]));
    expect((await scene.hash()).value).toEqual({
      mode: "write",
      [`${first?.ownerId}`]: "2",
      [`${first?.ownerId}:write`]: "2",
    });
    expect(await read.getHoldCount()).toBe(2);
    expect(await write.getHoldCount()).toBe(2);
    for (const side of [read, write, read]) {
      await side.unlock();
      expect(await scene.read(1).tryLock()).toBeNull();
    }
    expect(await read.getHoldCount()).toBe(0);
    expect(await write.getHoldCount()).toBe(1);
    await write.unlock();
  });
  await scene.expectNothingLeft();
});

test("both sides share one wire id until the last unlock of either, and then it is not used again", async () => {
  await using scene = await Scene.of(stage, {});
  const owner = scene.client(0).newOwner();
  const [read, write] = [scene.read(0), scene.write(0)];
  const writing = await write.lock({ owner });
  const reading = await read.lock({ owner });
  await writing.unlock();
  const further = await read.lock({ owner });
  await reading.unlock();
  expect(further.ownerId).toBe(writing.ownerId);
  expect(await scene.key(keysOf.hold(scene.name, further.ownerId, 1))).toMatchObject({ type: "string" });
  await further.unlock();
  const later = await write.lock({ owner });
  expect(later.ownerId).not.toBe(writing.ownerId);
  await later.unlock();
});

test("each side answers for itself whether it is locked, by whom, how often and for how long", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const { client, read, write } = { client: scene.client(0), read: scene.read(0), write: scene.write(0) };
  const look = async (by: typeof read) => ({
    locked: await by.isLocked(),
    mine: await by.isHeldByCurrentOwner(),
    count: await by.getHoldCount(),
    timed: (await by.remainTimeToLive()) > 0,
  });
  const free = { locked: false, mine: false, count: 0, timed: false };
  const held = (count: number) => ({ locked: true, mine: true, count, timed: true });
  await client.scope(async () => {
    expect([await look(read), await look(write)]).toEqual([free, free]);
    await write.lock();
    expect([await look(read), await look(write)]).toEqual([free, held(1)]);
    await read.lock();
    await read.lock();
    expect([await look(read), await look(write)]).toEqual([held(2), held(1)]);
    expect(await look(scene.read(1))).toEqual({ ...held(0), mine: false });
    await write.unlock();
    expect([await look(read), await look(write)]).toEqual([held(2), free]);
    expect(await write.remainTimeToLive()).toBe(-2);
    await read.unlock();
    await read.unlock();
    expect([await look(read), await look(write)]).toEqual([free, free]);
    expect(await read.remainTimeToLive()).toBe(-2);
  });
});

test("forcing the read side drops all readers and leaves a writer who reads its write side", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const readers = await Promise.all([scene.read(0).lock(), scene.read(0).lock()]);
  expect(await scene.write(1).forceUnlock()).toBe(false);
  const writer = await scene.parked(1, () => scene.write(1).lock());
  expect(await scene.read(1).forceUnlock()).toBe(true);
  const write = await soon(writer);
  for (const reader of readers) await expect(reader.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  const read = await scene.read(1).lock({ owner: write });
  expect(await scene.read(0).forceUnlock()).toBe(true);
  expect(await scene.read(0).forceUnlock()).toBe(false);
  expect((await scene.hash()).value).toEqual({ mode: "write", [`${write.ownerId}:write`]: "1" });
  expect(write.isHeld).toBe(true);
  expect(await scene.read(1).isHeldByCurrentOwner({ owner: read })).toBe(false);
  await write.unlock();
  await scene.expectNothingLeft();
});

test.each(["read", "write"] as const)(
  "who holds both sides and is forced from the %s side by another client learns it by the unlock of that side",
  async (side) => {
    await using scene = await Scene.of(stage, {}, {});
    const write = await scene.write(0).lock();
    const read = await scene.read(0).lock({ owner: write });
    const [forced, kept] = side === "read" ? [read, write] : [write, read];
    expect(await scene[side](1).forceUnlock()).toBe(true);
    await expect(forced.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    expect(kept.isHeld).toBe(true);
    await kept.unlock();
    await scene.expectNothingLeft();
  },
);

test("who is forced from both sides by another client learns it by the unlock of each", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ owner: write });
  expect(await scene.write(1).forceUnlock()).toBe(true);
  expect(await scene.read(1).forceUnlock()).toBe(true);
  await expect(write.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  await scene.expectNothingLeft();
});

test("forcing the write side leaves the writer its read side, and lets waiting readers in at once", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ owner: write });
  expect((await scene.hash()).value).toMatchObject({ mode: "write" });
  const waiting = await scene.parked(1, () => scene.read(1).lock());
  expect(await scene.write(0).forceUnlock()).toBe(true);
  const beside = await soon(waiting);
  expect(write.isHeld).toBe(false);
  expect(read.isHeld).toBe(true);
  expect(await scene.write(1).isLocked()).toBe(false);
  await expect(write.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  await read.unlock();
  await beside.unlock();
  await scene.expectNothingLeft();
});

test("all events of both sides are of the kind readwrite", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: 4_500 }, {});
  const seen = recordEvents(scene.client(0));
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ owner: write });
  const waiting = watch(scene.write(0).lock({ wait: 2_000 }));
  await expect(soon(waiting)).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
  await until("both are renewed", () => seen.filter(({ name }) => name === "renewed").length >= 2);
  await write.unlock();
  await scene.read(1).forceUnlock();
  await until("the loss is noticed", () => !read.isHeld);
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  const names = seen.map(({ name }) => name);
  for (const name of ["acquired", "waiting", "renewed", "released", "lost"] as const)
    expect(names).toContain(name);
  for (const { payload } of seen) expect(payload).toMatchObject({ lockName: scene.name, kind: "readwrite" });
});
