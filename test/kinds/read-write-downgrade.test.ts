/** A writer goes on as a reader without a gap: waiting readers come in at once, writers stay out. */
import { expect, test } from "vitest";
import { bundledWorker } from "../faults/build-worker.js";
import { SOON, soon, useStage } from "../faults/harness.js";
import { startWorker, until } from "../support/index.js";
import { expectStillWaiting, NEVER, Scene } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const worker = bundledWorker("../kinds/lock-worker.ts");

const patient = { pollCap: NEVER };

test("a downgrade wakes the readers of another process at once", async () => {
  await using scene = await Scene.of(stage, patient);
  await using reader = await startWorker(worker());
  await reader.request("start", {
    port: scene.bed(0).proxy.port,
    name: scene.name,
    side: "read",
    options: patient,
  } satisfies Start);
  const write = await scene.write(0).lock();
  const before = scene.scripts(0);
  let granted = 0;
  reader.on(({ type }) => {
    if (type === "granted") granted++;
  });
  const calls = [1, 2, 3].map((id) => reader.request("take", { id: String(id) }));
  await until("they wait", async () => scene.scripts(0) >= before + 2 && (await scene.listeners()) === 1);
  const read = await scene.read(0).lock({ owner: write });
  expect(granted).toBe(0);
  await write.unlock();
  const begun = performance.now();
  await until("all read", () => granted === 3, { timeout: SOON });
  expect(performance.now() - begun).toBeLessThan(NEVER / 3);
  expect(read.isHeld).toBe(true);
  await Promise.all(calls);
  for (const id of ["1", "2", "3"]) expect(await reader.request("unlock", id)).toBe("unlocked");
  await read.unlock();
  await scene.expectNothingLeft();
});

test("a waiting writer stays out for as long as the downgraded owner reads, and comes in by message then", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const write = await scene.write(0).lock();
  const preferred = await scene.parked(1, () => scene.write(1).lock());
  const read = await scene.read(0).lock({ owner: write });
  await write.unlock();
  await expectStillWaiting(scene, preferred);
  expect(await scene.write(1).tryLock()).toBeNull();
  // Readers who come later leave it the next turn, those who read already are not disturbed.
  expect(await scene.read(1).tryLock()).toBeNull();
  await (await scene.read(0).lock({ owner: read })).unlock();
  await expectStillWaiting(scene, preferred);
  await read.unlock();
  await (await soon(preferred)).unlock();
  await scene.expectNothingLeft();
});

test("a downgrade inside a scope follows Redisson's idiom: lock both, unlock the write side, read on", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const [read, write] = [scene.read(0), scene.write(0)];
  await scene.client(0).scope(async () => {
    await write.lock();
    await read.lock();
    await write.unlock();
    expect([await read.getHoldCount(), await write.getHoldCount()]).toEqual([1, 0]);
    await expect(write.unlock()).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(await scene.write(1).tryLock()).toBeNull();
    const beside = await scene.read(1).tryLock();
    expect(beside).not.toBeNull();
    await beside?.unlock();
    await read.unlock();
  });
  await scene.expectNothingLeft();
});

test("the hash changes from the one mode to the other in one step, and the hold goes on", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const write = await scene.write(0).lock({ lease: 60_000 });
  const read = await scene.read(0).lock({ lease: 20_000, owner: write });
  expect((await scene.hash()).value).toEqual({
    mode: "write",
    [write.ownerId]: "1",
    [`${write.ownerId}:write`]: "1",
  });
  await write.unlock();
  expect((await scene.hash()).value).toEqual({ mode: "read", [write.ownerId]: "1" });
  expect(read.isHeld).toBe(true);
  const beside = await scene.read(1).tryLock();
  expect(beside).not.toBeNull();
  await read.unlock();
  await beside?.unlock();
  await scene.expectNothingLeft();
});
