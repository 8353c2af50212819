/** A reader cannot become a writer, and is refused at once; sibling runs take turns instead of being refused. */
import { expect, test } from "vitest";
import { type Hold, isLockError } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { pause, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { NEVER, Room, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

/** Every way to ask for the write side is refused, and sends nothing to the server. */
async function expectRefused(scene: Scene): Promise<void> {
  const write = scene.write(0);
  const fn = () => {
    throw new Error("this must not run");
  };
  const forms = [
    () => write.lock(),
    () => write.lock({ wait: 5_000 }),
    () => write.tryLock(),
    () => write.tryLock(5_000, 1_000),
    () => write.run(fn),
  ];
  const before = scene.asked(0);
  for (const form of forms) {
    const error = await failure(soon(watch<unknown>(form()), 2_000));
    expect(isLockError(error, "UPGRADE_REFUSED")).toBe(true);
    expect(error).toMatchObject({ name: "LockUpgradeError", lockName: scene.name });
  }
  expect(scene.asked(0)).toBe(before);
}

/** The refused reader still has its hold, and no waiting writer keeps other readers out. */
async function expectUnharmed(scene: Scene, reading: Hold): Promise<void> {
  expect(reading.isHeld).toBe(true);
  expect((await scene.state()).value).toEqual({ mode: "read", [reading.ownerId]: "1" });
  const beside = await scene.read(1).tryLock();
  expect(beside).not.toBeNull();
  await beside?.unlock();
}

test("an owner that holds the read side in its scope is refused the write side [F36]", async () => {
  await using scene = await Scene.of(stage, {}, {});
  await scene.client(0).scope(async () => {
    const reading = await scene.read(0).lock();
    await expectRefused(scene);
    await expectUnharmed(scene, reading);
    await scene.read(0).unlock();
    await scene.write(0).lock();
    await scene.write(0).unlock();
  });
  await scene.expectNothingLeft();
});

test("inside a write, sibling reads share, sibling writes take turns, and neither overlaps the other", async () => {
  await using scene = await Scene.of(stage, patient, {});
  const [read, write] = [scene.read(0), scene.write(0)];
  const [readers, writers] = [new Room(), new Room()];
  await write.run(async () => {
    const reading = () => readers.visit(() => until("both read", () => readers.most === 2));
    const writing = () =>
      writers.visit(async () => {
        expect(readers.inside).toBe(0);
        await pause(10);
      });
    await Promise.all([read.run(reading), write.run(writing), read.run(reading), write.run(writing)]);
    expect(readers.most).toBe(2);
    expect(writers.most).toBe(1);
    expect(await scene.read(1).tryLock()).toBeNull();
  });
  await scene.expectNothingLeft();
});

test("a write that was called while its owner wrote re-enters, though a read is granted and the write given back before it [B86]", async () => {
  await using scene = await Scene.of(stage, patient);
  await scene.client(0).scope(async () => {
    const writing = await scene.write(0).lock();
    const reading = scene.read(0).lock();
    const again = scene.write(0).lock();
    const unlocking = writing.unlock();
    const holds = await Promise.all([reading, again]);
    await unlocking;
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, true]);
    expect(await scene.read(0).getHoldCount()).toBe(1);
    for (const hold of holds) await hold.unlock();
  });
  await scene.expectNothingLeft();
});
