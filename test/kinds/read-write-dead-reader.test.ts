/**
 * A reader whose process has died ends by its own lease: no renewal of others keeps it alive, and no call waits longer.
 */
import { expect, test } from "vitest";
import { recordEvents } from "../contract/helpers.js";
import { bundledWorker } from "../faults/build-worker.js";
import { SOON, soon, useStage } from "../faults/harness.js";
import { SLACK, startWorker, until, type Worker } from "../support/index.js";
import { keysOf, NEVER, Scene, unlockAll } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const LEASE = 4_500;

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

/** Starts a process that reads; `ownerId` is its wire id. */
async function readingProcess(scene: Scene): Promise<{ worker: Worker; ownerId: string }> {
  const worker = await startWorker(bundle());
  await worker.request("start", {
    port: stage.server.port,
    name: scene.name,
    side: "read",
    options: { watchdogTimeout: LEASE },
  } satisfies Start);
  return { worker, ownerId: await worker.request<string>("take", { id: "it" }) };
}

test("one of twenty readers is killed: it lapses within its lease, and the writer gets in when the live ones leave [F34]", async () => {
  await using scene = await Scene.of(
    stage,
    { watchdogTimeout: LEASE },
    { watchdogTimeout: LEASE },
    { pollCap: NEVER },
  );
  const live = await Promise.all(Array.from({ length: 19 }, (_, i) => scene.read(i % 2).lock()));
  const { worker, ownerId } = await readingProcess(scene);
  const writer = await scene.parked(2, () => scene.write(2).lock());
  const key = keysOf.hold(scene.name, ownerId, 1);
  expect(await scene.ttl(key)).toBeGreaterThan(0);
  let renewals = 0;
  scene.client(0).on("renewed", () => renewals++);
  await worker.kill();
  const killed = performance.now();
  await until("the dead one has lapsed", async () => (await scene.ttl(key)) === -2, {
    timeout: SOON,
  });
  expect(performance.now() - killed).toBeLessThan(LEASE + SLACK);
  // Until each of the ten was renewed once more after the end of that lease.
  const enough = Math.max(5 * 10, renewals + 2 * 10);
  await until("the others have been renewed for longer than a lease", () => renewals >= enough, {
    timeout: SOON,
  });
  expect(await scene.ttl(key)).toBe(-2);
  expect(live.every(({ isHeld }) => isHeld)).toBe(true);
  await scene.expectStillWaiting(writer);
  await unlockAll(live);
  await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("the live readers leave before the dead one lapses: the writer gets in once it has, at the next look", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap: 500 });
  const live = await scene.read(0).lock({ lease: 60_000 });
  const { worker } = await readingProcess(scene);
  const writer = await scene.parked(1, () => scene.write(1).lock());
  await worker.kill();
  await live.unlock();
  expect(await scene.ttl()).toBeLessThanOrEqual(LEASE);
  await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("a reader that dies while it waits keeps nobody out", async () => {
  await using scene = await Scene.of(stage, {}, { pollCap: NEVER });
  const write = await scene.write(0).lock();
  await using worker = await startWorker(bundle());
  await worker.request("start", {
    port: scene.bed(0).proxy.port,
    name: scene.name,
    side: "read",
    options: { pollCap: NEVER },
  } satisfies Start);
  const before = scene.asked(0);
  const call = worker.request("take", { id: "it" }).catch(() => {});
  await until("it waits", () => scene.asked(0) >= before + 2);
  const writer = await scene.parked(1, () => scene.write(1).lock());
  await worker.kill();
  await call;
  await write.unlock();
  await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("a reader whose hold key vanished is told that it is lost at the next renewal", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: LEASE }, { pollCap: NEVER });
  const seen = recordEvents(scene.client(0));
  const read = await scene.read(0).lock();
  const others = await scene.read(0).lock();
  expect(await scene.call("DEL", keysOf.hold(scene.name, read.ownerId, 1))).toBe(1);
  expect(await scene.read(0).isHeldByCurrentOwner({ owner: read })).toBe(false);
  await until("it is told", () => read.signal.aborted, { timeout: SOON });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  expect(seen).toContainEqual({
    name: "lost",
    payload: expect.objectContaining({ lockName: scene.name, kind: "readwrite", ownerId: read.ownerId }),
  });
  expect(await scene.ttl(keysOf.hold(scene.name, read.ownerId, 1))).toBe(-2);
  expect(others.isHeld).toBe(true);
  await others.unlock();
  await scene.expectNothingLeft();
});

test("the only reader, whose hold key vanished, is told that it is over and not that others took it", async () => {
  await using scene = await Scene.of(stage, { watchdogTimeout: LEASE });
  const read = await scene.read(0).lock();
  await scene.call("DEL", keysOf.hold(scene.name, read.ownerId, 1));
  await until("it is told", () => read.signal.aborted, { timeout: SOON });
  await expect(read.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await scene.expectNothingLeft();
});
