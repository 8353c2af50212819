/** A process of either side is killed while it holds a lock, or waits for one. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { soon } from "../../faults/harness.js";
import { startWorker, until, type Worker } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, listeners, parked } from "./waiting.js";

/** The holds of a dead process end after this time. */
const TIMEOUT = 4_500;
const LEASE = 40_000;

const bundle = bundledWorker("./holder-worker.ts");

withRedisson("deaths", (scene) => {
  const waiter = () => scene.newNode({ pollCap: NEVER });

  /** Takes the lock in a Node process of its own, whose watchdog keeps it. */
  const inNode = (worker: Worker, name: string): Promise<unknown> =>
    worker.request("take", {
      port: scene.server.port,
      name,
      kind: "lock",
      watchdogTimeout: TIMEOUT,
    });

  test("the JVM is killed: what it held is Node's when the TTL ends, what it waited for goes on in Node", async () => {
    const [held, wanted] = [scene.name(), scene.name()];
    const jvm = scene.newJvm();
    const java = await scene.newJava({ watchdog: TIMEOUT }, jvm);
    const [holder, dead] = [await scene.thread(java), await scene.thread(java)];
    const mine = await scene.node.getLock(wanted).lock({ lease: LEASE });
    const lost = await parked(scene, wanted, () => dead.lock("lock", wanted).lock());
    await holder.lock("lock", held).lock();
    const waiting = await parked(scene, held, () => waiter().getLock(held).lock());
    await jvm.kill();
    await expect(lost.promise).rejects.toThrow("the JVM has ended");
    expect(await scene.redis.hgetall(held)).toEqual({ [holder.owner]: "1" });

    await until("its subscription is gone", async () => (await listeners(scene, wanted)) === 0);
    const next = await parked(scene, wanted, () => waiter().getLock(wanted).lock());
    await mine.unlock();
    await (await soon(next)).unlock();
    await expectNothingLeft(scene, wanted);

    const hold = await soon(waiting);
    expect(await scene.redis.hgetall(held)).toEqual({ [hold.ownerId]: "1" });
    await hold.unlock();
    await expectNothingLeft(scene, held);
  });

  test("a Node process is killed while it holds: Java gets in when the TTL ends", async () => {
    const name = scene.name();
    await using worker = await startWorker(bundle());
    const owner = String(await inNode(worker, name));
    const next = await scene.thread();
    const waiting = await parked(scene, name, () => next.lock("lock", name).lock(LEASE));
    await worker.kill();
    expect(await scene.redis.hgetall(name)).toEqual({ [owner]: "1" });
    await soon(waiting);
    expect(await scene.redis.hgetall(name)).toEqual({ [next.owner]: "1" });
    await next.lock("lock", name).unlock();
    await expectNothingLeft(scene, name);
  });

  test("a Node process is killed while it waits: Java goes on undisturbed", async () => {
    const name = scene.name();
    await using worker = await startWorker(bundle());
    const java = (await scene.thread()).lock("lock", name);
    await java.lock(LEASE);
    const dead = await parked(scene, name, () => inNode(worker, name));
    await worker.kill();
    await expect(dead.promise).rejects.toThrow("the worker ended by SIGKILL");
    await until("its subscription is gone", async () => (await listeners(scene, name)) === 0);
    const next = (await scene.thread()).lock("lock", name);
    const waiting = await parked(scene, name, () => next.lock(LEASE));
    await java.unlock();
    await soon(waiting);
    await next.unlock();
    await expectNothingLeft(scene, name);
  });

  test("the JVM stands still past its lease: Node gets in, and Java's unlock is refused", async () => {
    const name = scene.name();
    const jvm = scene.newJvm();
    const thread = await scene.thread(await scene.newJava({ watchdog: TIMEOUT }, jvm));
    await thread.lock("lock", name).lock();
    const waiting = await parked(scene, name, () => waiter().getLock(name).lock());
    jvm.pause();
    const hold = await soon(waiting);
    jvm.resume();
    await expect(thread.lock("lock", name).unlock()).rejects.toMatchObject({
      javaClass: "java.lang.IllegalMonitorStateException",
    });
    expect(await scene.redis.hgetall(name)).toEqual({ [hold.ownerId]: "1" });
    await hold.unlock();
  });
});
