/** What one kind alone promises between Java and Node: tokens, groups, numbers, spin locks, and watchdogs. */
import { expect, test } from "vitest";
import { tokenCounter } from "../../../src/base/names.js";
import { until, type Watched } from "../../support/index.js";
import { NEVER } from "../calls.js";
import type { Side } from "../party.js";
import { soon, withRedisson } from "../scene.js";

withRedisson("tokens", (scene) => {
  test("they rise over the grants of both sides, also over leases that end, force and nested calls", async () => {
    const name = scene.name();
    const java = (await scene.thread()).lock("fenced", name);
    const lock = scene.node().client.getFencedLock(name);
    const tokens: bigint[] = [];
    const inNode = () => lock.run(({ token }) => tokens.push(token));
    const inJava = async () => void tokens.push(BigInt(await java.lockAndGetToken()));
    for (let turn = 0; turn < 3; turn++) {
      await inJava();
      // Java draws a token for a nested call, too.
      await inJava();
      expect(await lock.tryLock()).toBeNull();
      await java.unlock();
      await java.unlock();
      await inNode();
      await inJava();
      expect(await lock.forceUnlock()).toBe(true);
      const hold = await lock.lock();
      tokens.push(hold.token);
      const nested = await lock.lock({ owner: hold });
      expect([nested.token, BigInt(await java.getToken())]).toEqual([hold.token, hold.token]);
      expect(await java.forceUnlock()).toBe(true);
      const leased = await lock.lock({ lease: 1_000 });
      tokens.push(leased.token);
      await inJava();
      await expect(leased.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
      await java.unlock();
      await java.lock(1_000);
      tokens.push(BigInt(await java.getToken()));
      await inNode();
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => Number(a - b)));
    expect(await scene.redis.get(tokenCounter(name))).toBe(await java.getToken());
  });
});

withRedisson("groups", (scene) => {
  test("both sides take the same locks in different orders: no dead-lock, and no update is lost", async () => {
    const [a, b, c] = [scene.name(), scene.name(), scene.name()];
    const counter = `counter-${a}`;
    // Java's threads hold members while they wait, so among themselves they need one order, or seconds to get apart.
    const orders: [Side, string[]][] = [
      ["Java", [a, b, c]],
      ["Java", [a, b, c]],
      ["Node", [c, b, a]],
      ["Node", [b, c, a]],
      ["Node", [a, b, c]],
    ];
    const rounds = 10;
    await Promise.all(
      orders.map(async ([side, members]) => {
        const lock = (await scene.party(side, { node: { pollCap: 3_000 } })).multiLock(...members);
        for (let i = 0; i < rounds; i++) {
          await lock.lock();
          await scene.redis.set(counter, Number(await scene.redis.get(counter)) + 1);
          await lock.unlock();
        }
      }),
    );
    expect(Number(await scene.redis.get(counter))).toBe(orders.length * rounds);
    expect(await scene.redis.exists(a, b, c)).toBe(0);
  });
});

withRedisson("numbers", (scene) => {
  test.each<Side>(["Java", "Node"])(
    "one release in %s of many permits wakes all waiters of both sides",
    async (side) => {
      const name = scene.name();
      const giver = (await scene.party(side)).semaphore(name);
      await giver.trySetPermits(0);
      const waiting: Watched<unknown>[] = [];
      for (const waits of ["Java", "Node", "Java", "Node"] as const) {
        const party = await scene.party(waits);
        waiting.push(await party.parked(() => party.semaphore(name).acquire(2)));
      }
      await giver.release(9);
      for (const call of waiting) await soon(call);
      expect(await giver.availablePermits()).toBe(1);
    },
  );

  test("Node's permit without a lease is kept by the watchdog: Java counts it, does not prune it, and may give it back", async () => {
    const name = scene.name();
    const [java, node] = [
      (await scene.thread()).permits(name),
      scene.node({ watchdogTimeout: 1_500 }).permits(name),
    ];
    await java.trySetPermits(1);
    const id = await node.acquire();
    const end = async () =>
      Number((await scene.redis.zrange(`{${name}}:timeout`, "0", "0", "WITHSCORES"))[1]);
    const first = await end();
    const seen = new Set<unknown>();
    const isRenewed = async () => {
      seen.add(await java.acquiredPermits()).add(await java.tryAcquire());
      return (await end()) > first + 3_000;
    };
    await until("it is out for two leases more", isRenewed, { every: 50 });
    expect([...seen]).toEqual([1, null]);
    await java.release(id);
    expect(await node.tryRelease(id)).toBe(false);
  });
});

withRedisson("spin locks", (scene) => {
  test("a spin lock gets what Node unlocks; its own unlock tells nobody, and Node comes by its poll", async () => {
    const name = scene.name();
    const [node, thread] = [scene.node({ pollCap: 1_000 }), await scene.thread()];
    await node.lock("lock", name).lock(NEVER);
    expect(await thread.lock("spin", name).tryLock(100)).toBe(false);
    const spinning = thread.lock("spin", name).lock(NEVER);
    await node.lock("lock", name).unlock();
    await spinning;
    const waiting = await node.parked(() => node.lock("lock", name).lock());
    await thread.lock("spin", name).unlock();
    await soon(waiting);
    expect(await thread.lock("spin", name).tryLock()).toBe(false);
  });
});
