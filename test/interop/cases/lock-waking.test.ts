/** A waiter is woken by the other side's message, at once. Leases and polls are far too long to explain it. */
import { expect, test } from "vitest";
import type { LockClient } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import type { JavaLock } from "../java.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, parked } from "./waiting.js";

const LEASE = 40_000;

withRedisson("waking", (scene) => {
  const patient = (): LockClient => scene.newNode({ pollCap: NEVER });

  test("Java breaks Node's hold: who waits in Node goes on at once, and the hold tells its loss", async () => {
    const name = scene.name();
    const holder = scene.newNode({ watchdogTimeout: 6_000 });
    const hold = await holder.getLock(name).lock();
    const waiting = await parked(scene, name, () => patient().getLock(name).lock());
    expect(await (await scene.thread()).lock("lock", name).forceUnlock()).toBe(true);
    const next = await soon(waiting);
    await until("its renewal finds the loss", () => hold.signal.aborted);
    expect(hold.isHeld).toBe(false);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect(next.isHeld).toBe(true);
    expect(await scene.redis.hgetall(name)).toEqual({ [next.ownerId]: "1" });
    await next.unlock();
  });

  test("Node breaks Java's hold: who waits in Java goes on at once, and the old unlock is refused", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("lock", name);
    await java.lock(LEASE);
    const next = await scene.thread();
    const waiting = await parked(scene, name, () => next.lock("lock", name).lock(LEASE));
    expect(await scene.node.getLock(name).forceUnlock()).toBe(true);
    await soon(waiting);
    await expect(java.unlock()).rejects.toMatchObject({
      javaClass: "java.lang.IllegalMonitorStateException",
    });
    expect(await scene.redis.hgetall(name)).toEqual({ [next.owner]: "1" });
    await next.lock("lock", name).unlock();
    await expectNothingLeft(scene, name);
  });

  test("nothing to break is told to either side", async () => {
    const name = scene.name();
    expect(await (await scene.thread()).lock("lock", name).forceUnlock()).toBe(false);
    expect(await scene.node.getLock(name).forceUnlock()).toBe(false);
  });

  test("a Java thread that is interrupted while it waits leaves nothing and takes no wake-up", async () => {
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock({ lease: LEASE });
    const thread = await scene.thread();
    const interrupted = await parked(scene, name, () => thread.lock("lock", name).lock());
    await thread.interrupt();
    await expect(interrupted.promise).rejects.toMatchObject({ javaClass: "java.lang.InterruptedException" });
    const waiting = await parked(scene, name, () => patient().getLock(name).lock());
    await hold.unlock();
    await (await soon(waiting)).unlock();
    await expectNothingLeft(scene, name);
  });

  test("a Node waiter that is aborted leaves nothing and takes no wake-up", async () => {
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock({ lease: LEASE });
    const abort = new AbortController();
    const { signal } = abort;
    const aborted = await parked(scene, name, () => patient().getLock(name).lock({ signal }));
    const java = (await scene.thread()).lock("lock", name);
    const waiting = await parked(scene, name, () => java.lock(LEASE));
    abort.abort(new Error("enough"));
    await expect(aborted.promise).rejects.toThrow("enough");
    await hold.unlock();
    await soon(waiting);
    await java.unlock();
    await expectNothingLeft(scene, name);
  });

  test("8 Java threads and 8 Node tasks count up, and no update is lost", async () => {
    const name = scene.name();
    const counter = `counter-${name}`;
    const each = 12;
    const count = async (): Promise<void> => {
      const value = Number(await scene.redis.get(counter));
      await scene.redis.set(counter, value + 1);
    };
    const inJava = async (java: JavaLock): Promise<void> => {
      for (let i = 0; i < each; i++) {
        await java.lock();
        await count();
        await java.unlock();
      }
    };
    const inNode = async (): Promise<void> => {
      for (let i = 0; i < each; i++) await scene.node.getLock(name).run(count);
    };
    const threads = await Promise.all(Array.from({ length: 8 }, () => scene.thread()));
    await Promise.all([
      ...threads.map((thread) => inJava(thread.lock("lock", name))),
      ...threads.map(() => inNode()),
    ]);
    expect(Number(await scene.redis.get(counter))).toBe(2 * 8 * each);
    await expectNothingLeft(scene, name);
  });
});
