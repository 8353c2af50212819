/** Waiting writers go before readers that come later, and hold no reader up once they have gone. */
import { expect, test } from "vitest";
import type { Hold, Lock } from "../../src/index.js";
import { bundledWorker } from "../faults/build-worker.js";
import { pause, SOON, soon, useStage, watch } from "../faults/harness.js";
import { SLACK, startWorker, until } from "../support/index.js";
import { keysOf, NEVER, Scene, unlockAll } from "./helpers.js";
import type { Start } from "./lock-worker.js";

const stage = await useStage("standalone");
const bundle = bundledWorker("../kinds/lock-worker.ts");

const patient = { pollCap: NEVER };
/** The longest section of a reader in these tests. */
const SECTION = 50;
/** A bound for a busy machine; on an idle one the writer has the lock within two sections. */
const MARGIN = SLACK;

/** Twenty readers of clients 0 and 1 that read again as soon as they have left; resolves when at any time one reads. */
async function readerStream(scene: Scene): Promise<{ end: () => Promise<void>; reads: () => number }> {
  let [reads, ended] = [0, false];
  const loop = async (read: Lock, i: number): Promise<void> => {
    await pause((i * SECTION) / 20);
    while (!ended) {
      await read.run(() => pause(SECTION));
      reads++;
    }
  };
  const loops = Array.from({ length: 20 }, (_, i) => watch(loop(scene.read(i % 2), i)).promise);
  await until("all have read", () => reads >= 40, { timeout: SOON });
  return {
    reads: () => reads,
    end: async () => {
      ended = true;
      await Promise.all(loops);
    },
  };
}

test("twenty readers that come again and again cannot keep a writer out [F35]", async () => {
  await using scene = await Scene.of(stage, {}, {}, {});
  const stream = await readerStream(scene);
  const waits: number[] = [];
  for (let round = 0; round < 10; round++) {
    const begun = performance.now();
    const write = await scene.write(2).lock({ wait: SECTION + MARGIN });
    waits.push(performance.now() - begun);
    const before = stream.reads();
    await write.unlock();
    await until("the readers are back", () => stream.reads() >= before + 40, { timeout: SOON });
  }
  await stream.end();
  const figures = waits.map((wait) => wait.toFixed(0)).join(" ");
  console.info(`writer against 20 readers of ${SECTION} ms each: in after ${figures} ms`);
  expect(Math.max(...waits)).toBeLessThan(SECTION + MARGIN);
  await scene.expectNothingLeft();
});

test("while a writer waits no new reader gets in, and with preferWriters: false every one does", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient);
  const reading = await scene.read(0).lock();
  const writer = await scene.parked(1, () => scene.write(1).lock());
  expect(await scene.read(0).tryLock()).toBeNull();
  expect(await scene.read(2).tryLock(2_500)).toBeNull();
  const bold = await scene.read(2, false).tryLock();
  expect(bold).not.toBeNull();
  await bold?.unlock();
  await scene.expectStillWaiting(writer);
  await reading.unlock();
  await (await soon(writer)).unlock();

  const second = await scene.read(0).lock();
  const modest = await scene.parked(1, () => scene.write(1, false).lock());
  expect(await scene.state(keysOf.writers(scene.name))).toMatchObject({ type: "none" });
  const beside = await scene.read(2).tryLock();
  expect(beside).not.toBeNull();
  await unlockAll([second, beside as Hold]);
  await (await soon(modest)).unlock();
  await scene.expectNothingLeft();
});

test("an owner that reads already re-enters past waiting writers", async () => {
  await using scene = await Scene.of(stage, patient, patient);
  const read = scene.read(0);
  await scene.client(0).scope(async () => {
    await read.lock();
    const writer = await scene.parked(1, () => scene.write(1).lock());
    await read.lock({ wait: SOON });
    await read.run(() => read.run(() => {}));
    expect(await read.getHoldCount()).toBe(2);
    await scene.expectStillWaiting(writer);
    await read.unlock();
    await read.unlock();
    await (await soon(writer)).unlock();
  });
  await scene.expectNothingLeft();
});

test("a try for the write side that does not wait keeps no reader out", async () => {
  await using scene = await Scene.of(stage, {}, {});
  const reading = await scene.read(0).lock();
  expect(await scene.write(1).tryLock()).toBeNull();
  const beside = await scene.read(0).tryLock();
  expect(beside).not.toBeNull();
  await unlockAll([reading, beside as Hold]);
});

for (const way of ["is aborted", "times out", "is ended by the close of its client"] as const) {
  test(`a waiting writer that ${way} lets the waiting readers in at once`, async () => {
    await using scene = await Scene.of(stage, patient, patient, patient);
    const reading = await scene.read(0).lock();
    const controller = new AbortController();
    const wait = way === "times out" ? { wait: 5_500 } : {};
    const writer = await scene.parked(1, () => scene.write(1).lock({ signal: controller.signal, ...wait }));
    const readers = [await scene.parked(2, () => scene.read(2).lock()), watch(scene.read(2).lock())];
    if (way === "is aborted") controller.abort(new Error("enough"));
    if (way === "is ended by the close of its client") void scene.client(1).close();
    await expect(soon(writer)).rejects.toThrow();
    const holds = await Promise.all(readers.map((reader) => soon(reader)));
    expect(await scene.state(keysOf.writers(scene.name))).toMatchObject({ type: "none" });
    await unlockAll([reading, ...holds]);
    await scene.expectNothingLeft();
  });
}

/** The waiting writers that the server knows. */
async function marked(scene: Scene): Promise<string[]> {
  const { value } = await scene.state(keysOf.writers(scene.name));
  return ((value ?? []) as [string, number][]).map(([writer]) => writer);
}

for (const [where, client] of [
  ["the same process", 1],
  ["another process", 2],
] as const) {
  test(`of two waiting writers the first gives up: the second, of ${where}, keeps the readers out`, async () => {
    await using scene = await Scene.of(stage, patient, patient, patient);
    const reading = await scene.read(0).lock();
    const controller = new AbortController();
    const leaving = await scene.parked(1, () => scene.write(1).lock({ signal: controller.signal }));
    const [first = ""] = await marked(scene);
    const next = watch(scene.write(client).lock());
    await scene.bed(client).redis.ping();
    controller.abort();
    await expect(soon(leaving)).rejects.toThrow();
    await until("the other one is known", async () => {
      const writers = await marked(scene);
      return writers.length === 1 && !writers.includes(first);
    });
    expect(await scene.read(2).tryLock()).toBeNull();
    await reading.unlock();
    await (await soon(next)).unlock();
    await scene.expectNothingLeft();
  });
}

test("all writers of a process that wait go before readers that came later, whatever their turns [B82]", async () => {
  await using scene = await Scene.of(stage, patient, patient, patient);
  const order: string[] = [];
  const hold = await scene.write(0).lock();
  const write = async (n: number): Promise<void> => {
    const writing = await scene.write(1).lock();
    order.push(`write ${n}`);
    // Longer than the shortest turn, so that each turn is over after the hand-overs that follow.
    if (n % 5 === 1) await pause(10);
    await writing.unlock();
  };
  // A reader of the same process listens too, so it is not known whether other processes listen: each turn ends with a
  // release to all.
  const beside = await scene.parked(1, () => scene.read(1).run(() => {}));
  const writers = Array.from({ length: 61 }, (_, n) => watch(write(n)));
  await until("they are known", async () => (await marked(scene)).length > 0);
  const reader = await scene.parked(2, () => scene.read(2).run(() => void order.push("read")));
  await hold.unlock();
  for (const call of [beside, ...writers, reader]) await soon(call);
  expect(order).toEqual([...Array.from({ length: 61 }, (_, n) => `write ${n}`), "read"]);
  await scene.expectNothingLeft();
});

test("writers that wait for longer than they count as alive unheard of stay preferred", async () => {
  const pollCap = 1_500;
  await using scene = await Scene.of(stage, {}, { pollCap }, {});
  const reading = await scene.read(0).lock();
  const writing = [1, 2, 3].map(() => watch(scene.write(1).lock()));
  await until("one is marked", async () => (await marked(scene)).length > 0);
  const end = performance.now() + 4 * pollCap;
  while (performance.now() < end) {
    expect(await marked(scene)).not.toEqual([]);
    expect(await scene.read(2).tryLock()).toBeNull();
    expect(await scene.ttl(keysOf.writers(scene.name))).toBeGreaterThan(0);
    await pause(20);
  }
  await reading.unlock();
  for (const writer of writing) await (await soon(writer)).unlock();
  await scene.expectNothingLeft();
});

test("a writer whose process stood still until its mark lapsed goes before the readers of that process all the same [B50]", async () => {
  const pollCap = 100;
  await using scene = await Scene.of(stage, {}, { pollCap });
  const order: string[] = [];
  const reading = await scene.read(0).lock();
  const writer = await scene.parked(1, () => scene.write(1).run(() => void order.push("write")));
  const awake = performance.now() + 4 * pollCap;
  while (performance.now() < awake);
  // Both commands are sent in this order before any timer of the client fires.
  const look = ["return redis.call('EXISTS', KEYS[1])", 1, keysOf.writers(scene.name)];
  const mark = scene.bed(1).redis.eval(...(look as never[]));
  const tried = scene.read(1).tryLock();
  const reader = watch(scene.read(1).run(() => void order.push("read")));
  expect(await mark).toBe(0);
  expect(await tried).toBeNull();
  await scene.expectStillWaiting(writer, reader);
  await reading.unlock();
  await Promise.all([soon(writer), soon(reader)]);
  expect(order).toEqual(["write", "read"]);
  await scene.expectNothingLeft();
});

test("a writer whose process stands still counts as dead after three poll caps; awake, it goes first again", async () => {
  const pollCap = 300;
  await using scene = await Scene.of(stage, {});
  await using worker = await startWorker(bundle());
  const { name } = scene;
  const start: Start = { port: stage.server.port, name, side: "write", options: { pollCap } };
  await worker.request("start", start);
  const isMarked = async () => (await scene.state(keysOf.writers(name))).type === "zset";
  const reading = await scene.read(0).lock();
  const writer = watch(worker.request("take", { id: "it" }));
  await until("it is marked", isMarked);
  worker.pause();
  const beside = await scene.read(0).lock({ wait: SOON });
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

test("a waiting writer that is killed keeps readers out for three poll caps, and no longer", async () => {
  const pollCap = 300;
  await using scene = await Scene.of(stage, { pollCap });
  await using worker = await startWorker(bundle());
  await worker.request("start", {
    port: stage.server.port,
    name: scene.name,
    side: "write",
    options: { pollCap },
  } satisfies Start);
  const reading = await scene.read(0).lock();
  const call = worker.request("take", { id: "it" }).catch(() => {});
  await until("it is marked", async () => (await scene.state(keysOf.writers(scene.name))).type === "zset");
  const killed = performance.now();
  await worker.kill();
  const marks = ((await scene.state(keysOf.writers(scene.name))).value ?? []) as [string, number][];
  const beside = await scene.read(0).lock({ wait: SOON });
  const waited = performance.now() - killed;
  // Only the server can tell how old the writer's mark was when it died, because its process may have stood still
  // before.
  for (const [, over] of marks) expect(await scene.now()).toBeGreaterThanOrEqual(over);
  expect(waited).toBeLessThan(3 * pollCap + SLACK);
  await unlockAll([reading, beside]);
  await call;
  await scene.expectNothingLeft();
});
