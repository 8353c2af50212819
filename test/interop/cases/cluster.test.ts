/** Java and Node on a cluster exclude each other, and hear each other's messages, by sharded and by classic pub/sub. */

import { beforeAll, describe, expect, test } from "vitest";
import type { LockClient } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { type PubSub, withRedissonOnCluster } from "../cluster-scene.js";
import type { JavaClient } from "../java.js";
import { CONTESTS } from "./contests.js";

const HAND_OVERS = 20;

function spread(times: readonly number[]): { p50: number; p99: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99) };
}

withRedissonOnCluster("cluster", (scene) => {
  describe.each<PubSub>(["sharded", "classic"])("with %s pub/sub", (pubSub) => {
    let java: JavaClient;
    let node: LockClient;
    beforeAll(async () => {
      if (scene.isMissing) return;
      java = await scene.newJava(pubSub);
      node = scene.newNode(pubSub);
    });

    test.each(CONTESTS)("$kind: both ways, on all masters and with a {tag}", async (contest) => {
      const names = await scene.names(contest.kind);
      const [unique = ""] = await scene.names(contest.kind);
      // On a cluster, Redisson's latches with such names do not work.
      if (contest.kind !== "latch") names.push(`{${unique}}:desk`);
      for (const name of names) {
        const waiters = scene.waiters(name);
        const [ours, theirs] = [contest.node(node, name), contest.java(await scene.thread(java), name)];
        const ways = [["Java", ours, theirs] as const, ["Node", theirs, ours] as const];
        for (const [waiter, holder, rival] of ways) {
          const open = await holder.shut();
          expect(await rival.enters()).toBe(false);
          const waiting = await waiters.park(() => rival.waits());
          const other = pubSub === "sharded" ? "classic" : "sharded";
          expect((await scene.listeners(name))[other]).toBe(0);
          await open();
          const leave = await soon(waiting).catch((cause: unknown) => {
            throw new Error(`${waiter} waits for ${name} still`, { cause });
          });
          await leave();
        }
      }
    });

    test("a hand-over takes milliseconds, both ways", async () => {
      const [name = ""] = await scene.names("hand-over");
      const waiters = scene.waiters(name);
      const ours = node.getLock(name);
      const theirs = (await scene.thread(java)).lock("lock", name);
      const toJava: number[] = [];
      const toNode: number[] = [];
      for (let i = 0; i < HAND_OVERS; i++) {
        const hold = await ours.lock();
        const waiting = await waiters.park(() => theirs.timed("lock"));
        const sent = process.hrtime.bigint();
        await hold.unlock();
        toJava.push(Number((await soon(waiting)).at - sent) / 1e6);

        const waits = await waiters.park(async () => ({
          hold: await ours.lock(),
          at: process.hrtime.bigint(),
        }));
        const asked = process.hrtime.bigint();
        await theirs.unlock();
        const granted = await soon(waits);
        toNode.push(Number(granted.at - asked) / 1e6);
        await granted.hold.unlock();
      }
      for (const [way, times] of [["Node -> Java", toJava] as const, ["Java -> Node", toNode] as const]) {
        const { p50, p99 } = spread(times);
        console.log(`cluster, ${pubSub}, ${way}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`);
        expect(p99).toBeLessThan(1_000); // without messages the TTL would end it after 30 s
      }
    });
  });
});
