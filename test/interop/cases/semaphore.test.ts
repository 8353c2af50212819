/** Semaphores that Java and Node share. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { soon, type Watched, watch } from "../../faults/harness.js";
import { startWorker, until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { crowd } from "./crowd.js";
import { type AnySemaphore, DIRECTIONS, NAMES, SEMAPHORE, Shared, type Side } from "./sides.js";

const workerFile = bundledWorker("../synchronizers/permit-worker.ts");

withRedisson("semaphore", (scene) => {
  const semaphore = (name?: string): Promise<Shared<AnySemaphore>> => Shared.of(scene, SEMAPHORE, name);

  test.each(DIRECTIONS)("%s sets the permits, once for both; %s finds them", async (from, to) => {
    const shared = await semaphore();
    expect(await shared[from].trySetPermits(5)).toBe(true);
    expect(await shared[to].trySetPermits(7)).toBe(false);
    expect(await shared[to].availablePermits()).toBe(5);
    expect(await shared.value()).toBe("5");
    expect(await scene.redis.pttl(shared.name)).toBe(-1);
  });

  test.each(DIRECTIONS)("what %s does to the permits, %s sees", async (from, to) => {
    const shared = await semaphore();
    const [one, other] = [shared[from], shared[to]];
    const sees = async (permits: number) => {
      expect(await other.availablePermits()).toBe(permits);
      expect(await one.availablePermits()).toBe(permits);
    };
    await one.trySetPermits(5);
    await one.acquire(3);
    await sees(2);
    expect(await one.tryAcquire(3)).toBe(false);
    expect(await other.tryAcquire(3)).toBe(false);
    expect(await one.tryAcquire(2)).toBe(true);
    expect(await other.tryAcquire()).toBe(false);
    await one.release(4);
    await sees(4);
    await one.addPermits(3);
    await sees(7);
    expect(await one.drainPermits()).toBe(7);
    await sees(0);
    expect(await other.drainPermits()).toBe(0);
    await other.release();
    await sees(1);
  });

  test("permits that Java took away below zero are missing in Node, too", async () => {
    const shared = await semaphore();
    await shared.Java.trySetPermits(1);
    await shared.Java.addPermits(-3);
    expect(await shared.Node.availablePermits()).toBe(-2);
    expect(await shared.Node.tryAcquire()).toBe(false);
    await shared.Node.release(3);
    expect(await shared.Java.tryAcquire()).toBe(true);
  });

  const wakers: [what: string, wake: (semaphore: AnySemaphore) => Promise<unknown>][] = [
    ["release", (semaphore) => semaphore.release()],
    ["addPermits", (semaphore) => semaphore.addPermits(1)],
    ["trySetPermits", (semaphore) => semaphore.trySetPermits(1)],
  ];
  const wakeUps = wakers.flatMap(([what, wake]) =>
    DIRECTIONS.map(([from, to]): [Side, string, Side, typeof wake] => [from, what, to, wake]),
  );

  test.each(wakeUps)("by message: %s's %s wakes %s", async (from, what, to, wake) => {
    const shared = await semaphore();
    if (what !== "trySetPermits") await shared[from].trySetPermits(0);
    const waiter = await shared.other(to);
    const waiting = await shared.waiters.park(() => waiter.acquire());
    await wake(shared[from]);
    await soon(waiting);
    expect(await shared.value()).toBe("0");
    await shared.waiters.untilListening(0);
  });

  test.each(DIRECTIONS)("by message: %s releases for waiters of both sides at once", async (from) => {
    const shared = await semaphore();
    await shared.Node.trySetPermits(0);
    const [java1, java2] = [await shared.other("Java"), await shared.ofJava(await scene.newJava())];
    const [node1, node2] = [await shared.other("Node"), await shared.other("Node")];
    const waiting: Watched<unknown>[] = [];
    for (const waiter of [java1, node1, java2, node2])
      waiting.push(await shared.waiters.park(() => waiter.acquire()));
    for (let i = 0; i < 2; i++) {
      const java = await shared.other("Java");
      waiting.push(watch(java.acquire()), watch(node1.acquire()));
    }
    await shared.waiters.stillWait(...waiting);
    await shared[from].release(waiting.length + 1);
    for (const call of waiting) await soon(call);
    expect(await shared.value()).toBe("1");
  });

  test.each(DIRECTIONS)("%s gives back one by one, %s waits for several", async (from, to) => {
    const shared = await semaphore();
    await shared[from].trySetPermits(0);
    const waiter = await shared.other(to);
    const waiting = await shared.waiters.park(() => waiter.acquire(3));
    for (let i = 0; i < 2; i++) {
      await shared[from].release();
      await shared.waiters.stillWait(waiting);
    }
    await shared[from].release();
    await soon(waiting);
    expect(await shared.value()).toBe("0");
  });

  test.each(DIRECTIONS)("%s releases all at once, both sides wait for several", async (from) => {
    const shared = await semaphore();
    await shared[from].trySetPermits(0);
    const waiting: Watched<unknown>[] = [];
    for (const side of ["Java", "Node"] as const) {
      const waiter = await shared.other(side);
      waiting.push(await shared.waiters.park(() => waiter.acquire(3)));
    }
    await shared[from].release(7);
    for (const call of waiting) await soon(call);
    expect(await shared.value()).toBe("1");
  });

  test.each(DIRECTIONS)("%s has all permits, %s waits with a limit", async (from, to) => {
    const shared = await semaphore();
    await shared[from].trySetPermits(1);
    await shared[from].acquire();
    const waiter = await shared.other(to);
    const began = performance.now();
    expect(await waiter.tryAcquire(1, 2_000)).toBe(false);
    expect(performance.now() - began).toBeGreaterThan(1_990);
    const waiting = await shared.waiters.park(() => waiter.tryAcquire(1, NEVER));
    await shared[from].release();
    expect(await soon(waiting)).toBe(true);
    expect(await shared.value()).toBe("0");
  });

  test.each(NAMES)("a name with %s", async (_, shape) => {
    const shared = await semaphore(scene.name(shape));
    await shared.Java.trySetPermits(0);
    for (const [from, to] of DIRECTIONS) {
      const waiter = await shared.other(to);
      const waiting = await shared.waiters.park(() => waiter.acquire());
      await shared[from].release();
      await soon(waiting);
    }
    expect(await shared.value()).toBe("0");
  });

  test("a JVM that is killed while it waits takes nothing; Node behind it is served", async () => {
    const shared = await semaphore();
    await shared.Node.trySetPermits(0);
    const jvm = scene.newJvm();
    const dead = await shared.ofJava(await scene.newJava({}, jvm));
    const lost = await shared.waiters.park(() => dead.acquire(2));
    const waiter = await shared.other("Node");
    const waiting = await shared.waiters.park(() => waiter.acquire());
    await jvm.kill();
    await until("its call is over", () => lost.state === "rejected");
    await shared.Java.release(3);
    await soon(waiting);
    expect(await shared.value()).toBe("2");
  });

  test("a Node process that is killed while it waits takes nothing; Java behind it is served", async () => {
    const shared = await semaphore();
    await shared.Java.trySetPermits(0);
    const worker = await startWorker(workerFile());
    const { port } = scene.server;
    await worker.request("start", { port, name: shared.name, options: { pollCap: NEVER } });
    const lost = await shared.waiters.park(() => worker.request("acquire", 2));
    const waiter = await shared.other("Java");
    const waiting = await shared.waiters.park(() => waiter.acquire());
    await worker.kill();
    await until("its call is over", () => lost.state === "rejected");
    await shared.Node.release(3);
    await soon(waiting);
    expect(await shared.value()).toBe("2");
  });

  test("a crowd of both sides: never more inside than there are permits, and all are back at the end", async () => {
    const shared = await semaphore();
    await shared.Java.trySetPermits(3);
    const members = await Promise.all(
      (["Java", "Node"] as const).flatMap((side) => [1, 2, 3, 4].map(() => shared.other(side))),
    );
    const visits = await crowd(scene, 3, members, async (member, i, visit) => {
      const permits = i % 4 === 0 ? 2 : 1;
      if (i % 3 === 0 && !(await member.tryAcquire(permits, 1_000))) return;
      if (i % 3 !== 0) await member.acquire(permits);
      await visit(permits);
      await member.release(permits);
    });
    expect(visits.most).toBe(3);
    expect(Math.min(...visits.ofEach)).toBeGreaterThan(0);
    expect(await shared.value()).toBe("3");
  });
});
