/** Semaphores whose permits have an id and a lease, shared by Java and Node. */
import { expect, test } from "vitest";
import { soon } from "../../faults/harness.js";
import { NEVER, UNKNOWN } from "../../synchronizers/helpers.js";
import { withRedisson } from "../scene.js";
import { crowd } from "./crowd.js";
import { expectUnknown, leases } from "./permit-leases.js";
import { type AnyPermits, DIRECTIONS, NAMES, PERMITS, Shared, type Side } from "./sides.js";

const LONG = 60_000;

withRedisson("permits", (scene) => {
  const permits = (name?: string): Promise<Shared<AnyPermits>> => Shared.of(scene, PERMITS, name);

  test.each(DIRECTIONS)("an id made in %s is given back in %s", async (from, to) => {
    const shared = await permits();
    await shared[to].trySetPermits(2);
    const id = await shared[from].acquire(LONG);
    expect(id).toMatch(/^[0-9a-f]{32}$/);
    const out = await leases(scene.redis, shared.name);
    expect([...out.keys()]).toEqual([id]);
    expect(Number.isInteger(out.get(id))).toBe(true);
    expect(await shared[to].availablePermits()).toBe(1);
    await shared[to].release(id);
    expect(await shared[from].availablePermits()).toBe(2);
    expect((await leases(scene.redis, shared.name)).size).toBe(0);
    await expectUnknown(from, shared[from], id);
  });

  test.each(DIRECTIONS)("an id made in %s gets another lease in %s", async (from, to) => {
    const shared = await permits();
    await shared[from].trySetPermits(1);
    const id = await shared[from].acquire(2_000);
    const before = (await leases(scene.redis, shared.name)).get(id) ?? 0;
    expect(await shared[to].updateLeaseTime(id, LONG)).toBe(true);
    const after = (await leases(scene.redis, shared.name)).get(id) ?? 0;
    expect(after - before).toBeGreaterThan(LONG - 2_000 - 100);
    expect(await shared[to].updateLeaseTime(UNKNOWN, LONG)).toBe(false);
    expect(await shared[from].tryRelease(id)).toBe(true);
    expect(await shared[to].updateLeaseTime(id, LONG)).toBe(false);
  });

  test.each(["Java", "Node"] as const)("an id that nobody has, in %s", async (side) => {
    const shared = await permits();
    await shared[side].trySetPermits(1);
    expect(await shared[side].tryRelease(UNKNOWN)).toBe(false);
    await expectUnknown(side, shared[side], UNKNOWN);
    expect(await shared.value()).toBe("1");
  });

  test.each(DIRECTIONS)("how many there are: what %s sets, %s says as well", async (from, to) => {
    const shared = await permits();
    const say = async (free: number, out: number) => {
      for (const side of [shared[from], shared[to]]) {
        expect(await side.availablePermits()).toBe(free);
        expect(await side.acquiredPermits()).toBe(out);
        expect(await side.getPermits()).toBe(free + out);
      }
    };
    await shared[from].setPermits(3);
    await say(3, 0);
    expect(await shared[to].trySetPermits(9)).toBe(false);
    const ids = [await shared[from].acquire(LONG), await shared[to].acquire(LONG)];
    await say(1, 2);
    await shared[from].addPermits(2);
    await say(3, 2);
    await shared[from].setPermits(1);
    await say(-1, 2);
    expect(await shared[to].tryAcquire()).toBeNull();
    for (const id of ids) await shared[to].release(id);
    await say(1, 0);
    await shared[to].setPermits(0);
    await say(0, 0);
  });

  type Wake = (permits: AnyPermits, id: string) => Promise<unknown>;
  const wakers: [what: string, wake: Wake][] = [
    ["release", (each, id) => each.release(id)],
    ["tryRelease", (each, id) => each.tryRelease(id)],
    ["addPermits", (each) => each.addPermits(1)],
    ["setPermits", (each) => each.setPermits(2)],
  ];
  const wakeUps = wakers.flatMap(([what, wake]) =>
    DIRECTIONS.map(([from, to]): [Side, string, Side, Wake] => [from, what, to, wake]),
  );

  test.each(wakeUps)("by message: %s's %s wakes %s", async (from, _, to, wake) => {
    const shared = await permits();
    await shared[from].trySetPermits(1);
    const id = await shared[from].acquire(LONG);
    const waiter = await shared.other(to);
    const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
    await wake(shared[from], id);
    const granted = await soon(waiting);
    expect((await leases(scene.redis, shared.name)).has(granted)).toBe(true);
    expect(await shared.value()).toBe("0");
  });

  test.each(DIRECTIONS)(
    "by message: %s sets the permits of a semaphore that %s waits for",
    async (from, to) => {
      const shared = await permits();
      const waiter = await shared.other(to);
      const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
      expect(await shared[from].trySetPermits(1)).toBe(true);
      await soon(waiting);
    },
  );

  test.each(DIRECTIONS)("%s has all permits, %s waits with a limit", async (from, to) => {
    const shared = await permits();
    await shared[from].trySetPermits(1);
    const id = await shared[from].acquire(LONG);
    const waiter = await shared.other(to);
    const began = performance.now();
    expect(await waiter.tryAcquire(2_000, LONG)).toBeNull();
    expect(performance.now() - began).toBeGreaterThan(1_990);
    const waiting = await shared.waiters.park(() => waiter.tryAcquire(NEVER, LONG));
    await shared[from].release(id);
    expect(await soon(waiting)).toMatch(/^[0-9a-f]{32}$/);
  });

  test.each(NAMES)("a name with %s", async (_, shape) => {
    const shared = await permits(scene.name(shape));
    await shared.Java.trySetPermits(1);
    for (const [from, to] of DIRECTIONS) {
      const id = await shared[from].acquire(LONG);
      const waiter = await shared.other(to);
      const waiting = await shared.waiters.park(() => waiter.acquire(LONG));
      await shared[to].release(id);
      await shared[from].release(await soon(waiting));
    }
    expect(await shared.value()).toBe("1");
  });

  test("a crowd of both sides: never more inside than there are permits, and all are back at the end", async () => {
    const shared = await permits();
    await shared.Java.trySetPermits(3);
    const members = await Promise.all(
      (["Java", "Node"] as const).flatMap((side) => [1, 2, 3, 4].map(() => shared.other(side))),
    );
    const visits = await crowd(scene, 3, members, async (member, i, visit) => {
      const lease = i % 2 === 0 ? LONG : undefined;
      const id = i % 3 === 0 ? await member.tryAcquire(1_000, lease) : await member.acquire(lease);
      if (id === null) return;
      await visit();
      // Every second permit is given back by the other side.
      const releaser = i % 2 === 0 ? member : members[(i + 4) % members.length];
      await (i % 4 < 2 ? shared.Node : (releaser ?? member)).release(id);
    });
    expect(visits.most).toBe(3);
    expect(Math.min(...visits.ofEach)).toBeGreaterThan(0);
    expect((await leases(scene.redis, shared.name)).size).toBe(0);
    expect(await shared.value()).toBe("3");
  });
});
