/**
 * Waiters of either side that give up, and calls that do not wait: the waiters behind them keep their order and move
 * up.
 */
import { expect, test } from "vitest";
import { fairQueue, fairTimeouts } from "../../../src/base/names.js";
import { failOnUnhandledRejections, soon, watch } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import { type Scene, withRedisson } from "../scene.js";
import { failure, keysLeft, NODE_WAITER, newParty, parked, SIDES } from "./party.js";
import type { Side } from "./sides.js";

failOnUnhandledRejections();

const GRACE = 300_000;
const SHORT_GRACE = 2_500;
const LEASE = 1_500;

/** A waiter that will give up. */
interface Quitter {
  /** Ends the call; resolves when it is over. */
  readonly leave: () => Promise<unknown>;
  /** The time by which the places behind it move up. */
  readonly grace: number;
}

const WAIT = 2_000;

const QUITTERS: readonly (readonly [string, (scene: Scene, name: string) => Promise<Quitter>])[] = [
  [
    "a Java waiter whose time is up",
    async (scene, name) => {
      const thread = await scene.thread();
      const lock = thread.lock("fair", name);
      const { promise } = await parked(scene, thread, () => lock.tryLock(WAIT, NEVER));
      return { leave: () => promise, grace: WAIT };
    },
  ],
  [
    "a Node waiter whose time is up",
    async (scene, name) => {
      const lock = scene.newNode({ pollCap: NEVER }).getFairLock(name);
      const { promise } = await parked(scene, NODE_WAITER, () => lock.tryLock(WAIT, NEVER));
      return { leave: () => promise, grace: GRACE };
    },
  ],
  [
    "a Node waiter that is aborted",
    async (scene, name) => {
      const lock = scene.newNode({ pollCap: NEVER }).getFairLock(name);
      const controller = new AbortController();
      const { promise } = await parked(scene, NODE_WAITER, () =>
        failure(lock.lock({ signal: controller.signal })),
      );
      const leave = () => {
        controller.abort();
        return promise;
      };
      return { leave, grace: GRACE };
    },
  ],
];

const scoreOf = async ({ redis }: Scene, name: string, index: number): Promise<number> => {
  const [owner = ""] = await redis.lrange(fairQueue(name), index, index);
  return Number(await redis.zscore(fairTimeouts(name), owner));
};

withRedisson("leaving the queue of a fair lock", (scene) => {
  const take = async (side: Side, name: string, lease = NEVER) => {
    const lock = (await newParty(scene, side)).take("fair", name);
    await lock.lock(lease);
    return lock;
  };
  const queue = async (side: Side, name: string) => {
    const party = await newParty(scene, side);
    const lock = party.take("fair", name);
    return { lock, call: await parked(scene, party, () => lock.lock(NEVER)) };
  };
  const length = (name: string) => scene.redis.llen(fairQueue(name));

  for (const [what, quit] of QUITTERS) {
    test(`${what} leaves the middle of the queue: Java and Node behind it move up and are served in order`, async () => {
      const name = scene.name();
      const holder = await take("Java", name);
      const first = await queue("Node", name);
      const { leave, grace } = await quit(scene, name);
      const later = [await queue("Java", name), await queue("Node", name)];
      const before = [await scoreOf(scene, name, 2), await scoreOf(scene, name, 3)];
      await leave();
      await until("it has left", async () => (await length(name)) === 3);
      for (const i of [0, 1]) expect(await scoreOf(scene, name, i + 1)).toBe((before[i] ?? 0) - grace);
      await holder.unlock();
      for (const { lock, call } of [first, ...later]) {
        await soon(call);
        await lock.unlock();
      }
      expect(await keysLeft(scene, name)).toEqual([]);
    });
  }

  test("an interrupted Java waiter leaves its place behind, which holds up those after it until it lapses", async ({
    skip,
  }) => {
    if (!scene.atLeast("3.46.0"))
      skip(`Redisson ${scene.version} waits for five minutes for the dead; 3.46.0 can be told`);
    const name = scene.name();
    const options = { fairWaitTimeout: SHORT_GRACE, pollCap: NEVER };
    const holder = await scene
      .newNode({ ...options, watchdogTimeout: LEASE })
      .getFairLock(name)
      .lock();
    const thread = await scene.thread(await scene.newJava({ fairWait: SHORT_GRACE }));
    const interrupted = await parked(scene, thread, () => failure(thread.lock("fair", name).lock(NEVER)));
    await thread.interrupt();
    expect(await soon(interrupted)).toMatchObject({ javaClass: "java.lang.InterruptedException" });
    const behind = watch(scene.newNode(options).getFairLock(name).lock());
    await until("it has a place", async () => (await length(name)) === 2);
    expect(await scene.redis.lindex(fairQueue(name), 0)).toBe(thread.owner);
    const lapses = await scoreOf(scene, name, 0);
    await holder.unlock();
    const hold = await soon(behind);
    expect(Date.now()).toBeGreaterThanOrEqual(lapses - 100);
    await hold.unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });

  test("nobody who does not wait jumps a queue whose next one is silent, though the lock is free", async () => {
    const name = scene.name();
    const holder = await take("Node", name);
    const thread = await scene.thread();
    const silent = await parked(scene, thread, () => failure(thread.lock("fair", name).lock(NEVER)));
    await thread.interrupt();
    await soon(silent);
    await holder.unlock();
    expect(await scene.redis.exists(name)).toBe(0);
    for (const side of SIDES) {
      expect(await (await newParty(scene, side)).take("fair", name).tryLock()).toBe(false);
    }
    expect(await length(name)).toBe(1);
    await scene.redis.del(fairQueue(name), fairTimeouts(name));
  });

  test("Java counts a wait without lease as milliseconds, whatever its unit: its place lapses under a holder that renews, and it comes in last", async ({
    skip,
  }) => {
    if (!scene.atLeast("3.40.0")) skip(`Redisson ${scene.version} takes the unit for what it is`);
    const name = scene.name();
    const holder = await scene.newNode({ watchdogTimeout: LEASE }).getFairLock(name).lock();
    const thread = await scene.thread();
    const java = thread.lock("fair", name);
    const order: string[] = [];
    const asked = Date.now();
    const first = await parked(scene, thread, async () => {
      const { value } = await java.timed<boolean>("tryLock", { waitSeconds: 60 });
      order.push("Java");
      return value;
    });
    const lapses = await scoreOf(scene, name, 0);
    expect(lapses - asked).toBeLessThan(LEASE + 1_000);
    const second = watch(
      scene
        .newNode({ pollCap: NEVER })
        .getFairLock(name)
        .run(() => void order.push("Node")),
    );
    await until("it has a place", async () => (await length(name)) === 2);
    await until("Java's place has lapsed", () => Date.now() > lapses);
    await holder.unlock();
    await soon(second);
    expect(await soon(first)).toBe(true);
    expect(order).toEqual(["Node", "Java"]);
    await java.unlock();
    expect(await keysLeft(scene, name)).toEqual([]);
  });
});
