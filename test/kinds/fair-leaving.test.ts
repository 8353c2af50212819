/** Waiters that leave the queue, by their own will or by death, hold no other waiter up and leave nothing behind. */
import { describe, expect, test } from "vitest";
import { bundledWorker } from "../faults/build-worker.js";
import { SOON, soon, useStage, type Watched, watch } from "../faults/harness.js";
import { SLACK, startWorker, until, type Worker } from "../support/index.js";
import { keysOf, NEVER, Scene } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

const patient = { pollCap: NEVER };
/** For tests in which a waiter dies. A process that stands still for three pollCaps counts as dead, too. */
const pollCap = 1_000;
/** The time after which Redisson takes a waiter for dead, far longer than the test. */
const fairWaitTimeout = 60_000;

/** The types of the keys of the queue that exist. */
async function queueKeys(scene: Scene): Promise<string[]> {
  const { alive, queue, timeouts } = keysOf;
  const states = await Promise.all([queue, timeouts, alive].map((key) => scene.state(key(scene.name))));
  return states.map(({ type }) => type).filter((type) => type !== "none");
}

/** Starts a process that waits in the queue, at `place`. */
async function waitingProcess(scene: Scene, place: number): Promise<Worker> {
  const worker = await startWorker(bundle());
  await worker.request("start", {
    port: stage.server.port,
    name: scene.name,
    side: "fair",
    options: { pollCap, fairWaitTimeout },
  } satisfies Start);
  worker.request("take", { id: "it" }).catch(() => {});
  await scene.untilQueued(place);
  return worker;
}

/** How a call of client 1 can end its wait, and the code of its error. */
const WAYS = {
  "is aborted": { wait: undefined, code: undefined },
  "times out": { wait: 5_000, code: "WAIT_TIMEOUT" },
  "is ended by the close of its client": { wait: undefined, code: "CLIENT_CLOSED" },
} as const;

interface Leaving {
  readonly call: Watched<unknown>;
  readonly leave: () => Promise<void>;
}

async function leaving(scene: Scene, way: keyof typeof WAYS): Promise<Leaving> {
  const controller = new AbortController();
  const { wait, code } = WAYS[way];
  const options = wait === undefined ? {} : { wait };
  const call = await scene.parked(1, () => scene.fair(1).lock({ ...options, signal: controller.signal }));
  const leave = async (): Promise<void> => {
    if (way === "is aborted") controller.abort(new Error("enough"));
    if (way === "is ended by the close of its client") void scene.client(1).close();
    await expect(soon(call)).rejects.toMatchObject(code === undefined ? { message: "enough" } : { code });
  };
  return { call, leave };
}

for (const way of Object.keys(WAYS) as (keyof typeof WAYS)[]) {
  describe(`a waiter that ${way}`, () => {
    test("leaves no entry, and the lock goes on to the one behind it [F33]", async () => {
      await using scene = await Scene.of(stage, patient, patient, patient);
      const hold = await scene.fair(0).lock();
      const { leave } = await leaving(scene, way);
      const behind = watch(scene.fair(2).lock());
      if (way !== "times out") await scene.untilQueued(2);
      await leave();
      await scene.untilQueued(1);
      for (const key of [keysOf.timeouts, keysOf.alive]) {
        expect((await scene.state(key(scene.name))).value).toHaveLength(1);
      }
      await hold.unlock();
      await (await soon(behind)).unlock();
      await scene.expectNothingLeft();
    });

    test("and was the last leaves no queue", async () => {
      await using scene = await Scene.of(stage, patient, patient);
      const hold = await scene.fair(0).lock();
      const { leave } = await leaving(scene, way);
      expect(await queueKeys(scene)).toEqual(["list", "zset", "zset"]);
      await leave();
      await until("the queue is gone", async () => (await queueKeys(scene)).length === 0);
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
      await scene.expectNothingLeft();
    });
  });
}

for (const way of ["is aborted", "is ended by the close of its client"] as const) {
  test(`a head that ${way} while the lock is free wakes the next one at once`, async () => {
    await using scene = await Scene.of(stage, patient, patient, patient);
    const hold = await scene.fair(0).lock();
    const { leave } = await leaving(scene, way);
    const next = await scene.parked(2, () => scene.fair(2).lock());
    // The head does not hear that it is its turn, and its leaving does not reach the server.
    scene.bed(1).proxy.stall();
    await hold.unlock();
    expect(await scene.fair(0).isLocked()).toBe(false);
    await leave();
    expect(next.state).toBe("pending");
    scene.bed(1).proxy.restore();
    await (await soon(next)).unlock();
    await scene.expectNothingLeft();
  });
}

test("a head that is killed is skipped after three poll caps, not after Redisson's minutes, before 49 others [F31]", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap, fairWaitTimeout }, { pollCap, fairWaitTimeout });
  const hold = await scene.fair(0).lock();
  const worker = await waitingProcess(scene, 1);
  let first: number | undefined;
  const visit = (): void => {
    first ??= performance.now();
  };
  const behind = Array.from({ length: 49 }, (_, n) => watch(scene.fair(1 + (n % 2)).run(visit)));
  await scene.untilQueued(50);
  await worker.kill();
  const killed = performance.now();
  await hold.unlock();
  for (const call of behind) await soon(call, 2 * SOON);
  const waited = (first ?? Number.POSITIVE_INFINITY) - killed;
  console.info(
    `a dead head was skipped ${waited.toFixed(0)} ms after its death, with a pollCap of ${pollCap} ms`,
  );
  expect(waited).toBeLessThan(3 * pollCap + SLACK);
  await scene.expectNothingLeft();
});

test("a paused head keeps its turn until three poll caps are over, and after that has to queue again", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap, fairWaitTimeout });
  const hold = await scene.fair(0).lock();
  await using worker = await waitingProcess(scene, 1);
  const granted = worker.next("granted");
  const behind = watch(scene.fair(1).lock());
  await scene.untilQueued(2);
  worker.pause();
  const [head] = await scene.queue();
  const words = ((await scene.state(keysOf.alive(scene.name))).value ?? []) as [string, number][];
  const [, over] = words.find(([waiter]) => waiter === head) ?? [];
  await hold.unlock();
  const next = await soon(behind);
  // Only the server can tell how old the head's last sign of life was.
  expect(await scene.now()).toBeGreaterThanOrEqual(over ?? Number.POSITIVE_INFINITY);
  worker.resume();
  await scene.untilQueued(1);
  await next.unlock();
  await granted;
  expect(await worker.request("unlock", "it")).toBe("unlocked");
  await scene.expectNothingLeft();
});

test("dead waiters in the middle cost those behind them nothing once they are known to be dead", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap, fairWaitTimeout });
  const hold = await scene.fair(0).lock();
  const first = watch(scene.fair(1).lock());
  await scene.untilQueued(1);
  const workers = await Promise.all([waitingProcess(scene, 3), waitingProcess(scene, 3)]);
  const last = await scene.parked(1, () => scene.fair(1).lock());
  await scene.untilQueued(4);
  await Promise.all(workers.map((worker) => worker.kill()));
  await hold.unlock();
  const second = await soon(first);
  expect(last.state).toBe("pending");
  await second.unlock();
  await (await soon(last)).unlock();
  await scene.expectNothingLeft();
});

test("of many waiters some give up, some run out of time, and the others are served in their order [F33]", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient, patient);
  const hold = await scene.fair(3).lock();
  const controller = new AbortController();
  const served: number[] = [];
  const calls: Watched<void>[] = [];
  const places = new Set<string>();
  for (let n = 0; n < 30; n++) {
    const options = [{}, { signal: controller.signal }, { wait: 5_000 }][n % 3];
    calls.push(watch(scene.fair(Math.floor(n / 2) % 3).run(() => void served.push(n), options)));
    const fresh = async (): Promise<string | undefined> =>
      (await scene.queue()).find((place) => !places.has(place));
    places.add((await until("it has its place", fresh)) as string);
  }
  controller.abort(new Error("enough"));
  await until("twenty are over", () => calls.filter(({ state }) => state === "rejected").length === 20);
  await scene.untilQueued(10);
  await hold.unlock();
  for (const [n, call] of calls.entries()) if (n % 3 === 0) await soon(call);
  expect(served).toEqual([...served].sort((a, b) => a - b));
  expect(served).toHaveLength(10);
  await scene.expectNothingLeft();
});

test("a holder that is killed is followed by the head when its lease ends, by message of nobody", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const worker = await startWorker(bundle());
  await worker.request("start", {
    port: stage.server.port,
    name: scene.name,
    side: "fair",
    options: { watchdogTimeout: 4_500 },
  } satisfies Start);
  await worker.request("take", { id: "it" });
  const first = watch(scene.fair(0).lock());
  await scene.untilQueued(1);
  const second = watch(scene.fair(1).lock());
  await scene.untilQueued(2);
  await worker.kill();
  const hold = await soon(first);
  expect(second.state).toBe("pending");
  await hold.unlock();
  await (await soon(second)).unlock();
  await scene.expectNothingLeft();
});
