/** Groups of locks while the other side holds or wants some members. Neither side sees a group, only its members. */
import { expect, test } from "vitest";
import { type LockClient, MultiLock } from "../../../src/index.js";
import { soon } from "../../faults/harness.js";
import { until } from "../../support/index.js";
import { NEVER } from "../../synchronizers/helpers.js";
import type { JavaLock, JavaThread } from "../java.js";
import { withRedisson } from "../scene.js";
import { expectNothingLeft, parked } from "./waiting.js";

const LEASE = 40_000;
/** Milliseconds after which Java gives back its members, of three, and starts again. */
const ROUND = 4_500;
/** Milliseconds for which both sides take the same locks. */
const SPAN = 1_500;

withRedisson("multi-lock", (scene) => {
  const names = (count: number): string[] => Array.from({ length: count }, () => scene.name());
  const inNode = (members: string[], client: LockClient = scene.newNode({ pollCap: NEVER })): MultiLock =>
    new MultiLock(...members.map((name) => client.getLock(name)));
  const inJava = (thread: JavaThread, members: string[]): JavaLock =>
    thread.multiLock(...members.map((name) => ({ kind: "lock" as const, name })));
  const held = async (members: string[]): Promise<number> => scene.redis.exists(...members);

  test("Node waits for a member that Java holds without holding the others, and is woken at once", async () => {
    const members = names(3);
    const [first, middle, last] = members as [string, string, string];
    const thread = await scene.thread();
    await thread.lock("lock", middle).lock(LEASE);
    // Node takes the first member, is refused the middle one, gives the first back, and asks for the middle one again.
    const waiting = await parked(scene, middle, () => inNode(members).lock(), { questions: 4 });
    expect(await held([first, last])).toBe(0);
    for (const name of [first, last]) {
      expect(await thread.lock("lock", name).tryLock()).toBe(true);
      await thread.lock("lock", name).unlock();
    }
    await thread.lock("lock", middle).unlock();
    const hold = await soon(waiting);
    for (const name of members) expect(await thread.lock("lock", name).tryLock()).toBe(false);
    await hold.unlock();
    for (const name of members) await expectNothingLeft(scene, name);
  });

  test("Java waits for a member that Node holds, and has all when Node unlocks", async () => {
    const members = names(3);
    const thread = await scene.thread();
    const hold = await scene.node.getLock(members[2] ?? "").lock({ lease: LEASE });
    const java = inJava(thread, members);
    expect(await java.tryLock()).toBe(false);
    expect(await held(members)).toBe(1);
    // Java takes the first two members, and asks twice for the third.
    const waiting = await parked(scene, members[2] ?? "", () => java.lock(), { questions: 4 });
    const begun = performance.now();
    await hold.unlock();
    await soon(waiting);
    expect(performance.now() - begun).toBeLessThan(ROUND / 2);
    for (const name of members) {
      expect(await scene.redis.hgetall(name)).toEqual({ [thread.owner]: "1" });
      expect(await scene.node.getLock(name).tryLock()).toBeNull();
    }
    await java.unlock();
    for (const name of members) await expectNothingLeft(scene, name);
  });

  test("Node holds all: Java is refused in whatever order, and takes nothing", async () => {
    const members = names(3);
    const thread = await scene.thread();
    const hold = await inNode(members).lock({ lease: LEASE });
    const other = scene.name();
    expect(await inJava(thread, [...members].reverse()).tryLock()).toBe(false);
    expect(await inJava(thread, [other, ...members]).tryLock()).toBe(false);
    expect(await scene.redis.exists(other)).toBe(0);
    expect(await thread.lock("lock", members[1] ?? "").tryLock()).toBe(false);
    await hold.unlock();
    expect(await inJava(thread, members).tryLock()).toBe(true);
    await inJava(thread, members).unlock();
  });

  test("Java holds all: Node is refused in whatever order, and takes nothing", async () => {
    const members = names(3);
    const java = inJava(await scene.thread(), members);
    await java.lock();
    const other = scene.name();
    expect(await inNode([...members].reverse()).tryLock()).toBeNull();
    expect(await inNode([other, ...members]).tryLock(2_500)).toBeNull();
    expect(await scene.redis.exists(other)).toBe(0);
    expect(await inNode(members).isLocked()).toBe(true);
    await java.unlock();
    await (await inNode(members).lock({ wait: 0 })).unlock();
  });

  test("Java breaks one member: Node's hold on all of them is lost, and the rest is given back", async () => {
    const members = names(3);
    const client = scene.newNode({ watchdogTimeout: 1_500 });
    const hold = await inNode(members, client).lock();
    expect(await (await scene.thread()).lock("lock", members[1] ?? "").forceUnlock()).toBe(true);
    await until("the hold is lost", () => hold.signal.aborted);
    expect(hold.isHeld).toBe(false);
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
    expect(await held(members)).toBe(0);
  });

  test("a lease in Java bounds each member, and Node gets in when it ends", async () => {
    const members = names(2);
    const java = inJava(await scene.thread(), members);
    expect(await java.tryLock(2_000, 1_500)).toBe(true);
    for (const name of members) expect(await scene.redis.pttl(name)).toBeLessThanOrEqual(1_500);
    const waiting = await parked(scene, members[0] ?? "", () => inNode(members).lock());
    await (await soon(waiting)).unlock();
    expect(await held(members)).toBe(0);
  });

  test("both sides take the same locks in different orders: no dead-lock, no lost update", async () => {
    const [a, b, c] = names(3) as [string, string, string];
    // Java's threads hold members while they wait, so among themselves they need one order, or seconds to get apart.
    const inOneOrder = [
      [a, b, c],
      [a, b, c],
    ];
    const inAnyOrder = [
      [c, b, a],
      [b, c, a],
      [a, b, c],
    ];
    const counter = `counter-${a}`;
    let sections = 0;
    const count = async (): Promise<void> => {
      const value = Number(await scene.redis.get(counter));
      await scene.redis.set(counter, value + 1);
      sections++;
    };
    const end = performance.now() + SPAN;
    const java = inOneOrder.map(async (members) => {
      const lock = inJava(await scene.thread(), members);
      let times = 0;
      for (; performance.now() < end; times++) {
        await lock.lock();
        await count();
        await lock.unlock();
      }
      return times;
    });
    const node = inAnyOrder.map(async (members) => {
      const lock = inNode(members, scene.node);
      let times = 0;
      for (; performance.now() < end; times++) await lock.run(count);
      return times;
    });
    const times = await Promise.all([...java, ...node]);
    console.info(
      `Redisson ${scene.version}, sections of 2 Java threads and 3 Node tasks: ${times.join(" ")}`,
    );
    expect(Number(await scene.redis.get(counter))).toBe(sections);
    expect(Math.min(...times)).toBeGreaterThan(0);
    expect(await held([a, b, c])).toBe(0);
  });
});
