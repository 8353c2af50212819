/** Readers of either side whose process is killed: their holds expire, and the writers of both sides go on. */
import { expect, test } from "vitest";
import { readWriteChannel } from "../../../src/base/names.js";
import { bundledWorker } from "../../faults/build-worker.js";
import { failOnUnhandledRejections, pause, soon } from "../../faults/harness.js";
import type { Start } from "../../kinds/lock-worker.js";
import { SLACK, startWorker, until, untilGone, type Worker } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { keysLeft, newParty, parked, readTtl, SIDES } from "./party.js";

failOnUnhandledRejections();
const bundle = bundledWorker("../kinds/lock-worker.ts");

const WATCHDOG = 1_500;
/** How long after its reader's death a lock can be had, with tolerance. */
const LAPSED = WATCHDOG + SLACK;

/** Starts a Node process that reads. */
async function readingProcess(scene: Scene, name: string): Promise<{ worker: Worker; owner: string }> {
  const worker = await startWorker(bundle());
  const options = { watchdogTimeout: WATCHDOG };
  const start: Start = { port: scene.server.port, name, side: "read", options };
  await worker.request("start", start);
  return { worker, owner: await worker.request<string>("take", { id: "it" }) };
}

/** Starts a JVM whose threads read these names. */
async function readingJvm(scene: Scene, names: readonly string[]) {
  const jvm = scene.newJvm();
  const clients = await Promise.all(names.map(() => scene.newJava({ watchdog: WATCHDOG }, jvm)));
  const threads = await Promise.all(clients.map((client) => scene.thread(client)));
  for (const [i, name] of names.entries()) await threads[i]?.lock("read", name).lock();
  return { jvm, owners: threads.map(({ owner }) => owner) };
}

withRedisson("dead readers", (scene) => {
  test("a JVM is killed while it reads: its holds lapse, and writers of both sides get in", {
    timeout: 60_000,
  }, async () => {
    const names = SIDES.map(() => scene.name());
    const { jvm } = await readingJvm(scene, names);
    const writers = await Promise.all(SIDES.map((side) => newParty(scene, side)));
    const waiting = [];
    for (const [i, writer] of writers.entries()) {
      waiting.push(await parked(scene, writer, () => writer.take("write", names[i] ?? "").lock(NEVER)));
    }
    await jvm.kill();
    const killed = performance.now();
    await Promise.all(waiting.map((each) => soon(each)));
    expect(performance.now() - killed).toBeLessThan(LAPSED);
    for (const [i, writer] of writers.entries()) await writer.take("write", names[i] ?? "").unlock();
  });

  test("a Node process is killed while it reads: its hold lapses, and a Java writer gets in", async () => {
    const name = scene.name();
    const { worker } = await readingProcess(scene, name);
    const party = await newParty(scene, "Java");
    const writer = party.take("write", name);
    const waiting = await parked(scene, party, () => writer.lock(NEVER));
    await worker.kill();
    const killed = performance.now();
    await soon(waiting);
    expect(performance.now() - killed).toBeLessThan(LAPSED);
    await writer.unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  test("a killed Java reader is not kept alive by a Node reader that renews: when that leaves, writers of both sides get in at once", {
    timeout: 60_000,
  }, async () => {
    const names = SIDES.map(() => scene.name());
    const { jvm, owners } = await readingJvm(scene, names);
    const live = scene.newNode({ watchdogTimeout: WATCHDOG });
    const holds = await Promise.all(names.map((name) => live.getReadWriteLock(name).readLock().lock()));
    const writers = await Promise.all(SIDES.map((side) => newParty(scene, side)));
    const waiting = writers.map((writer, i) => writer.take("write", names[i] ?? "").lock(NEVER));
    await jvm.kill();
    for (const [i, name] of names.entries()) {
      await until("its hold has lapsed", async () => (await readTtl(scene, name, owners[i] ?? "")) === -2);
    }
    const ends = performance.now() + 1.5 * WATCHDOG;
    while (performance.now() < ends) {
      for (const [i, name] of names.entries()) {
        expect(await readTtl(scene, name, owners[i] ?? "")).toBe(-2);
        expect(await scene.redis.hget(name, "mode")).toBe("read");
      }
      await pause(50);
    }
    const heard = await listen(scene, names);
    for (const hold of holds) await hold.unlock();
    await Promise.all(waiting);
    expect(heard.messages.sort()).toEqual(names.map((name) => `${readWriteChannel(name)} 0`).sort());
    for (const [i, writer] of writers.entries()) await writer.take("write", names[i] ?? "").unlock();
    heard.end();
  });

  // Before 4.4.0 Java renews the holds of all readers as if they were its own, also those of dead readers.
  const renewsItsOwn = scene.atLeast("4.4.0");

  test("a killed Node reader beside a Java reader that renews: before 4.4.0 Java keeps it alive, but no longer than itself", {
    timeout: 60_000,
  }, async () => {
    const names = SIDES.map(() => scene.name());
    const dead = await Promise.all(names.map((name) => readingProcess(scene, name)));
    const live = await Promise.all(
      names.map(async (name) => {
        const java = await scene.newJava({ watchdog: WATCHDOG });
        return (await scene.thread(java)).lock("read", name);
      }),
    );
    for (const each of live) await each.lock();
    const writers = await Promise.all(SIDES.map((side) => newParty(scene, side)));
    const waiting = writers.map((writer, i) => writer.take("write", names[i] ?? "").lock(NEVER));
    await Promise.all(dead.map(({ worker }) => worker.kill()));
    const ttls = () => Promise.all(names.map((name, i) => readTtl(scene, name, dead[i]?.owner ?? "")));
    if (renewsItsOwn) await until("they have lapsed", async () => (await ttls()).every((ttl) => ttl === -2));
    const ends = performance.now() + 1.5 * WATCHDOG;
    while (performance.now() < ends) {
      for (const ttl of await ttls()) {
        if (renewsItsOwn) expect(ttl).toBe(-2);
        else expect(ttl).toBeGreaterThan(0);
      }
      await pause(50);
    }
    const left = performance.now();
    for (const each of live) await each.unlock();
    await Promise.all(waiting);
    expect(performance.now() - left).toBeLessThan(LAPSED);
    for (const [i, writer] of writers.entries()) await writer.take("write", names[i] ?? "").unlock();
  });

  test("a Java client that reads two locks renews the holds of both, but from 3.44.0 to 4.3: Node's writer gets in beside the other reader", async () => {
    const names = [scene.name(), scene.name()];
    const java = await scene.newJava({ watchdog: WATCHDOG });
    const readers = await Promise.all(names.map(() => scene.thread(java)));
    for (const [i, name] of names.entries()) await readers[i]?.lock("read", name).lock();
    let renewals = 0;
    const last = names.map(() => 0);
    await until(
      "each lock has been renewed for longer than a lease",
      async () => {
        for (const [i, name] of names.entries()) {
          const ttl = await scene.redis.pttl(name);
          if (ttl > (last[i] ?? 0)) renewals++;
          last[i] = ttl;
        }
        return renewals >= 10;
      },
      { timeout: 10_000 },
    );
    const lapsed = [];
    const writable = [];
    for (const [i, name] of names.entries()) {
      if ((await readTtl(scene, name, readers[i]?.owner ?? "")) === -2) lapsed.push(name);
      expect(await scene.redis.hget(name, "mode")).toBe("read");
      expect(await (await newParty(scene, "Java")).take("write", name).tryLock()).toBe(false);
      const writer = (await newParty(scene, "Node")).take("write", name);
      if (!(await writer.tryLock())) continue;
      writable.push(name);
      await writer.unlock();
    }
    expect(lapsed).toHaveLength(renewsItsOwn || !scene.atLeast("3.44.0") ? 0 : 1);
    expect(writable).toEqual(lapsed);
    await java.close();
  });

  test("the live reader leaves before the dead one lapses: Node's writer comes by pollCap, Java's by the TTL that it saw last or by a message", async () => {
    const [forNode, forJava] = [scene.name(), scene.name()];
    const dead = await Promise.all([forNode, forJava].map((name) => readingProcess(scene, name)));
    const live = await Promise.all(
      [forNode, forJava].map((name) => scene.node.getReadWriteLock(name).readLock().lock({ lease: NEVER })),
    );
    const polling = await newParty(scene, "Node", { node: { pollCap: 500 } });
    const sleeping = await newParty(scene, "Java");
    const java = await parked(scene, sleeping, () => sleeping.take("write", forJava).lock(NEVER));
    const node = await parked(scene, polling, () => polling.take("write", forNode).lock(NEVER));
    await Promise.all(dead.map(({ worker }) => worker.kill()));
    for (const hold of live) await hold.unlock();
    await soon(node);
    await polling.take("write", forNode).unlock();
    await untilGone(scene.redis, forJava);
    await pause(500);
    expect(java.state).toBe("pending");
    await polling.take("write", forJava).lock();
    await polling.take("write", forJava).unlock();
    await soon(java);
    await sleeping.take("write", forJava).unlock();
  });
});

/** The messages of these locks from now on. */
async function listen(scene: Scene, names: readonly string[]) {
  const messages: string[] = [];
  const ear = scene.redis.duplicate();
  ear.on("message", (channel: string, message: string) => messages.push(`${channel} ${message}`));
  await ear.subscribe(...names.map(readWriteChannel));
  return { messages, end: () => ear.disconnect() };
}
