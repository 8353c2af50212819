/** Holds of one owner on one lock: how they are counted, how long they last, how they are given back. In virtual time. */
import { describe, expect } from "vitest";
import type { FencedLock, Hold } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, NAME, ORDERS, scene, sceneOf, testIn, watch } from "./scene.js";

/** The part of a lease that the default drift leaves. */
const leaves = (lease: number): number => lease * 0.99 - 2;

describe.each(byName(KINDS))("%s", (_, kind) => {
  const test = testIn((options) => sceneOf(kind, { watchdogTimeout: 9_000, ...options }));

  test("a free lock costs one command to take and one to give back, and leaves nothing", async (place) => {
    const { lock, server, rival } = place;
    const hold = await lock.lock({ lease: 10_000 });
    expect(server.hash()).toEqual(kind.fields(hold.ownerId, 1));
    expect(server.ttl()).toBe(10_000);
    expect(server.took()).toHaveLength(1);
    expect(await rival.tryLock()).toBeNull();
    server.took();
    await hold.unlock();
    expect(server.took()).toHaveLength(1);
    expect(hold.isHeld).toBe(false);
    expect(hold.remaining).toBe(0);
  });

  test("nested holds are counted, and share the owner's id", async ({ lock, server }) => {
    const holds: Hold[] = [await lock.lock({ lease: 10_000 })];
    for (const lease of [5_000, 20_000]) holds.push(await lock.lock({ lease, owner: holds[0] }));
    const [outer] = holds as [Hold];
    expect(holds.map(({ ownerId }) => ownerId)).toEqual([outer.ownerId, outer.ownerId, outer.ownerId]);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 3));
    expect(server.ttl()).toBe(20_000);
    expect(holds.map(({ remaining }) => remaining)).toEqual([10_000, 5_000, 20_000].map(leaves));
    expect(await lock.getHoldCount({ owner: outer })).toBe(3);
    for (const hold of holds) await hold.unlock();
  });

  test.for(ORDERS.map((order) => [order.join(", "), order] as const))(
    "given back in the order %s the key lives until the latest deadline that is left",
    async ([, order], { lock, server }) => {
      const leases = [20_000, 60_000, 40_000];
      const outer = await lock.lock({ lease: leases[0] });
      const holds = [outer];
      for (const lease of leases.slice(1)) holds.push(await lock.lock({ lease, owner: outer }));
      const left = new Set([0, 1, 2]);
      for (const which of order) {
        await holds[which]?.unlock();
        left.delete(which);
        const latest = Math.max(...[...left].map((i) => leases[i] as number));
        expect(server.hash()).toEqual(left.size > 0 ? kind.fields(outer.ownerId, left.size) : {});
        if (left.size > 0) expect(server.ttl()).toBe(latest);
        for (const i of left) expect(holds[i]?.isHeld).toBe(true);
        expect(await lock.getHoldCount({ owner: outer })).toBe(left.size);
      }
    },
  );

  test("a hold ends at its own deadline, and the owner's others go on", async (place) => {
    const { lock, server, advance, a } = place;
    a.listen("lost");
    const outer = await lock.lock({ lease: 20_000 });
    const inner = await lock.lock({ lease: 10_000, owner: outer });
    const { signal } = inner;
    await advance(leaves(10_000) - 1);
    expect(inner.isHeld).toBe(true);
    expect(signal.aborted).toBe(false);
    await advance(1);
    expect(inner.isHeld).toBe(false);
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired", lockName: NAME });
    expect(outer.isHeld).toBe(true);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
    expect(a.heard("lost")).toEqual([
      { lockName: NAME, kind: kind.kind, ownerId: outer.ownerId, reason: "expired", held: leaves(10_000) },
    ]);
    expect(await failure(inner.unlock())).toBe(signal.reason);
    await outer.unlock();
    expect(a.heard("lost")).toHaveLength(1);
  });

  test("the last hold that ends by itself is given back before its lease ends on the server", async (place) => {
    const { lock, rival, advance } = place;
    const hold = await lock.lock({ lease: 10_000 });
    await advance(leaves(10_000));
    expect(hold.isHeld).toBe(false);
    const next = await rival.tryLock(0, 5_000);
    expect(next?.isHeld).toBe(true);
    await next?.unlock();
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("assertHeld checks the clock before any timer has fired", async ({ lock, server }) => {
    const hold = await lock.lock({ lease: 10_000 });
    expect(hold.assertHeld()).toBeUndefined();
    server.clock.moveTo(leaves(10_000) - 1);
    expect(hold.assertHeld()).toBeUndefined();
    expect(hold.remaining).toBe(1);
    server.clock.moveTo(leaves(10_000));
    expect(hold.isHeld).toBe(false);
    expect(() => hold.assertHeld()).toThrow(
      expect.objectContaining({ code: "LOCK_LOST", reason: "expired" }),
    );
    expect(hold.signal.aborted).toBe(true);
    expect(await failure(hold.extend(1_000))).toMatchObject({ code: "LOCK_LOST" });
  });

  test("a hold that was given back asserts, extends and unlocks accordingly [B231]", async ({
    lock,
    server,
  }) => {
    const hold = await lock.lock();
    const first = hold.unlock();
    expect(hold.isHeld).toBe(false);
    expect(() => hold.assertHeld()).toThrow(
      expect.objectContaining({
        code: "LOCK_LOST",
        reason: "expired",
        since: server.clock.wall(),
        message: `lock "${NAME}": this hold was given back; take the lock again. See docs/guide.md#lock_lost`,
      }),
    );
    expect(await Promise.all([first, hold.unlock()])).toEqual([undefined, undefined]);
    expect(await hold.unlock()).toBeUndefined();
    expect(await failure(hold.extend(1_000))).toMatchObject({
      code: "NOT_OWNER",
      message: expect.stringContaining(`lock "${NAME}": this hold was given back`),
    });
    expect(server.took().filter((name) => name.endsWith("/release"))).toHaveLength(1);
  });

  test.for([
    ["up", 10_000, 40_000],
    ["down", 40_000, 10_000],
  ])("extend sets a deadline %s, counted from when it is called", async ([, lease, term], place) => {
    const { lock, server, advance } = place;
    const hold = await lock.lock({ lease });
    await advance(3_000);
    expect(hold.remaining).toBe(leaves(lease) - 3_000);
    await hold.extend(term);
    expect(hold.remaining).toBe(leaves(term));
    expect(server.ttl()).toBe(term);
    await advance(leaves(term) - 1);
    expect(hold.isHeld).toBe(true);
    await advance(1);
    expect(hold.isHeld).toBe(false);
  });

  test("extend moves no deadline but its own hold's", async ({ lock, server }) => {
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ lease: 20_000, owner: outer });
    await inner.extend(5_000);
    expect([outer.remaining, inner.remaining]).toEqual([leaves(60_000), leaves(5_000)]);
    expect(server.ttl()).toBe(60_000);
    await outer.extend(1_000);
    expect(server.ttl()).toBe(5_000);
    await inner.extend(30_000);
    expect(server.ttl()).toBe(30_000);
    expect(outer.remaining).toBe(leaves(1_000));
    for (const hold of [outer, inner]) await hold.unlock();
  });

  test("a hold that is renewed never falls below the watchdog's lease, and is renewed all the same", async (place) => {
    const { lock, server, advance, a } = place;
    a.listen("renewed");
    const hold = await lock.lock();
    await advance(1_000);
    await hold.extend(1);
    expect(server.ttl()).toBe(9_000);
    expect(hold.remaining).toBe(leaves(9_000));
    await hold.extend(50_000);
    await advance(40_000);
    expect(a.heard("renewed").length).toBeGreaterThan(11);
    expect(server.ttl()).toBe(10_000);
    await advance(5_000);
    expect(server.ttl()).toBeGreaterThan(5_000);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  });

  test("a leased hold beside one that is renewed ends at its deadline, and not before", async (place) => {
    const { lock, server, advance } = place;
    const leased = await lock.lock({ lease: 20_000 });
    const renewed = await lock.lock({ owner: leased });
    await advance(15_000);
    expect(leased.remaining).toBe(leaves(20_000) - 15_000);
    await renewed.unlock();
    expect(server.ttl()).toBe(5_000);
    const again = await lock.lock({ owner: leased });
    await advance(6_000);
    expect([leased.isHeld, again.isHeld]).toEqual([false, true]);
    expect(server.hash()).toEqual(kind.fields(again.ownerId, 1));
    await again.unlock();
  });

  test("an unlock that leaves no deadline ahead gives the lock back, and what is left is lost", async (place) => {
    const { lock, rival, server, a } = place;
    a.listen("lost", "released");
    const short = await lock.lock({ lease: 2_000 });
    const long = await lock.lock({ lease: 60_000, owner: short });
    const waiting = watch(rival.lock({ lease: 1_000 }));
    await server.settle();
    // When the unlock is sent, the lease of the short hold has ended, and no timer has fired yet.
    server.clock.moveTo(2_000);
    await long.unlock();
    await server.settle();
    expect(short.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(waiting.state).toBe("resolved");
    expect(a.heard("lost")).toHaveLength(1);
    expect(a.heard("released")).toHaveLength(1);
    await waiting.value?.unlock();
  });

  test("leases never add up", async ({ lock, server, a }) => {
    const outer = await lock.lock({ lease: 10_000 });
    for (let i = 0; i < 3; i++) await lock.lock({ lease: 10_000, owner: outer });
    expect(server.ttl()).toBe(10_000);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 4));
    await a.client.close({ timeout: 0 });
  });

  test("two unlocks of one owner that are called together are sent one after the other", async (place) => {
    const { lock, server } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    await Promise.all([outer.unlock(), inner.unlock()]);
    expect(server.took().filter((name) => name.endsWith("/release"))).toHaveLength(2);
  });

  test("a call after the last unlock was called is a new acquisition under a new id", async ({ lock, a }) => {
    await a.client.scope(async () => {
      const first = await lock.lock();
      const back = first.unlock();
      const second = await lock.lock();
      await back;
      expect(second.ownerId).not.toBe(first.ownerId);
      expect(second.isHeld).toBe(true);
      await second.unlock();
    });
  });

  test("of calls of one owner that wait, the second re-enters as soon as the first is granted", async (place) => {
    const { lock, rival, a, server } = place;
    const theirs = await rival.lock();
    await a.client.scope(async () => {
      const calls = [watch(lock.lock()), watch(lock.lock()), watch(lock.tryLock())];
      await server.settle();
      expect(calls.map(({ outcome }) => outcome)).toEqual(["pending", "pending", null]);
      await theirs.unlock();
      await server.settle();
      const [first, second] = calls.map(({ value }) => value as Hold);
      expect(first?.ownerId).toBe(second?.ownerId);
      expect(server.hash()).toEqual(kind.fields(first?.ownerId as string, 2));
      await first?.unlock();
      await second?.unlock();
    });
  });

  test("a hold says when it was granted and whose it is, also when it is over", async (place) => {
    const { lock, server, a, advance } = place;
    await advance(1_234);
    const hold = await lock.lock();
    const granted = server.clock.wall();
    await advance(500);
    const { ownerId } = hold;
    expect(ownerId).toMatch(new RegExp(`^${a.client.id}:\\d+$`));
    await hold.unlock();
    expect([hold.acquiredAt, hold.ownerId, hold.lockName]).toEqual([granted, ownerId, NAME]);
  });

  test("await using gives it back", async ({ lock }) => {
    {
      await using hold = await lock.lock();
      expect(hold.isHeld).toBe(true);
    }
  });

  test("an unlock leaves a hold that is renewed the watchdog's whole lease, and a leased one what it has left", async (place) => {
    const { lock, server, advance } = place;
    const outer = await lock.lock();
    await advance(1_500);
    const inner = await lock.lock({ owner: outer, lease: 60_000 });
    const third = await lock.lock({ owner: outer, lease: 20_000 });
    await advance(500);
    await inner.unlock();
    expect(server.ttl()).toBe(19_500);
    await third.unlock();
    expect(server.ttl()).toBe(9_000);
    // The hold counts only on the time that its own grant gave it.
    expect(outer.remaining).toBe(leaves(9_000) - 2_000);
    await outer.unlock();
  });

  test("a hold whose unlock is on its way is over: it counts no more, and can be lost no more", async (place) => {
    const { lock, a, advance, server } = place;
    a.listen("lost", "released");
    const hold = await lock.lock({ lease: 2_000 });
    a.keep("replies");
    const back = watch(hold.unlock());
    expect(a.client.stats().held).toBe(0);
    server.took();
    expect(await lock.getHoldCount({ owner: hold })).toBe(0);
    expect(server.took()).toEqual([]);
    a.loseAll("forced");
    await advance(2_000);
    // This unlock looks at the clock.
    const again = watch(hold.unlock());
    expect(hold.signal.aborted).toBe(false);
    await a.letGo();
    expect([back.outcome, again.outcome]).toEqual([undefined, undefined]);
    expect(a.heard("lost")).toEqual([]);
    expect(a.heard("released")).toHaveLength(1);
  });

  test("holds whose time is over while an unlock of another is on its way are lost as soon as it is answered, and given back [B60]", async (place) => {
    const { lock, a, server } = place;
    a.listen("lost", "released");
    const short = await lock.lock({ lease: 2_000 });
    const long = await lock.lock({ lease: 60_000, owner: short });
    const { signal } = short;
    a.keep("requests");
    const back = watch(long.unlock());
    // The process has stalled: no timer has fired yet.
    server.clock.moveTo(2_000);
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(a.heard("lost").map(({ reason }) => reason)).toEqual(["expired"]);
    expect(a.heard("released")).toHaveLength(1);
  });

  test.for([
    ["nothing, if it has lapsed too", 2_000, 0],
    ["the one that has time", 60_000, 1],
  ])(
    "of holds whose unlocks wait for a command, the first leaves those with time: %s",
    async ([, lease, left], { lock, a, server, advance }) => {
      const first = await lock.lock({ lease: 60_000 });
      const short = await lock.lock({ lease: 2_000, owner: first });
      const other = await lock.lock({ lease, owner: first });
      a.keep("replies");
      const calls = [watch(first.extend(50_000)), watch(first.unlock()), watch(short.unlock())];
      if (left === 0) calls.push(watch(other.unlock()));
      await advance(2_500);
      // The answer to extend() arrives. Then the first release is sent, and its answer is kept back.
      await a.letOneGo();
      expect(server.hash()).toEqual(left > 0 ? kind.fields(first.ownerId, 2) : {});
      await a.letGo();
      expect(calls.map(({ state }) => state)).toEqual(calls.map(() => "resolved"));
      expect(server.hash()).toEqual(left > 0 ? kind.fields(first.ownerId, 1) : {});
      expect(other.isHeld).toBe(left > 0);
      if (other.isHeld) await other.unlock();
    },
  );

  test("extend of a hold that is lost while it waits for a command before it sends nothing", async (place) => {
    const { lock, a, server, advance } = place;
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ lease: 60_000, owner: outer });
    const brief = await lock.lock({ lease: 1_000, owner: outer });
    a.keep("replies");
    const first = watch(inner.extend(50_000));
    const second = watch(brief.extend(50_000));
    await advance(1_000);
    server.took();
    await a.letGo();
    expect(first.outcome).toBeUndefined();
    expect(second.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(server.took().filter((name) => name.endsWith("/extend"))).toEqual([]);
    expect([outer.isHeld, inner.isHeld, brief.isHeld]).toEqual([true, true, false]);
    await inner.unlock();
    await outer.unlock();
  });

  test("extend of a hold that is lost before the answer is here rejects with that loss", async (place) => {
    const { lock, a, settle } = place;
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ lease: 60_000, owner: outer });
    a.keep("replies");
    const call = watch(inner.extend(90_000));
    await settle();
    a.loseAll("forced");
    await a.letGo();
    expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    expect(call.error).toBe(inner.signal.reason);
  });

  test("extend of a hold whose deadline passes before the answer is here rejects as expired", async (place) => {
    const { lock, a, server, settle } = place;
    const hold = await lock.lock({ lease: 2_000 });
    a.keep("replies");
    const call = watch(hold.extend(60_000));
    await settle();
    server.clock.moveTo(2_000);
    await a.letGo();
    expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("a nested call that is answered after its owner's last hold was lost holds what Redis has [B42]", async (place) => {
    const { lock, a, server, advance } = place;
    const owner = a.client.newOwner();
    const outer = await lock.lock({ lease: 1_000, owner });
    a.keep("replies");
    const nested = watch(lock.lock({ owner }));
    await advance(990);
    expect(outer.isHeld).toBe(false);
    await a.letGo();
    const hold = nested.value as Hold;
    expect(hold.isHeld).toBe(true);
    expect(server.hash()).toEqual(kind.fields(hold.ownerId, 1));
    await hold.unlock();
  });

  test.with({ commandTimeout: 300 }).for([["known to the server"], ["new to it"]] as const)(
    "an extend that waits for the one before it while its hold ends says that it is lost; its script is %s [B58]",
    async ([script], { lock, a, advance }) => {
      const hold = await lock.lock({ lease: 2_000 });
      if (script === "known to the server") await hold.extend(2_000);
      a.keep("replies");
      const unanswered = watch(hold.extend(2_000));
      await advance(300);
      expect(unanswered.outcome).toBe("UNAVAILABLE");
      await advance(1_500);
      const behind = watch(hold.extend(2_000));
      await advance(190);
      expect(hold.isHeld).toBe(false);
      await a.letGo();
      expect(behind.outcome).toBe("LOCK_LOST");
      await advance(1_000);
    },
  );

  test("a machine that slept, so that only the wall clock went on, has lost what ended meanwhile", async (place) => {
    const { lock, server, a } = place;
    const wall = server.clock.wall.bind(server.clock);
    let slept = 0;
    server.clock.wall = () => wall() + slept;
    const leased = await lock.lock({ lease: 60_000 });
    const extended = await lock.lock({ lease: 1_000, owner: leased });
    const renewed = await lock.lock({ owner: leased });
    await extended.extend(30_000);
    slept = 20_000;
    expect([leased, extended, renewed].map(({ isHeld }) => isHeld)).toEqual([true, true, false]);
    expect(extended.remaining).toBe(leaves(30_000) - 20_000);
    slept = 40_000;
    expect([leased, extended].map(({ isHeld }) => isHeld)).toEqual([true, false]);
    slept = 59_500;
    expect(leased.isHeld).toBe(false);
    await a.client.close({ timeout: 0 });
  });

  test("the signal of a hold is one and the same", async ({ lock }) => {
    const hold = await lock.lock();
    expect(hold.signal).toBe(hold.signal);
    expect(hold.signal.aborted).toBe(false);
    const { signal } = hold;
    await hold.unlock();
    expect(signal.aborted).toBe(false);
  });
});

describe("the token of a fenced lock", () => {
  const test = testIn(scene);

  test("rises with each outermost grant, and is the same for nested ones", async ({ a, b, server }) => {
    const [lock, rival] = [a, b].map(({ client }) => client.getFencedLock(NAME)) as [FencedLock, FencedLock];
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    expect(typeof outer.token).toBe("bigint");
    expect(inner.token).toBe(outer.token);
    await outer.unlock();
    const third = await lock.lock({ owner: inner });
    expect(third.token).toBe(outer.token);
    await inner.unlock();
    await third.unlock();
    const theirs = await rival.lock();
    expect(theirs.token).toBeGreaterThan(outer.token);
    // The token also rises in a hand-over.
    const waiting = watch(rival.lock());
    await server.settle();
    await theirs.unlock();
    await server.settle();
    expect(waiting.value?.token).toBeGreaterThan(theirs.token);
    await waiting.value?.unlock();
  });
});
