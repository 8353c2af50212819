/** A reader cannot become a writer and is told so at once; sibling runs are no reason to refuse, they take turns. */
import { expect, test } from "vitest";
import { type Hold, isLockError, type Lock } from "../../src/index.js";
import { deferred, failure } from "../contract/helpers.js";
import { pause, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { expectStillWaiting, NEVER, Room, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

/** All ways to ask for the write side are refused, without a word to the server. */
async function expectRefused(scene: Scene, options: { owner?: Hold } = {}): Promise<void> {
  const write = scene.write(0);
  const fn = () => {
    throw new Error("this must not run");
  };
  const forms = [
    () => write.lock(options),
    () => write.lock({ ...options, wait: 5_000 }),
    () => write.tryLock(0, undefined, options),
    () => write.tryLock(5_000, 1_000, options),
    () => write.run(fn, options),
  ];
  const before = scene.scripts(0);
  for (const form of forms) {
    const error = await failure(soon(watch<unknown>(form()), 2_000));
    expect(isLockError(error, "UPGRADE_REFUSED")).toBe(true);
    expect(error).toMatchObject({ name: "LockUpgradeError", lockName: scene.name });
  }
  expect(scene.scripts(0)).toBe(before);
}

/** The refused reader reads on, and no waiting writer is in other readers' way. */
async function expectUnharmed(scene: Scene, reading: Hold): Promise<void> {
  expect(reading.isHeld).toBe(true);
  expect((await scene.hash()).value).toEqual({ mode: "read", [reading.ownerId]: "1" });
  const beside = await scene.read(1).tryLock();
  expect(beside).not.toBeNull();
  await beside?.unlock();
}

test("an owner that holds the read side in its scope is refused the write side", async () => {
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

test("a run of the read side refuses the write side to all that it encloses, however deep", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const other = scene.client(0).getLock(`${scene.name}other`);
  await scene.read(0).run(async (reading) => {
    await expectRefused(scene);
    await other.run(() => expectRefused(scene));
    await Promise.all([expectRefused(scene), pause(1)]);
    await expectUnharmed(scene, reading);
  });
  await scene.expectNothingLeft();
});

test("naming a bare read hold as owner is refused from anywhere, until that hold is given back", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const owner = await scene.read(0).lock();
  await expectRefused(scene, { owner });
  await scene.client(0).scope(() => expectRefused(scene, { owner }));
  await expectUnharmed(scene, owner);
  await owner.unlock();
  await (await scene.write(0).lock({ owner })).unlock();
  await scene.expectNothingLeft();
});

test("who writes may read and write further; after the last write unlock it only reads, and is refused", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ owner: write });
  const again = await scene.write(0).lock({ owner: write });
  await write.unlock();
  const further = await scene.write(0).tryLock(0, undefined, { owner: read });
  expect(further?.isHeld).toBe(true);
  await further?.unlock();
  await again.unlock();
  await expectRefused(scene, { owner: read });
  await expectUnharmed(scene, read);
  await read.unlock();
});

test("other owners' reads, in the same process or not, are waited for and not refused", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const reading = await scene.read(0).lock();
  const writer = await scene.parked(0, () => scene.write(0).lock());
  await scene.client(0).scope(async () => {
    await scene.client(0).scope(async () => expect(await scene.write(0).tryLock()).toBeNull());
  });
  await expectStillWaiting(scene, writer);
  await reading.unlock();
  await (await soon(writer)).unlock();
});

/** Runs of one owner, called beside each other in this order; each stays until it is told to go. */
async function siblings(scene: Scene, sides: readonly Lock[], begin: (runs: Sibling[]) => Promise<void>) {
  await scene.client(0).scope(async () => {
    const runs = sides.map((side) => {
      const gate = deferred();
      const sibling: Sibling = { inside: false, leave: gate.resolve, over: Promise.resolve() };
      sibling.over = side.run(async () => {
        sibling.inside = true;
        await gate.promise;
        sibling.inside = false;
      });
      return sibling;
    });
    await begin(runs);
    await Promise.all(runs.map(({ over }) => over));
  });
}

interface Sibling {
  inside: boolean;
  leave: () => void;
  over: Promise<void>;
}

const inside = (runs: readonly Sibling[]): boolean[] => runs.map((run) => run.inside);

test("sibling runs of the read side share their turn, and a sibling write waits for the last of them", async () => {
  await using scene = await Scene.of(stage, patient);
  const [read, write] = [scene.read(0), scene.write(0)];
  await siblings(scene, [read, read, write], async (runs) => {
    await until("both read", () => inside(runs).join() === "true,true,false");
    runs[0]?.leave();
    await runs[0]?.over;
    await pause(20);
    expect(inside(runs)).toEqual([false, true, false]);
    runs[1]?.leave();
    await until("the write has its turn", () => inside(runs).join() === "false,false,true");
    runs[2]?.leave();
  });
  await scene.expectNothingLeft();
});

test("a sibling read never waits behind a write that waits for its turn, only for one that has it", async () => {
  await using scene = await Scene.of(stage, patient);
  const [read, write] = [scene.read(0), scene.write(0)];
  await siblings(scene, [read, write, read], async (runs) => {
    await until("both read", () => inside(runs).join() === "true,false,true");
    for (const i of [0, 2]) runs[i]?.leave();
    await until("the write has its turn", () => runs[1]?.inside);
    const late = read.run(() => expect(runs[1]?.inside).toBe(false));
    await pause(20);
    runs[1]?.leave();
    await late;
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

test("a bare write of a scope waits for the scope's sibling read run instead of being refused", async () => {
  await using scene = await Scene.of(stage, patient);
  const gate = deferred();
  await scene.client(0).scope(async () => {
    const reading = scene.read(0).run(() => gate.promise);
    await until("it reads", () => scene.read(0).isLocked());
    const writing = watch(scene.write(0).lock());
    await expectStillWaiting(scene, writing);
    gate.resolve();
    await (await soon(writing)).unlock();
    await reading;
  });
  await scene.expectNothingLeft();
});

test("a write that was called while its owner wrote re-enters, though a read is granted and the write given back before it", async () => {
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
