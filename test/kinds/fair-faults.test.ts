/** Fair locks when connections break and servers lose their data. */
import { expect, test } from "vitest";
import { SOON, soon, useStage, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { keysOf, NEVER, Scene } from "./helpers.js";

const stage = await useStage("standalone");

const patient = { pollCap: NEVER };

test("a wait through a lost connection keeps its place", async () => {
  await using scene = await Scene.of(stage, {}, patient, patient);
  const hold = await scene.fair(0).lock();
  const first = await scene.parked(1, () => scene.fair(1).lock());
  const second = await scene.parked(2, () => scene.fair(2).lock());
  const queue = await scene.queue();
  scene.bed(1).proxy.refuse();
  await until("it is away", async () => (await scene.listeners()) === 1);
  scene.bed(1).proxy.restore();
  await until("it is back", async () => (await scene.listeners()) === 2, { timeout: SOON });
  expect(await scene.queue()).toEqual(queue);
  await hold.unlock();
  const mine = await soon(first);
  expect(second.state).toBe("pending");
  await mine.unlock();
  await (await soon(second)).unlock();
  await scene.expectNothingLeft();
});

test("a try whose reply is lost has one place, and none when its call ends", async () => {
  await using scene = await Scene.of(stage, {}, patient, patient);
  const hold = await scene.fair(0).lock();
  const cut = scene.bed(1).proxy.cutReplyOf(scene.own);
  const controller = new AbortController();
  const call = watch(scene.fair(1).lock({ signal: controller.signal }));
  await cut.done;
  await scene.untilQueued(1);
  await until("it listens", async () => (await scene.listeners()) === 1, { timeout: SOON });
  const behind = await scene.parked(2, () => scene.fair(2).lock());
  expect(await scene.queue()).toHaveLength(2);
  controller.abort(new Error("enough"));
  await expect(soon(call)).rejects.toThrow("enough");
  await scene.untilQueued(1);
  await hold.unlock();
  await (await soon(behind)).unlock();
  await scene.expectNothingLeft();
});

test("waiters whose queue was deleted beneath a holder come back to it with their next look", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap: 300 });
  const hold = await scene.fair(0).lock();
  const calls = Array.from({ length: 5 }, () => watch(scene.fair(1).run(() => {})));
  await scene.untilQueued(5);
  const { alive, queue, timeouts } = keysOf;
  await scene.call("DEL", queue(scene.name), timeouts(scene.name), alive(scene.name));
  await scene.untilQueued(5);
  await hold.unlock();
  for (const call of calls) await soon(call);
  await scene.expectNothingLeft();
});
