/** Both sides when replies are lost, connections break, calls run in parallel, and servers lose their data. */
import { expect, test } from "vitest";
import { SOON, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { keysOf, NEVER, Scene, unlockAll } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

test("a reader whose grant is sent again after a writer has begun to wait is not refused in its favour", async () => {
  await using scene = await Scene.of(stage, { commandTimeout: 10_000 }, patient);
  await (await scene.read(0).lock()).unlock();
  const cut = scene.bed(0).proxy.cutReplyOf(scene.own);
  const reader = watch(scene.read(0).lock());
  await cut.done;
  scene.bed(0).proxy.refuse();
  const writer = await scene.parked(1, () => scene.write(1).lock());
  scene.bed(0).proxy.restore();
  const read = await soon(reader);
  expect((await scene.state()).value).toEqual({ mode: "read", [read.ownerId]: "1" });
  await read.unlock();
  await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("a reader whose grant was not heard of does not stand behind a writer of its process, which waits for it", async () => {
  await using scene = await Scene.of(stage, {}, { ...patient, commandTimeout: 3_000, split: true });
  const hold = await scene.write(0).lock();
  const reader = await scene.parked(1, () => scene.read(1).lock());
  const cut = scene.bed(1).proxy.cutReplyOf(scene.own);
  await hold.unlock();
  await cut.done;
  scene.bed(1).proxy.refuse();
  const [first, second] = [watch(scene.write(1).lock()), watch(scene.write(1).lock())];
  await expect(soon(first)).rejects.toMatchObject({ code: "UNAVAILABLE" });
  scene.bed(1).proxy.restore();
  await (await soon(reader)).unlock();
  await (await soon(second)).unlock();
  await scene.expectNothingLeft();
});

test("a waiting writer whose tries are not answered while it is aborted leaves no mark", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap: 200 });
  const reading = await scene.read(0).lock();
  const controller = new AbortController();
  const writer = await scene.parked(1, () => scene.write(1).lock({ signal: controller.signal }));
  scene.bed(1).proxy.stall();
  controller.abort(new Error("enough"));
  await expect(soon(writer)).rejects.toThrow("enough");
  scene.bed(1).proxy.restore();
  const beside = await scene.read(0).lock({ wait: SOON });
  await unlockAll([reading, beside]);
  await scene.expectNothingLeft();
});

test("a scope that waits for both sides in parallel is granted the write side and re-enters by the read side", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  for (const first of ["read", "write"] as const) {
    const hold = await scene.write(1).lock();
    const [early, late] =
      first === "read" ? [scene.read(0), scene.write(0)] : [scene.write(0), scene.read(0)];
    await scene.client(0).scope(async () => {
      const calls = [await scene.parked(0, () => early.lock()), watch(late.lock())];
      await until(
        "a writer is marked",
        async () => (await scene.state(keysOf.writers(scene.name))).type === "zset",
      );
      await scene.bed(0).redis.ping();
      await hold.unlock();
      for (const call of calls) await soon(call);
      expect([await scene.read(0).getHoldCount(), await scene.write(0).getHoldCount()]).toEqual([1, 1]);
      for (const call of calls) await (await call.promise).unlock();
    });
    await scene.expectNothingLeft();
  }
});

test("of two waits of one scope without preference, neither hangs: the write side is granted or refused", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const hold = await scene.write(1).lock();
  await scene.client(0).scope(async () => {
    const reading = await scene.parked(0, () => scene.read(0, false).lock());
    const writing = watch(scene.write(0, false).lock());
    await until("the writer has been refused", () => scene.asked(0) >= 3);
    await scene.bed(0).redis.ping();
    await hold.unlock();
    const read = await soon(reading);
    await until("the write is decided", () => writing.state !== "pending", { timeout: SOON });
    if (writing.state === "rejected") expect(writing.error).toMatchObject({ code: "UPGRADE_REFUSED" });
    await writing.value?.unlock();
    await read.unlock();
  });
  await scene.expectNothingLeft();
});

test("a release that comes while the answer to a try is on its way wakes the try's call, though its channel is known [B19]", async () => {
  await using scene = await Scene.of(stage, {}, { ...patient, split: true });
  const hold = await scene.write(0).lock();
  const reader = await scene.parked(1, () => scene.read(1).lock());
  // The refusal of the writer arrives after the message of the release, because that comes on another connection.
  scene.bed(1).proxy.delayReplies(NEVER, scene.own);
  const writer = watch(scene.write(1).lock());
  await until("it is marked", async () => (await scene.state(keysOf.writers(scene.name))).type === "zset");
  await hold.unlock();
  await until("the reader has asked again", () => scene.asked(1) >= 4);
  scene.bed(1).proxy.restore();
  await (await soon(writer)).unlock();
  await (await soon(reader)).unlock();
  await scene.expectNothingLeft();
});
