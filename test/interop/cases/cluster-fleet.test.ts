/**
 * A fleet of Java and Node on a cluster: how both decide for sharded pub/sub, and what happens to a client set up
 * otherwise.
 */
import { expect, test } from "vitest";
import { MultiLock } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { PATIENCE, until } from "../../support/index.js";
import { withRedissonOnCluster } from "../cluster-scene.js";

/** Milliseconds, less than the poll of the client that hardly polls. */
const SLACK = 2_000;

withRedissonOnCluster("fleet", (scene) => {
  test("where the server has sharded pub/sub both decide for it, where it refuses to say both decide against", async () => {
    const allow = async (right: string) => {
      await Promise.all(scene.cluster.nodes.map((node) => node.call("ACL", "SETUSER", "default", right)));
    };
    const expectHeard = async (expected: Awaited<ReturnType<typeof scene.listeners>>) => {
      const [java, node] = [await scene.newJava(), scene.newNode()];
      const [name = ""] = await scene.names("decision");
      const waiters = scene.waiters(name);
      const holder = (await scene.thread(java)).lock("lock", name);
      await holder.lock();
      const ours = await waiters.park(() => node.getLock(name).lock());
      const theirs = (await scene.thread(java)).lock("lock", name);
      const waits = await waiters.park(() => theirs.lock());
      expect(await scene.listeners(name)).toEqual(expected);
      await holder.unlock();
      await Promise.all([soon(ours).then((hold) => hold.unlock()), soon(waits).then(() => theirs.unlock())]);
    };
    await expectHeard({ sharded: 2, classic: 0 });
    await allow("-pubsub|shardnumsub");
    try {
      await expectHeard({ sharded: 0, classic: 2 });
    } finally {
      await allow("+@all");
    }
  });

  test("Java classic, Node sharded: Node does not hear of Java's unlock, and comes by pollCap", async () => {
    const java = await scene.newJava("classic");
    const [name = ""] = await scene.names("unlike");
    const [patient, eager] = [scene.newNode("sharded"), scene.newNode("sharded", { pollCap: 1_000 })];
    const holder = (await scene.thread(java)).lock("lock", name);
    await holder.lock();
    const waiters = scene.waiters(name);
    const deaf = await waiters.park(() => patient.getLock(name).lock());
    const polling = await waiters.park(() => eager.getLock(name).lock());
    await holder.unlock();
    const hold = await soon(polling);
    await waiters.stillWait(deaf);
    await hold.unlock(); // the waiter hears of this release
    await (await soon(deaf)).unlock();
  });

  test("Java classic, Node sharded: Java does not hear of Node's unlock, and comes when the lease would have ended", async () => {
    const java = await scene.newJava("classic");
    const [name = ""] = await scene.names("unlike");
    const node = scene.newNode("sharded");
    const lease = 3_000;
    const began = performance.now();
    const hold = await node.getLock(name).lock({ lease });
    const waiters = scene.waiters(name);
    const lock = (await scene.thread(java)).lock("lock", name);
    const waiting = await waiters.park(() => lock.lock());
    await hold.unlock();
    await waiters.stillWait(waiting);
    expect(await node.getLock(name).isLocked()).toBe(false);
    await soon(waiting);
    const took = performance.now() - began;
    expect(took).toBeGreaterThan(lease - 200);
    expect(took).toBeLessThan(lease + SLACK);
    await lock.unlock();
  });

  test("Java classic, Node sharded: a Java that waits for a permit is not woken at all, until a classic message comes", async () => {
    const java = await scene.newJava("classic");
    const [name = ""] = await scene.names("unlike");
    const [unlike, alike] = [scene.newNode("sharded"), scene.newNode("classic")];
    await unlike.getSemaphore(name).trySetPermits(0);
    const waiters = scene.waiters(name);
    const theirs = (await scene.thread(java)).semaphore(name);
    const waiting = await waiters.park(() => theirs.acquire());
    await unlike.getSemaphore(name).release();
    await waiters.stillWait(waiting);
    expect(await alike.getSemaphore(name).availablePermits()).toBe(1);
    await alike.getSemaphore(name).release();
    await soon(waiting);
    expect(await alike.getSemaphore(name).availablePermits()).toBe(1);
  });

  test("a latch whose name has braces: Java cannot count it down on a cluster, so only Node can use it", async () => {
    const [java, node] = [await scene.newJava(), scene.newNode()];
    const [unique = ""] = await scene.names("latch");
    const name = `{${unique}}:start`;
    const theirs = (await scene.thread(java)).latch(name);
    const elsewhere = /CROSSSLOT/; // the latch's channel has its own braces, which lead to another slot
    await expect(theirs.trySetCount(1)).rejects.toThrow(elsewhere);
    expect(await scene.redis.exists(name)).toBe(0);
    const ours = node.getCountDownLatch(name);
    await ours.trySetCount(1);
    expect(await theirs.getCount()).toBe(1);
    await expect(theirs.countDown()).rejects.toThrow(elsewhere);
    const waiting = await scene.waiters(name).park(() => ours.await());
    await scene.newNode().getCountDownLatch(name).countDown();
    expect(await soon(waiting)).toBe(true);
  });

  test("the watchdogs of both keep their locks on all masters, side by side", async () => {
    const watchdog = 4_500;
    const java = await scene.newJava("sharded", { watchdog });
    const node = scene.newNode("sharded", { watchdogTimeout: watchdog });
    const [ours, theirs] = [await scene.names("watched"), await scene.names("watched")];
    const thread = await scene.thread(java);
    const owners = new Map<string, string>();
    const began = performance.now();
    const holds = await Promise.all(ours.map((name) => node.getLock(name).lock()));
    for (const name of theirs) await thread.lock("lock", name).lock();
    for (const hold of holds) owners.set(hold.lockName, hold.ownerId);
    for (const name of theirs) owners.set(name, thread.owner);
    const ttls: number[] = [];
    const looked = async () => {
      for (const name of owners.keys()) ttls.push(await scene.redis.pttl(name));
      return performance.now() - began > 3 * watchdog;
    };
    await until("three leases have gone by", looked, { every: 50, timeout: 2 * PATIENCE });
    expect(Math.min(...ttls)).toBeGreaterThan(0);
    expect(Math.max(...ttls)).toBeLessThanOrEqual(watchdog);
    for (const [name, owner] of owners) expect(await scene.redis.hgetall(name)).toEqual({ [owner]: "1" });
    for (const hold of holds) await hold.unlock();
    for (const name of theirs) await thread.lock("lock", name).unlock();
    expect(await Promise.all([...owners.keys()].map((name) => scene.redis.exists(name)))).toEqual([
      0, 0, 0, 0, 0, 0,
    ]);
  });

  test("Node's MultiLock over all masters waits for the member that Java holds, and holds nothing meanwhile", async () => {
    const [java, node] = [await scene.newJava(), scene.newNode()];
    const names = await scene.names("member");
    const [first = "", second = "", last = ""] = names;
    const multi = new MultiLock(node.getLock(first), node.getFairLock(second), node.getFencedLock(last));
    for (const held of names) {
      const kind = held === second ? "fair" : held === last ? "fenced" : "lock";
      const holder = (await scene.thread(java)).lock(kind, held);
      await holder.lock();
      const waiting = await scene.waiters(held).park(() => multi.lock());
      const rival = await scene.thread(java);
      for (const name of names.filter((each) => each !== held)) {
        expect(await rival.lock("lock", name).isLocked()).toBe(false);
      }
      await holder.unlock();
      const hold = await soon(waiting);
      for (const name of names) expect(await rival.lock("lock", name).tryLock()).toBe(false);
      await hold.unlock();
    }
  });

  test("Java's MultiLock over all masters waits for the member that Node holds", async () => {
    const [java, node] = [await scene.newJava(), scene.newNode()];
    const names = await scene.names("member");
    const multi = (await scene.thread(java)).multiLock(
      ...names.map((name) => ({ kind: "lock" as const, name })),
    );
    for (const held of names) {
      const hold = await node.getLock(held).lock();
      const waiting = await scene.waiters(held).park(() => multi.lock());
      await hold.unlock();
      await soon(waiting);
      for (const name of names) expect(await node.getLock(name).tryLock()).toBeNull();
      await multi.unlock();
      for (const name of names) expect(await scene.redis.exists(name)).toBe(0);
    }
  });
});
