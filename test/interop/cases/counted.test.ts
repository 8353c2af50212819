/**
 * Semaphores, permits and latches of both sides: one message for many waiters, and who ends a permit's lease. That each call
 * sends the message of Redisson's is seen in the sequences.
 */
import { expect, test } from "vitest";
import { until, type Watched } from "../../support/index.js";
import { NEVER } from "../calls.js";
import type { Party, Side } from "../party.js";
import { soon, withRedisson } from "../scene.js";

const SIDES: readonly Side[] = ["Java", "Node"];

withRedisson("counted", (scene) => {
  /** Ends of leases by the id that users see. Fails unless ids stand in Redis as 16 bytes. */
  async function leases(name: string): Promise<Map<string, number>> {
    const flat = await scene.redis.zrangeBuffer(`{${name}}:timeout`, "0", "-1", "WITHSCORES");
    const ids = flat.filter((_, i) => i % 2 === 0);
    expect(ids.every((id) => id.length === 16)).toBe(true);
    return new Map(ids.map((id, i) => [id.toString("hex"), Number(flat[2 * i + 1])]));
  }

  /** A waiter of each of these sides. */
  async function parkEach<T>(
    sides: readonly Side[],
    call: (party: Party) => Promise<T>,
  ): Promise<Watched<T>[]> {
    const waiting: Watched<T>[] = [];
    for (const side of sides) {
      const party = await scene.party(side);
      waiting.push(await party.parked(() => call(party)));
    }
    return waiting;
  }

  test.each(SIDES)("one release in %s of many permits wakes all waiters of both sides", async (side) => {
    const name = scene.name();
    const giver = (await scene.party(side)).semaphore(name);
    await giver.trySetPermits(0);
    const waiting = await parkEach(["Java", "Node", "Java", "Node"], (party) =>
      party.semaphore(name).acquire(2),
    );
    await giver.release(9);
    for (const call of waiting) await soon(call);
    expect(await giver.availablePermits()).toBe(1);
  });

  test("Node's permit without a lease is kept by the watchdog: Java counts it, does not prune it, and may give it back", async () => {
    const name = scene.name();
    const [java, node] = [
      (await scene.thread()).permits(name),
      scene.node({ watchdogTimeout: 1_500 }).permits(name),
    ];
    await java.trySetPermits(1);
    const id = await node.acquire();
    const first = (await leases(name)).get(id) ?? 0;
    const seen = new Set<unknown>();
    const isRenewed = async () => {
      seen.add(await java.acquiredPermits()).add(await java.tryAcquire());
      return ((await leases(name)).get(id) ?? 0) > first + 3_000;
    };
    await until("it is out for two leases more", isRenewed, { every: 50 });
    expect([...seen]).toEqual([1, null]);
    await java.release(id);
    expect(await node.tryRelease(id)).toBe(false);
  });

  test("Node cuts a lease short, and tells Java's waiter; Java tells nobody, and Node's comes by pollCap", async () => {
    for (const [side, other, pollCap] of [
      ["Node", "Java", NEVER] as const,
      ["Java", "Node", 1_500] as const,
    ]) {
      const name = scene.name();
      const holder = (await scene.party(side)).permits(name);
      await holder.trySetPermits(1);
      const id = await holder.acquire(NEVER);
      const waiter = await scene.party(other, { node: { pollCap } });
      const waiting = await waiter.parked(() => waiter.permits(name).acquire(NEVER));
      expect(await holder.updateLeaseTime(id, 1_000)).toBe(true);
      await soon(waiting);
    }
  });
});
