/** How the leases of shared permits end: by time, by the other side, by the death of a process. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { soon } from "../../faults/harness.js";
import { startWorker, until } from "../../support/index.js";
import { NO_LEASE } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { expectUnknown, leases, untilLapsed } from "./permit-leases.js";
import { type AnyPermits, DIRECTIONS, PERMITS, Shared } from "./sides.js";

const workerFile = bundledWorker("../synchronizers/permit-worker.ts");
const LONG = 60_000;
/** Milliseconds, less than anything else that would end the wait. */
const SLACK = 2_000;

withRedisson("leases of permits", (scene) => {
  const permits = (name?: string): Promise<Shared<AnyPermits>> => Shared.of(scene, PERMITS, name);

  test.each(DIRECTIONS)("an id made in %s whose lease has ended is none in %s", async (from, to) => {
    const shared = await permits();
    await shared[from].trySetPermits(2);
    const ids = [await shared[from].acquire(1_000), await shared[from].acquire(1_000)];
    const [first = "", second = ""] = ids;
    for (const id of ids) await untilLapsed(scene.redis, shared.name, id);
    expect(await shared[to].tryRelease(first)).toBe(false);
    await expectUnknown(to, shared[to], second);
    expect(await shared[to].updateLeaseTime(second, LONG)).toBe(false);
    expect(await shared[from].availablePermits()).toBe(2);
    expect(await shared.value()).toBe("2");
  });

  test("Java's permit without a lease is counted by Node, never pruned, and given back by Node", async () => {
    const shared = await permits();
    await shared.Node.trySetPermits(2);
    const id = await shared.Java.acquire();
    expect((await leases(scene.redis, shared.name)).get(id)).toBe(NO_LEASE);
    const lapsing = await shared.Node.acquire(1_000);
    await untilLapsed(scene.redis, shared.name, lapsing);
    expect(await shared.Node.acquiredPermits()).toBe(1); // this call has removed the other one
    expect([...(await leases(scene.redis, shared.name)).keys()]).toEqual([id]);
    await shared.Node.release(id);
    expect(await shared.Java.availablePermits()).toBe(2);
    await expectUnknown("Java", shared.Java, id);
  });

  test("Node's permit without a lease is kept by the watchdog; Java counts it and does not prune it", async () => {
    const shared = await permits();
    await shared.Java.trySetPermits(1);
    const client = scene.newNode({ watchdogTimeout: 1_500 });
    const kept = client.getPermitExpirableSemaphore(shared.name);
    const id = await kept.acquire();
    const first = (await leases(scene.redis, shared.name)).get(id) ?? 0;
    const seen = new Set<unknown>();
    const looked = async () => {
      seen.add(await shared.Java.acquiredPermits());
      seen.add(await shared.Java.tryAcquire());
      return ((await leases(scene.redis, shared.name)).get(id) ?? 0) > first + 3_000;
    };
    await until("it is out for two leases more", looked, { timeout: 10_000, every: 50 });
    expect([...seen]).toEqual([1, null]);
    await shared.Java.release(id);
    expect(await kept.tryRelease(id)).toBe(false);
    expect(await shared.value()).toBe("1");
  });

  test.each(DIRECTIONS)(
    "the end of a lease of %s serves a waiter of %s, without any message",
    async (from, to) => {
      const shared = await permits();
      await shared[from].trySetPermits(1);
      const began = performance.now();
      const id = await shared[from].acquire(1_500);
      const waiter = await shared.other(to);
      const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
      const granted = await soon(waiting, 1_500 + SLACK);
      expect(performance.now() - began).toBeGreaterThan(1_400);
      expect(granted).not.toBe(id);
      expect([...(await leases(scene.redis, shared.name)).keys()]).toEqual([granted]);
      expect(await shared[from].tryRelease(id)).toBe(false);
      expect(await shared.value()).toBe("0");
    },
  );

  test("Java cuts a lease short, which it tells nobody: Node looks again after pollCap, not at the old end", async () => {
    const shared = await permits();
    await shared.Java.trySetPermits(1);
    const id = await shared.Java.acquire(LONG);
    const eager = scene.newNode({ pollCap: 1_500 }).getPermitExpirableSemaphore(shared.name);
    const waiting = await shared.waiters.park(() => eager.acquire({ lease: LONG }));
    expect(await shared.Java.updateLeaseTime(id, 1_000)).toBe(true);
    await soon(waiting);
  });

  test("Node cuts a lease short, and Java's waiter is told: it comes at the new end, not at the old one", async () => {
    const shared = await permits();
    await shared.Node.trySetPermits(1);
    const id = await shared.Node.acquire(LONG);
    const waiter = await shared.other("Java");
    const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
    expect(await shared.Node.updateLeaseTime(id, 1_000)).toBe(true);
    await soon(waiting, 1_000 + SLACK);
  });

  test("a JVM is killed: its lease ends for Node; what it took without one stays out, until Node gives it back", async () => {
    const shared = await permits();
    await shared.Node.trySetPermits(2);
    const jvm = scene.newJvm();
    const dead = await shared.ofJava(await scene.newJava({}, jvm));
    const kept = await dead.acquire();
    const began = performance.now();
    const leased = await dead.acquire(2_000);
    await jvm.kill();
    const waiter = await shared.other("Node");
    const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
    const granted = await soon(waiting, 2_000 + SLACK);
    expect(performance.now() - began).toBeGreaterThan(1_900);
    const out = await leases(scene.redis, shared.name);
    expect([...out.keys()].sort()).toEqual([kept, granted].sort());
    expect(out.get(kept)).toBe(NO_LEASE);
    expect(await shared.Node.tryRelease(leased)).toBe(false);
    expect(await shared.Node.tryRelease(kept)).toBe(true);
    expect(await shared.Java.availablePermits()).toBe(1);
  });

  test("a Node process is killed: the permit that its watchdog kept comes back to Java", async () => {
    const shared = await permits();
    await shared.Java.trySetPermits(1);
    const worker = await startWorker(workerFile());
    const options = { watchdogTimeout: 1_500 };
    await worker.request("start", { port: scene.server.port, name: shared.name, options });
    const [kept = ""] = await worker.request<string[]>("take", { count: 1 });
    const first = (await leases(scene.redis, shared.name)).get(kept) ?? 0;
    const renewed = async () => ((await leases(scene.redis, shared.name)).get(kept) ?? 0) > first;
    await until("its lease is renewed", renewed);
    await worker.kill();
    const waiter = await shared.other("Java");
    const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
    const granted = await soon(waiting, 1_500 + SLACK);
    expect([...(await leases(scene.redis, shared.name)).keys()]).toEqual([granted]);
  });
});
