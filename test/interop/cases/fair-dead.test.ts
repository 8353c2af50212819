/** Processes of either side that are killed in the queue of a fair lock, or while they hold it. */
import { beforeEach, expect, test } from "vitest";
import { fairAlive, fairQueue } from "../../../src/base/names.js";
import { bundledWorker } from "../../faults/build-worker.js";
import { failOnUnhandledRejections, soon, type Watched } from "../../faults/harness.js";
import type { Start } from "../../kinds/lock-worker.js";
import { SLACK, STEADY, startWorker, until, type Worker } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { keysLeft, newParty, type PartyLock, parked } from "./party.js";
import type { Side } from "./sides.js";

failOnUnhandledRejections();
const bundle = bundledWorker("../kinds/lock-worker.ts");

/** The watchdog of a holder that is killed. A living holder has {@link STEADY}, so that it does not lose its hold. */
const WATCHDOG = 1_500;
const GRACE = 2_500;
/** The default of both sides. */
const LONG_GRACE = 300_000;
/** The time that a busy machine may add. */
const MORE: number = SLACK;

type Options = NonNullable<Start["options"]>;

async function nodeProcess(scene: Scene, name: string, options: Options): Promise<Worker> {
  const worker = await startWorker(bundle());
  await worker.request("start", { port: scene.server.port, name, side: "fair", options } satisfies Start);
  return worker;
}

withRedisson("deaths at a fair lock", (scene) => {
  beforeEach(({ skip }) => {
    if (!scene.atLeast("3.46.0"))
      skip(`Redisson ${scene.version} waits for five minutes for the dead; 3.46.0 can be told`);
  });

  const queued = (name: string, count: number) =>
    until(`${count} are queued`, async () => (await scene.redis.llen(fairQueue(name))) === count);

  interface Turn {
    readonly lock: PartyLock;
    readonly call: Watched<unknown>;
  }

  /** Waiters of these sides, in this order, behind those that already wait. */
  async function behind(name: string, sides: readonly Side[], node: Options = {}): Promise<Turn[]> {
    const turns: Turn[] = [];
    const java = await scene.newJava({ fairWait: node.fairWaitTimeout ?? LONG_GRACE });
    for (const side of sides) {
      const party = await newParty(scene, side, { java, node });
      const lock = party.take("fair", name);
      turns.push({ lock, call: await parked(scene, party, () => lock.lock(NEVER)) });
    }
    return turns;
  }

  async function serve(name: string, turns: readonly Turn[]): Promise<void> {
    for (const [i, { lock, call }] of turns.entries()) {
      await soon(call);
      expect(turns.slice(i + 1).every((later) => later.call.state === "pending")).toBe(true);
      await lock.unlock();
    }
    // A waiter that Java has dropped may stay in the set of those alive for a while.
    const left = await keysLeft(scene, name);
    expect(left.filter((key) => key !== fairAlive(name))).toEqual([]);
    for (const key of left) expect(await scene.redis.pttl(key)).toBeGreaterThan(0);
  }

  test("a JVM is killed while it is next: those behind it on either side get in when its place lapses, in order", {
    timeout: 60_000,
  }, async () => {
    const orders: readonly (readonly Side[])[] = [
      ["Node", "Java"],
      ["Java", "Node"],
    ];
    const names = orders.map(() => scene.name());
    const jvm = scene.newJvm();
    const doomed = await scene.newJava({ fairWait: GRACE }, jvm);
    const options = { fairWaitTimeout: GRACE };
    const renewed = { ...options, watchdogTimeout: STEADY };
    const holds = await Promise.all(names.map((name) => scene.newNode(renewed).getFairLock(name).lock()));
    const heads = [];
    for (const name of names) {
      const thread = await scene.thread(doomed);
      heads.push(await parked(scene, thread, () => thread.lock("fair", name).lock()));
    }
    const turns: Turn[][] = [];
    for (const [i, name] of names.entries()) turns.push(await behind(name, orders[i] ?? [], options));
    await jvm.kill();
    for (const hold of holds) await hold.unlock();
    const begun = performance.now();
    for (const { promise } of heads) await expect(promise).rejects.toThrow("the JVM has ended");
    await Promise.all(names.map((name, i) => serve(name, turns[i] ?? [])));
    expect(performance.now() - begun).toBeLessThan(STEADY + GRACE + MORE);
  });

  test("a Node process is killed while it is next: with Node behind, Java gets in within seconds, long before the place lapses", async () => {
    const name = scene.name();
    const hold = await scene.newNode().getFairLock(name).lock({ lease: NEVER });
    const options = { pollCap: 600 };
    const worker = await nodeProcess(scene, name, options);
    const head = worker.request("take", { id: "it" }).catch(() => {});
    await queued(name, 1);
    const turns = await behind(name, ["Java", "Node"], options);
    await worker.kill();
    await head;
    await hold.unlock();
    await serve(name, turns);
  });

  test("a Node process is killed while it is next: Java alone behind it gets in when the place lapses", async () => {
    const name = scene.name();
    const hold = await scene.newNode({ watchdogTimeout: STEADY }).getFairLock(name).lock();
    const worker = await nodeProcess(scene, name, { fairWaitTimeout: GRACE });
    const head = worker.request("take", { id: "it" }).catch(() => {});
    await queued(name, 1);
    const turns = await behind(name, ["Java", "Java"], { fairWaitTimeout: GRACE });
    await worker.kill();
    await head;
    await hold.unlock();
    const begun = performance.now();
    await serve(name, turns);
    expect(performance.now() - begun).toBeLessThan(STEADY + GRACE + MORE);
  });

  test("a JVM is killed while it holds the lock: Node and Java behind it are served in order when its lease ends", {
    timeout: 60_000,
  }, async () => {
    const name = scene.name();
    const jvm = scene.newJvm();
    const doomed = await scene.newJava({ watchdog: WATCHDOG }, jvm);
    await (await scene.thread(doomed)).lock("fair", name).lock();
    const turns = await behind(name, ["Node", "Java"]);
    await jvm.kill();
    const begun = performance.now();
    await serve(name, turns);
    expect(performance.now() - begun).toBeLessThan(WATCHDOG + MORE);
  });

  test("a Node process is killed while it holds the lock: Java and Node behind it are served in order when its lease ends", async () => {
    const name = scene.name();
    const worker = await nodeProcess(scene, name, { watchdogTimeout: WATCHDOG });
    await worker.request("take", { id: "it" });
    const turns = await behind(name, ["Java", "Node"]);
    await worker.kill();
    const begun = performance.now();
    await serve(name, turns);
    expect(performance.now() - begun).toBeLessThan(WATCHDOG + MORE);
  });
});
