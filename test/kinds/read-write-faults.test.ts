/** Both sides when replies are lost, connections drop, calls run beside each other and servers forget. */
import { expect, test } from "vitest";
import type { Hold } from "../../src/index.js";
import { atLast, SOON, Stage, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { keysOf, NEVER, Scene, unlockAll } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

test("each step of a life on both sides counts once, though the reply to every one of them is lost", async () => {
  await using scene = await Scene.of(stage, patient);
  const owner = scene.client(0).newOwner();
  const [read, write] = [scene.read(0), scene.write(0)];
  const holds: Hold[] = [];
  const fields = async (): Promise<Record<string, string>> => {
    const { value } = (await scene.state()) as { value: Record<string, string> | null };
    const id = holds[0]?.ownerId ?? "";
    return Object.fromEntries(
      Object.entries(value ?? {}).map(([name, count]) => [name.replace(id, "it"), count]),
    );
  };
  const take = (side: typeof read) => async () => void holds.push(await side.lock({ owner }));
  const giveBack = (i: number) => async () => holds[i]?.unlock();
  const steps: [step: () => Promise<void>, after: Record<string, string>][] = [
    [take(write), { mode: "write", "it:write": "1" }],
    [take(read), { mode: "write", "it:write": "1", it: "1" }],
    [take(write), { mode: "write", "it:write": "2", it: "1" }],
    [take(read), { mode: "write", "it:write": "2", it: "2" }],
    [giveBack(1), { mode: "write", "it:write": "2", it: "1" }],
    [giveBack(0), { mode: "write", "it:write": "1", it: "1" }],
    [giveBack(2), { mode: "read", it: "1" }],
    [take(read), { mode: "read", it: "2" }],
    [giveBack(4), { mode: "read", it: "1" }],
    [giveBack(3), {}],
  ];
  for (const [n, [step, after]] of steps.entries()) {
    const cut = scene.bed(0).proxy.cutReplyOf(scene.own);
    await soon(watch(step()));
    expect(cut.hits, `step ${n}`).toBe(1);
    expect(await fields(), `step ${n}`).toEqual(after);
  }
  await scene.expectNothingLeft();
});

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

test("a reader whose grant is not heard of before it gives up leaves no hold", async () => {
  await using scene = await Scene.of(stage, { commandTimeout: 300 }, patient);
  await atLast(async () => (await scene.read(0).lock()).unlock());
  scene.bed(0).proxy.delayReplies(NEVER, scene.own);
  await expect(scene.read(0).lock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
  scene.bed(0).proxy.restore();
  await (await soon(watch(scene.write(1).lock()))).unlock();
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

test("waiters of both sides outlive a server that restarts empty, and each gets its turn", async () => {
  await using own = await Stage.start(["standalone"]);
  await using scene = await Scene.of(own, {}, patient, patient);
  const hold = await scene.write(0).lock();
  let served = 0;
  const visit = (): void => void served++;
  const calls = [1, 2].flatMap((i) => [
    watch(scene.read(i).run(visit)),
    watch(scene.write(i).run(visit)),
    watch(scene.read(i).run(visit)),
  ]);
  await until("they listen", async () => (await scene.listeners()) === 2);
  await own.server.restart();
  for (const call of calls) await soon(call, 2 * SOON);
  expect(served).toBe(6);
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
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

test("a release that comes while the answer to a try is on its way wakes the try's call, though its channel is known", async () => {
  await using scene = await Scene.of(stage, {}, { ...patient, split: true });
  const hold = await scene.write(0).lock();
  const reader = await scene.parked(1, () => scene.read(1).lock());
  // The refusal of the writer arrives after the message of the release, on another connection.
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

test("waiting readers get in when a writer's lease ends that nobody gives back", async () => {
  await using scene = await Scene.of(stage, {}, patient);
  const hold = await scene.write(0).lock({ lease: 3_000 });
  const readers = [watch(scene.read(1).lock()), watch(scene.read(1).lock())];
  const holds = await Promise.all(readers.map((reader) => soon(reader)));
  await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  expect(holds.every(({ isHeld }) => isHeld)).toBe(true);
  await unlockAll(holds);
  await scene.expectNothingLeft();
});
