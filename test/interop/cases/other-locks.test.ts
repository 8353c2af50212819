/** Java's other locks that use the keys of a plain one: Node's `getLock` with that name is the same lock. */
import { expect, test } from "vitest";
import { soon } from "../../faults/harness.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, parked } from "./waiting.js";

const LEASE = 40_000;

withRedisson("spin lock", (scene) => {
  test("Java spins on what Node holds, and gets it when Node unlocks", async () => {
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock({ lease: LEASE });
    const thread = await scene.thread();
    const spin = thread.lock("spin", name);
    expect(await spin.tryLock()).toBe(false);
    expect(await spin.tryLock(100)).toBe(false);
    const waiting = spin.lock(LEASE);
    await hold.unlock();
    await waiting;
    expect(await scene.redis.hgetall(name)).toEqual({ [thread.owner]: "1" });
    expect(await scene.node.getLock(name).tryLock()).toBeNull();
    await spin.unlock();
    await expectNothingLeft(scene, name);
  });

  test("Java's unlock tells nobody: Node, which waits, gets in by its poll", async () => {
    const name = scene.name();
    const spin = (await scene.thread()).lock("spin", name);
    await spin.lock(LEASE);
    const lock = scene.newNode({ pollCap: 1_000 }).getLock(name);
    const waiting = await parked(scene, name, () => lock.lock());
    await spin.unlock();
    const hold = await soon(waiting);
    expect(await spin.tryLock()).toBe(false);
    await hold.unlock();
    await expectNothingLeft(scene, name);
  });

  test("Node sees how often Java has entered", async () => {
    const name = scene.name();
    const thread = await scene.thread();
    const spin = thread.lock("spin", name);
    await spin.lock(LEASE);
    await spin.lock(LEASE);
    expect(await scene.node.inspect(name)).toMatchObject({
      kind: "lock",
      holders: [{ ownerId: thread.owner, count: 2 }],
    });
    await spin.unlock();
    expect(await scene.node.getLock(name).tryLock()).toBeNull();
    await spin.unlock();
    await (await scene.node.getLock(name).lock({ wait: 0 })).unlock();
  });

  test("a spin lock, a plain one of Java and Node's keep each other out", async () => {
    const name = scene.name();
    const counter = `counter-${name}`;
    const threads = await Promise.all([scene.thread(), scene.thread()]);
    const count = async (): Promise<void> => {
      const value = Number(await scene.redis.get(counter));
      await scene.redis.set(counter, value + 1);
    };
    const rounds = 20;
    const java = threads.map((thread, i) => thread.lock(i === 0 ? "spin" : "lock", name));
    // A spin lock's release sends no message, so these waiters get the lock by leases and polls.
    const node = scene.newNode({ pollCap: 100 }).getLock(name);
    await Promise.all([
      ...java.map(async (lock) => {
        for (let i = 0; i < rounds; i++) {
          await lock.lock(2_000);
          await count();
          await lock.unlock();
        }
      }),
      ...[1, 2].map(async () => {
        for (let i = 0; i < rounds; i++) await node.run(count);
      }),
    ]);
    expect(Number(await scene.redis.get(counter))).toBe(4 * rounds);
  });
});

withRedisson("non-reentrant lock", (scene) => {
  /** Skips the test if this Redisson has no such lock. */
  const needs = (skip: (why: string) => void): void => {
    if (!scene.atLeast("4.4.0")) skip(`Redisson ${scene.version} has no non-reentrant lock; 4.4.0 has`);
  };

  test("Java holds: Node is refused, waits, and is woken at once", async ({ skip }) => {
    needs(skip);
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("nonReentrant", name);
    await java.lock(LEASE);
    const lock = scene.newNode({ pollCap: NEVER }).getLock(name);
    expect(await lock.tryLock()).toBeNull();
    expect(await scene.node.inspect(name)).toMatchObject({ holders: [{ ownerId: thread.owner, count: 1 }] });
    const waiting = await parked(scene, name, () => lock.lock());
    await java.unlock();
    await (await soon(waiting)).unlock();
    await expectNothingLeft(scene, name);
  });

  test("Node holds: Java is refused, waits, and is woken at once", async ({ skip }) => {
    needs(skip);
    const name = scene.name();
    const hold = await scene.node.getLock(name).lock({ lease: LEASE });
    const java = (await scene.thread()).lock("nonReentrant", name);
    expect(await java.tryLock()).toBe(false);
    const waiting = await parked(scene, name, () => java.lock(LEASE));
    await hold.unlock();
    await soon(waiting);
    expect(await scene.node.getLock(name).tryLock()).toBeNull();
    await java.unlock();
    await expectNothingLeft(scene, name);
  });

  test("Java is refused a second time, and its first hold keeps Node out", async ({ skip }) => {
    needs(skip);
    const name = scene.name();
    const thread = await scene.thread();
    const java = thread.lock("nonReentrant", name);
    await java.lock(LEASE);
    await expect(java.lock(LEASE)).rejects.toThrow(/non-?reentrant/i);
    expect(await scene.redis.hgetall(name)).toEqual({ [thread.owner]: "1" });
    expect(await scene.node.getLock(name).tryLock()).toBeNull();
    await java.unlock();
    await (await scene.node.getLock(name).lock({ wait: 0 })).unlock();
  });
});
