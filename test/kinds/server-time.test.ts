/** Contract section 4 on real servers: what only the server's clock decides, beside processes that die or stand still. */
import { expect, test } from "vitest";
import { fairAlive, fairQueue, readHold, waitingWriters } from "../../src/base/names.js";
import type { Lock, LockClientOptions } from "../../src/index.js";
import { NamedBeds } from "../faults/beds.js";
import { bundledWorker } from "../faults/build-worker.js";
import { NEVER, SOON, soon, unlockAll, useStage, type Watched, watch } from "../faults/harness.js";
import { expectNothingLeft, untilFree } from "../faults/remains.js";
import { PATIENCE, SLACK, startWorker, UNHURRIED, until, type Worker } from "../support/index.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

/** For tests in which a waiter dies. A process that stands still for three pollCaps counts as dead, too. */
const pollCap = 1_000;
/** The time after which Redisson takes a waiter for dead, far longer than the test. */
const fairWaitTimeout = 60_000;
/** The lease of readers, of which one dies. */
const LEASE = 4_500;

/** Clients on one server. All use the lock that is named after the first one's bed. */
class Scene extends NamedBeds {
  /** A client for each of these options. */
  static async of(...options: readonly LockClientOptions[]): Promise<Scene> {
    return new Scene(await Promise.all(options.map((client) => stage.bed({ client }))));
  }

  fair(i: number): Lock {
    return this.client(i).getFairLock(this.name);
  }

  read(i: number): Lock {
    return this.client(i).getReadWriteLock(this.name).readLock();
  }

  write(i: number): Lock {
    return this.client(i).getReadWriteLock(this.name).writeLock();
  }

  /** The members of a sorted set with their scores, which are times of the server's clock. */
  async times(key: string): Promise<[string, number][]> {
    return ((await this.state(key)).value ?? []) as [string, number][];
  }

  /** The fair queue, head first. */
  async queue(): Promise<string[]> {
    return ((await this.state(fairQueue(this.name))).value ?? []) as string[];
  }

  untilQueued(length: number): Promise<unknown> {
    return until(`${length} are queued`, async () => (await this.queue()).length === length);
  }

  /** Soon only markers are left of the lock, which expire. */
  async expectNothingLeft(): Promise<void> {
    await untilFree(this.bed(0));
    await expectNothingLeft(this.bed(0));
  }
}

/** Starts a process with its own client of the scene's lock. */
async function start(
  scene: Scene,
  side: Required<Start>["side"],
  options: LockClientOptions,
): Promise<Worker> {
  const worker = await startWorker(bundle());
  await worker.request("start", { port: stage.server.port, name: scene.name, side, options } satisfies Start);
  return worker;
}

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

test("a server that stood still until all places had lapsed keeps the order, and nobody overtakes [§4 fair] [B221]", async () => {
  const pollCap = 300;
  await using scene = await Scene.of(
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
  const places = await scene.times(fairAlive(scene.name));
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

/** Starts a process that waits in the queue, at `place`. */
async function waitingProcess(scene: Scene, place: number): Promise<Worker> {
  const worker = await start(scene, "fair", { pollCap, fairWaitTimeout });
  worker.request("take", { id: "it" }).catch(() => {});
  await scene.untilQueued(place);
  return worker;
}

test("a head that is killed is skipped after three poll caps, not after Redisson's minutes, before 9 others [§4 fair] [F31]", async () => {
  await using scene = await Scene.of({}, { pollCap, fairWaitTimeout }, { pollCap, fairWaitTimeout });
  const hold = await scene.fair(0).lock();
  const worker = await waitingProcess(scene, 1);
  let first: number | undefined;
  const visit = (): void => {
    first ??= performance.now();
  };
  const behind = Array.from({ length: 9 }, (_, n) => watch(scene.fair(1 + (n % 2)).run(visit)));
  await scene.untilQueued(10);
  await worker.kill();
  const killed = performance.now();
  await hold.unlock();
  for (const call of behind) await soon(call, 2 * SOON);
  const waited = (first ?? Number.POSITIVE_INFINITY) - killed;
  expect(waited).toBeLessThan(3 * pollCap + SLACK);
  await scene.expectNothingLeft();
});

test("a paused head keeps its turn until three poll caps are over, and after that has to queue again [§4 fair]", async () => {
  await using scene = await Scene.of({}, { pollCap, fairWaitTimeout });
  const hold = await scene.fair(0).lock();
  await using worker = await waitingProcess(scene, 1);
  const granted = worker.next("granted");
  const behind = watch(scene.fair(1).lock());
  await scene.untilQueued(2);
  worker.pause();
  const [head] = await scene.queue();
  const [, over] = (await scene.times(fairAlive(scene.name))).find(([waiter]) => waiter === head) ?? [];
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

test("one of twenty readers is killed: it lapses within its lease, and the writer gets in when the live ones leave [§4 reader-leases] [F34]", async () => {
  await using scene = await Scene.of(
    { watchdogTimeout: LEASE },
    { watchdogTimeout: LEASE },
    { pollCap: NEVER },
  );
  const live = await Promise.all(Array.from({ length: 19 }, (_, i) => scene.read(i % 2).lock()));
  const worker = await start(scene, "read", { watchdogTimeout: LEASE });
  const ownerId = await worker.request<string>("take", { id: "it" });
  const writer = await scene.parked(2, () => scene.write(2).lock());
  const ttl = async () => (await scene.state(readHold(scene.name, ownerId, 1))).ttl;
  expect(await ttl()).toBeGreaterThan(0);
  let renewals = 0;
  scene.client(0).on("renewed", () => renewals++);
  await worker.kill();
  const killed = performance.now();
  await until("the dead one has lapsed", async () => (await ttl()) === -2, {
    timeout: SOON,
  });
  expect(performance.now() - killed).toBeLessThan(LEASE + SLACK);
  // Until each of the ten was renewed once more after the end of that lease.
  const enough = Math.max(5 * 10, renewals + 2 * 10);
  await until("the others have been renewed for longer than a lease", () => renewals >= enough, {
    timeout: SOON,
  });
  expect(await ttl()).toBe(-2);
  expect(live.every(({ isHeld }) => isHeld)).toBe(true);
  await scene.expectStillWaiting(writer);
  await unlockAll(live);
  await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("a writer whose process stands still counts as dead after three poll caps; awake, it goes first again [§4 prefer-writers]", async () => {
  const pollCap = 300;
  await using scene = await Scene.of({});
  await using worker = await start(scene, "write", { pollCap });
  const { name } = scene;
  const isMarked = async () => (await scene.times(waitingWriters(name))).length > 0;
  const reading = await scene.read(0).lock();
  const writer = watch(worker.request("take", { id: "it" }));
  await until("it is marked", isMarked);
  worker.pause();
  const paused = performance.now();
  const marks = await scene.times(waitingWriters(name));
  const beside = await scene.read(0).lock({ wait: SOON });
  expect(performance.now() - paused).toBeLessThan(3 * pollCap + SLACK);
  // Only the server can tell how old the writer's mark was when its process was stopped.
  for (const [, over] of marks) expect(await scene.now()).toBeGreaterThanOrEqual(over);
  worker.resume();
  await until("it is marked again", isMarked);
  // The writer's process may stand still again before the reader's try, so the try is repeated.
  await until("it keeps readers out again", async () => {
    const tried = await scene.read(0).tryLock();
    await tried?.unlock();
    return tried === null;
  });
  await unlockAll([reading, beside]);
  await soon(writer);
  await worker.request("unlock", "it");
  await scene.expectNothingLeft();
});
