/** First come, first served, over processes and clients with any clocks; no call overtakes another. */
import { expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import type { LockClientOptions } from "../../src/index.js";
import { bundledWorker } from "../faults/build-worker.js";
import { soon, useStage, type Watched, watch } from "../faults/harness.js";
import { PATIENCE, startWorker, UNHURRIED, until } from "../support/index.js";
import { keysOf, NEVER, Scene } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

const patient = { pollCap: NEVER };

/** Makes calls one after the other, each when the one before is in the queue; `order` is that of their grants. */
async function queueUp(
  scene: Scene,
  clients: readonly number[],
): Promise<{ calls: Watched<void>[]; order: number[] }> {
  const order: number[] = [];
  const calls: Watched<void>[] = [];
  for (const [place, i] of clients.entries()) {
    calls.push(watch(scene.fair(i).run(() => void order.push(place))));
    await scene.untilQueued(place + 1);
  }
  return { calls, order };
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test("twelve waiters of three processes have the lock in the order in which they came", async () => {
  await using scene = await Scene.of(stage, patient);
  await using a = await startWorker(bundle());
  await using b = await startWorker(bundle());
  await using c = await startWorker(bundle());
  const processes = [a, b, c];
  const start: Start = { port: stage.server.port, name: scene.name, side: "fair", options: patient };
  await Promise.all(processes.map((worker) => worker.request("start", start)));
  const log = `log of ${scene.name}`;
  const hold = await scene.fair(0).lock();
  const visits: Promise<unknown>[] = [];
  for (const n of upTo(12)) {
    const id = String(n);
    visits.push(
      processes[(n * 2 + Math.floor(n / 3)) % 3]?.request("visit", { id, log }) ?? Promise.reject(),
    );
    await scene.untilQueued(n + 1);
  }
  await hold.unlock();
  await Promise.all(visits);
  expect((await scene.state(log)).value).toEqual(upTo(12).map(String));
  await scene.call("DEL", log);
  await scene.expectNothingLeft();
});

test("a server that stood still until all places had lapsed keeps the order, and nobody overtakes [B221]", async () => {
  const pollCap = 300;
  await using scene = await Scene.of(
    stage,
    UNHURRIED,
    { ...UNHURRIED, pollCap },
    { ...UNHURRIED, pollCap },
    UNHURRIED,
  );
  const hold = await scene.fair(0).lock();
  const { calls, order } = await queueUp(scene, [1, 2, 1, 2]);
  // So that the newcomer sends one command only.
  await scene.client(3).ready();
  await scene.fair(3).isLocked();
  const alive = keysOf.alive(scene.name);
  const places = (await scene.state(alive)).value as [string, number][];
  stage.server.pause();
  let given: Promise<void>;
  let newcomer: Promise<unknown>;
  try {
    given = hold.unlock();
    newcomer = scene.fair(3).tryLock();
    const lapse = Math.max(...places.map(([, score]) => score)) + pollCap;
    // The server runs on this machine's clock. What the waiters send meanwhile, it reads after the stall.
    await until("all places have lapsed", () => Date.now() > lapse, { timeout: PATIENCE });
  } finally {
    stage.server.resume();
  }
  await given;
  expect(await newcomer).toBeNull();
  for (const call of calls) await soon(call);
  expect(order).toEqual(upTo(4));
  await scene.expectNothingLeft();
});

test("clients whose clocks are hours apart keep the order, and no clock but the server's is in the queue [F32]", async () => {
  const hour = 3_600_000;
  const skewed = (ms: number): LockClientOptions =>
    ({
      ...patient,
      fairWaitTimeout: 2_000,
      [INTERNALS]: { clock: { ...systemClock, wall: () => Date.now() + ms } },
    }) as LockClientOptions;
  await using scene = await Scene.of(stage, skewed(0), skewed(hour), skewed(-hour));
  const hold = await scene.fair(1).lock();
  const { calls, order } = await queueUp(scene, [1, 2, 0, 2, 1, 0]);
  for (const i of [0, 1, 2]) expect(await scene.fair(i).tryLock()).toBeNull();
  const now = await scene.now();
  for (const key of [keysOf.timeouts(scene.name), keysOf.alive(scene.name)]) {
    const places = (await scene.state(key)).value as [string, number][];
    expect(places).toHaveLength(6);
    for (const [, score] of places) expect(Math.abs(score - now)).toBeLessThan(hour / 4);
  }
  await hold.unlock();
  await Promise.all(calls.map((call) => soon(call)));
  expect(order).toEqual(upTo(6));
  await scene.expectNothingLeft();
});

test("a try that does not wait takes no place, and does not overtake a queue whose lock is free", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient);
  const hold = await scene.fair(0).lock();
  expect(await scene.fair(1).tryLock()).toBeNull();
  expect(await scene.queue()).toEqual([]);
  const head = await scene.parked(1, () => scene.fair(1).lock());
  expect(await scene.queue()).toHaveLength(1);
  // The head gets no message for a while.
  scene.bed(1).proxy.stall();
  await hold.unlock();
  expect(await scene.fair(0).isLocked()).toBe(false);
  expect(await scene.fair(2).tryLock()).toBeNull();
  expect(await scene.fair(0).tryLock()).toBeNull();
  const second = watch(scene.fair(2).lock());
  await scene.untilQueued(2);
  await scene.bed(2).redis.ping();
  expect(second.state).toBe("pending");
  scene.bed(1).proxy.restore();
  const first = await soon(head);
  expect(second.state).toBe("pending");
  await first.unlock();
  await (await soon(second)).unlock();
  await scene.expectNothingLeft();
});

test("an owner re-enters while others queue, by one command, and keeps its place nowhere", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  await scene.client(0).scope(async () => {
    const fair = scene.fair(0);
    await fair.lock();
    const other = await scene.parked(1, () => scene.fair(1).lock());
    const before = scene.asked(0);
    await fair.lock();
    expect(await fair.tryLock()).not.toBeNull();
    expect(scene.asked(0) - before).toBe(2);
    expect(await fair.getHoldCount()).toBe(3);
    expect(await scene.queue()).toHaveLength(1);
    for (const _ of upTo(3)) {
      await scene.expectStillWaiting(other);
      await fair.unlock();
    }
    await (await soon(other)).unlock();
  });
  await scene.expectNothingLeft();
});

test("sibling runs inside a run take turns while others queue, and wait in no queue of their own", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const order: string[] = [];
  const fair = scene.fair(0);
  let other: Watched<void> | undefined;
  await fair.run(async () => {
    other = await scene.parked(1, () => scene.fair(1).run(() => void order.push("other")));
    let inside = 0;
    const sibling = (name: string) =>
      fair.run(async () => {
        expect(++inside).toBe(1);
        expect(await scene.queue()).toHaveLength(1);
        order.push(name);
        inside--;
      });
    await Promise.all(["a", "b", "c"].map(sibling));
  });
  await soon(other as Watched<void>);
  expect(order).toEqual(["a", "b", "c", "other"]);
  await scene.expectNothingLeft();
});

test("sibling runs of a scope that holds nothing come one after the other, behind those who queued before", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const order: string[] = [];
  const fair = scene.fair(0);
  await scene.client(0).scope(async () => {
    const first = fair.run(async () => {
      order.push("a");
      const other = await scene.parked(1, () => scene.fair(1).run(() => void order.push("other")));
      return { other };
    });
    const second = fair.run(() => void order.push("b"));
    const third = fair.run(() => void order.push("c"));
    await soon((await first).other);
    await Promise.all([second, third]);
  });
  expect(order).toEqual(["a", "other", "b", "c"]);
  await scene.expectNothingLeft();
});

test("parallel calls of one scope are granted together, and the places they do not need are given up", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const hold = await scene.fair(1).lock();
  const fair = scene.fair(0);
  await scene.client(0).scope(async () => {
    const calls = [watch(fair.lock()), watch(fair.lock()), watch(fair.lock())];
    await until("one of them is queued", async () => (await scene.queue()).length > 0);
    const behind = await scene.parked(1, () => scene.fair(1).lock());
    await hold.unlock();
    for (const call of calls) await soon(call);
    expect(await fair.getHoldCount()).toBe(3);
    await scene.untilQueued(1);
    for (const _ of calls) await fair.unlock();
    await (await soon(behind)).unlock();
  });
  await scene.expectNothingLeft();
});
