/** Latches that Java and Node share. */
import { expect, test } from "vitest";
import { bundledWorker } from "../../faults/build-worker.js";
import { soon, type Watched, watch } from "../../faults/harness.js";
import { startWorker, until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { type AnyLatch, DIRECTIONS, LATCH, NAMES, Shared, type Side } from "./sides.js";

const workerFile = bundledWorker("../synchronizers/permit-worker.ts");
const SIDES: Side[] = ["Java", "Node"];

withRedisson("latch", (scene) => {
  const latch = (name?: string): Promise<Shared<AnyLatch>> => Shared.of(scene, LATCH, name);

  /** A waiter on each side. */
  const parkBoth = async (shared: Shared<AnyLatch>): Promise<Watched<boolean>[]> => {
    const waiting: Watched<boolean>[] = [];
    for (const side of SIDES) {
      const waiter = await shared.other(side);
      waiting.push(await shared.waiters.park(() => waiter.await()));
    }
    return waiting;
  };

  test.each(DIRECTIONS)("%s sets it, both wait, both count down, %s last", async (from, to) => {
    const shared = await latch();
    expect(await shared[from].trySetCount(3)).toBe(true);
    const waiting = await parkBoth(shared);
    await shared[from].countDown();
    await shared[to].countDown();
    await shared.waiters.stillWait(...waiting);
    await shared[to].countDown();
    for (const call of waiting) expect(await soon(call)).toBe(true);
    expect(await shared.value()).toBeNull();
    await shared.waiters.untilListening(0);
  });

  test.each(DIRECTIONS)("set in %s, counted down to zero in %s: it opens at once", async (from, to) => {
    const shared = await latch();
    await shared[from].trySetCount(1);
    const waiter = await shared.other(from);
    const waiting = await shared.waiters.park(() => waiter.await(NEVER));
    await shared[to].countDown();
    expect(await soon(waiting)).toBe(true);
    expect(await shared[from].await()).toBe(true);
  });

  test.each(DIRECTIONS)("the count that %s sets is what %s says, down to zero", async (from, to) => {
    const shared = await latch();
    await shared[from].trySetCount(4);
    expect(await scene.redis.pttl(shared.name)).toBe(-1);
    for (let left = 4; left > 0; left--) {
      for (const side of SIDES) expect(await shared[side].getCount()).toBe(left);
      expect(await shared.value()).toBe(String(left));
      await shared[left % 2 === 0 ? to : from].countDown();
    }
    for (const side of SIDES) expect(await shared[side].getCount()).toBe(0);
    expect(await shared.value()).toBeNull();
  });

  test.each(DIRECTIONS)("closed by %s, it is not set again by either side", async (from, to) => {
    const shared = await latch();
    expect(await shared[from].trySetCount(2)).toBe(true);
    expect(await shared[to].trySetCount(5)).toBe(false);
    expect(await shared[from].trySetCount(5)).toBe(false);
    expect(await shared[to].getCount()).toBe(2);
  });

  test.each(DIRECTIONS)(
    "closed by %s: in %s the wait ends with its limit, and counts nothing down",
    async (from, to) => {
      const shared = await latch();
      await shared[from].trySetCount(1);
      const began = performance.now();
      expect(await shared[to].await(2_000)).toBe(false);
      expect(performance.now() - began).toBeGreaterThan(1_990);
      expect(await shared.value()).toBe("1");
    },
  );

  test.each(SIDES)(
    "one that was never set is open for %s, and counting down leaves nothing",
    async (side) => {
      const shared = await latch();
      expect(await shared[side].await()).toBe(true);
      expect(await shared[side].getCount()).toBe(0);
      await shared[side].countDown();
      expect(await shared.value()).toBeNull();
      for (const each of SIDES) expect(await shared[each].await(0)).toBe(true);
    },
  );

  test("Java deletes it: Node's waiters look again and go on", async () => {
    const shared = await latch();
    const java = (await scene.thread()).latch(shared.name);
    await java.trySetCount(3);
    const nodes = [await shared.other("Node"), await shared.other("Node")];
    const waiting: Watched<boolean>[] = [];
    for (const node of nodes) waiting.push(await shared.waiters.park(() => node.await()));
    for (const node of nodes) waiting.push(watch(node.await()));
    expect(await java.delete()).toBe(true);
    for (const call of waiting) expect(await soon(call)).toBe(true);
    expect(await java.delete()).toBe(false);
  });

  test.each(NAMES)("a name with %s", async (_, shape) => {
    const shared = await latch(scene.name(shape));
    expect(shared.channel).toBe(`redisson_countdownlatch__channel__{${shared.name}}`);
    for (const [from, to] of DIRECTIONS) {
      await shared[from].trySetCount(1);
      const waiting = await parkBoth(shared);
      await shared[to].countDown();
      for (const call of waiting) expect(await soon(call)).toBe(true);
      await shared.waiters.untilListening(0);
    }
  });

  test("one gate after the other, set and counted down by turns, for waiters of both sides", async () => {
    const shared = await latch();
    for (let round = 0; round < 10; round++) {
      const [from, to] = DIRECTIONS[round % 2] ?? (["Java", "Node"] as const);
      expect(await shared[from].trySetCount(4)).toBe(true);
      const waiting = await parkBoth(shared);
      await Promise.all([from, from, to, to].map((side) => shared[side].countDown()));
      for (const call of waiting) expect(await soon(call)).toBe(true);
      await shared.waiters.untilListening(0);
    }
    expect(await shared.value()).toBeNull();
  });

  test("a JVM that is killed while it waits changes nothing for Node", async () => {
    const shared = await latch();
    await shared.Node.trySetCount(2);
    const jvm = scene.newJvm();
    const dead = await shared.ofJava(await scene.newJava({}, jvm));
    const lost = await shared.waiters.park(() => dead.await());
    const waiter = await shared.other("Node");
    const waiting = await shared.waiters.park(() => waiter.await());
    await jvm.kill();
    await until("its call is over", () => lost.state === "rejected");
    expect(await shared.Node.getCount()).toBe(2);
    for (const side of SIDES) await shared[side].countDown();
    expect(await soon(waiting)).toBe(true);
  });

  test("a Node process that is killed while it waits changes nothing for Java", async () => {
    const shared = await latch();
    await shared.Java.trySetCount(2);
    const worker = await startWorker(workerFile());
    const { port } = scene.server;
    await worker.request("start", { port, name: shared.name, options: { pollCap: NEVER } });
    const lost = await shared.waiters.park(() => worker.request("await"));
    const waiter = await shared.other("Java");
    const waiting = await shared.waiters.park(() => waiter.await());
    await worker.request("countDown");
    await worker.kill();
    await until("its call is over", () => lost.state === "rejected");
    expect(await shared.Java.getCount()).toBe(1);
    await shared.Java.countDown();
    expect(await soon(waiting)).toBe(true);
  });
});
