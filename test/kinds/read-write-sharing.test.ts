/** Many readers or one writer, over several clients; both sides re-enter; each side has its own queries and force. */
import { expect, test } from "vitest";
import { soon, useStage } from "../faults/harness.js";
import { keysOf, NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

test("the last of several readers lets the waiting writer in by message, the others do not", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const readers = await Promise.all([0, 0, 0].map((i) => scene.read(i).lock()));
  const writer = await scene.parked(1, () => scene.write(1).lock());
  for (const reader of readers) {
    await scene.expectStillWaiting(writer);
    await reader.unlock();
  }
  await (await soon(writer)).unlock();
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
  expect(await scene.state(keysOf.hold(scene.name, further.ownerId, 1))).toMatchObject({ type: "string" });
  await further.unlock();
  const later = await write.lock({ owner });
  expect(later.ownerId).not.toBe(writing.ownerId);
  await later.unlock();
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

test("who is forced from both sides by another client learns it by the unlock of each [B13]", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const write = await scene.write(0).lock();
  const read = await scene.read(0).lock({ owner: write });
  expect(await scene.write(1).forceUnlock()).toBe(true);
  expect(await scene.read(1).forceUnlock()).toBe(true);
  await expect(write.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  await scene.expectNothingLeft();
});
