/** Contract section 2: deadlines, extend, and what a Hold says about its own time. */
import { describe, expect } from "vitest";
import { type Hold, LockClient } from "../../src/index.js";
import { connectionLike, named, ORDERS, SLACK, UNHURRIED, until } from "../support/index.js";
import { failure, lapse, recordEvents, takeBriefly, untilWaiting } from "./helpers.js";
import { eachKind } from "./scene.js";
import type { Wire } from "./wire.js";

interface More {
  take: (lease: number, owner?: Hold) => Promise<Hold>;
  /** The key's TTL fits a lease of `ms` that was set within the last seconds. */
  expectTtl: (ms: number, slack?: number) => Promise<void>;
  /** A client whose watchdog renews every 1 500 ms. */
  brisk: LockClient;
}

eachKind("deadlines and extend", (base, kind) => {
  const test = base.extend<More>({
    take: ({ lock }, use) => use((lease, owner) => lock.lock(owner ? { lease, owner } : { lease })),
    expectTtl: ({ wire }, use) =>
      use(async (ms, slack = 5_000) => {
        const ttl = await wire.ttl();
        expect(ttl).toBeGreaterThan(ms - slack);
        expect(ttl).toBeLessThanOrEqual(ms);
      }),
    brisk: async ({ redis }, use) => {
      const brisk = new LockClient(connectionLike(redis), { ...UNHURRIED, watchdogTimeout: 4_500 });
      await use(brisk);
      await brisk.close({ timeout: 0 });
    },
  });

  describe("every Hold has its own deadline; the key lives until the latest of them", () => {
    test("a nested acquire never shortens an outer hold [F36]", async ({ take, expectTtl }) => {
      const outer = await take(60_000);
      const inner = await take(10_000, outer);
      await expectTtl(60_000);
      expect(outer.remaining).toBeGreaterThan(50_000);
      expect(inner.remaining).toBeLessThanOrEqual(10_000);
      expect(inner.remaining).toBeGreaterThan(5_000);
      await inner.unlock();
      await outer.unlock();
    });

    test("nor does one that the watchdog renews", async ({ lockName, brisk, expectTtl }) => {
      const events = recordEvents(brisk);
      const mine = kind.make(brisk, lockName);
      const outer = await mine.lock({ lease: 60_000 });
      const inner = await mine.lock({ owner: outer });
      await until("two renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
      await expectTtl(60_000, 10_000);
      await inner.unlock();
      await outer.unlock();
    });

    test("a nested acquire may lengthen the key's life", async ({ take, expectTtl }) => {
      const outer = await take(10_000);
      const inner = await take(60_000, outer);
      await expectTtl(60_000);
      expect(outer.remaining).toBeLessThanOrEqual(10_000);
      await inner.unlock();
      await outer.unlock();
    });

    test("leases never add up [F36]", async ({ wire, take, expectTtl }) => {
      const outer = await take(10_000);
      const holds = [outer];
      for (let i = 0; i < 3; i++) holds.push(await take(10_000, outer));
      await expectTtl(10_000);
      expect(await wire.count()).toBe(4);
      for (const hold of holds) await hold.unlock();
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("an unlock, in any order, sets the key to the latest deadline left", () => {
    const LEASES = [20_000, 60_000, 40_000];

    test.for(ORDERS)("%i, %i, %i", async (order, { wire, take, expectTtl }) => {
      const outer = await take(LEASES[0] as number);
      const holds = [outer, await take(LEASES[1] as number, outer), await take(LEASES[2] as number, outer)];
      const left = new Set([0, 1, 2]);
      for (const which of order) {
        await holds[which]?.unlock();
        left.delete(which);
        expect(await wire.count()).toBe(left.size);
        if (left.size > 0) await expectTtl(Math.max(...[...left].map((i) => LEASES[i] as number)));
        for (const i of left) expect(holds[i]?.isHeld).toBe(true);
      }
      expect(await wire.keys()).toEqual([]);
    });

    test("a watchdog's hold gives way to a leased one and the other way round", async ({
      lock,
      take,
      expectTtl,
    }) => {
      const outer = await take(10_000);
      const inner = await lock.lock({ owner: outer });
      await expectTtl(30_000);
      await inner.unlock();
      await expectTtl(10_000);
      const second = await lock.lock({ owner: outer });
      await outer.unlock();
      await expectTtl(30_000);
      await second.unlock();
    });

    test("a leased hold is never renewed for its own sake, and ends at its deadline though another goes on", async ({
      lockName,
      wire,
      brisk,
    }) => {
      const events = recordEvents(brisk);
      const mine = kind.make(brisk, lockName);
      const leased = await mine.lock({ lease: 60_000 });
      const watched = await mine.lock({ owner: leased });
      await lapse(leased, 2_000);
      await until("the leased one is lost", () => leased.signal.aborted);
      await until("the other one is renewed", () => events.some(({ name }) => name === "renewed"));
      expect(watched.isHeld).toBe(true);
      await until("the server counts one", async () => (await wire.count()) === 1);
      expect(await failure(leased.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(watched.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await watched.unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("if none lies ahead it is released and announced, and the holds left are lost (expired)", async ({
      server,
      lockName,
      wire,
      take,
    }) => {
      await using patient = new LockClient(connectionLike(server.connect()), {
        ...UNHURRIED,
        pollCap: 60_000,
      });
      const rival = kind.rival.make(patient, lockName);
      const short = await take(60_000);
      const long = await take(60_000, short);
      const waiter = await untilWaiting(patient, () => rival.lock({ wait: 30_000 }));
      await lapse(short, 800);
      await long.unlock();
      const began = performance.now();
      const theirs = await waiter.done;
      expect(performance.now() - began).toBeLessThan(SLACK); // woken by a message, not by pollCap
      expect(short.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(await failure(short.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(await wire.fields()).toEqual(kind.rival.fields(theirs.ownerId, 1));
      await theirs.unlock();
    });
  });

  describe("extend", () => {
    test("sets the deadline to now + lease, up", async ({ take, expectTtl }) => {
      const hold = await take(10_000);
      await hold.extend(60_000);
      await expectTtl(60_000);
      expect(hold.remaining).toBeGreaterThan(50_000);
      expect(hold.remaining).toBeLessThanOrEqual(60_000 * 0.99 - 2);
      await hold.unlock();
    });

    test("and down", async ({ take, expectTtl }) => {
      const hold = await take(60_000);
      await hold.extend(10_000);
      await expectTtl(10_000);
      expect(hold.remaining).toBeLessThanOrEqual(10_000);
      await hold.extend(60_000);
      await lapse(hold, 300);
      await until("it ends then", () => hold.signal.aborted);
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    });

    test("never another hold's", async ({ take, expectTtl }) => {
      const outer = await take(60_000);
      const inner = await take(20_000, outer);
      await inner.extend(9_000);
      await expectTtl(60_000);
      expect(outer.remaining).toBeGreaterThan(50_000);
      await outer.extend(10_000);
      await expectTtl(10_000);
      expect(inner.isHeld).toBe(true);
      await inner.unlock();
      await outer.unlock();
    });

    test("a watchdog hold never below watchdogTimeout, which goes on renewing", async ({
      lockName,
      brisk,
      expectTtl,
    }) => {
      const events = recordEvents(brisk);
      const hold = await kind.make(brisk, lockName).lock();
      await hold.extend(1);
      await expectTtl(4_500, 4_400);
      expect(hold.remaining).toBeGreaterThan(100);
      await until("renewals", () => events.filter(({ name }) => name === "renewed").length >= 3);
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
    });

    test("a watchdog hold above it; renewals do not lower that", async ({ lockName, brisk, expectTtl }) => {
      const events = recordEvents(brisk);
      const hold = await kind.make(brisk, lockName).lock();
      await hold.extend(60_000);
      await until("renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
      await expectTtl(60_000, 10_000);
      expect(hold.remaining).toBeGreaterThan(50_000);
      await hold.unlock();
    });

    test("resolves with nothing, and costs one command", async ({ take }) => {
      const hold = await take(10_000);
      expect(await hold.extend(20_000)).toBeUndefined();
      await hold.unlock();
    });

    test.for<[string, string, (wire: Wire) => Promise<unknown>]>([
      ["gone", "expired", (wire) => wire.wipe()],
      ["taken by another", "taken", (wire) => wire.seize()],
    ])("LOCK_LOST when the key is %s", async ([_, reason, act], { wire, take }) => {
      const hold = await take(10_000);
      await act(wire);
      const before = await wire.fields();
      expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason });
      expect(hold.signal.aborted).toBe(true);
      expect(hold.isHeld).toBe(false);
      expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason });
      expect(await wire.fields()).toEqual(before);
    });

    test("LOCK_LOST after its deadline", async ({ lock, wire }) => {
      const hold = await takeBriefly(lock, 400);
      await until("its deadline is over", () => !hold.isHeld);
      expect(await failure(hold.extend(20_000))).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      await wire.untilFree();
    });

    test("before an unlock() is done, though another call of the owner is on its way [B88]", async ({
      lock,
      take,
    }) => {
      const hold = await take(10_000);
      const nested = lock.lock({ owner: hold });
      const extending = hold.extend(40_000);
      const unlocking = hold.unlock();
      expect(await extending).toBeUndefined();
      await unlocking;
      await (await nested).unlock();
    });

    test("NOT_OWNER if given back, by its unlock or by lock.unlock()", async ({
      client,
      lock,
      wire,
      take,
    }) => {
      const hold = await take(10_000);
      await hold.unlock();
      expect(await failure(hold.extend(20_000))).toMatchObject({ code: "NOT_OWNER" });
      await client.scope(async () => {
        const scoped = await take(10_000);
        await lock.unlock();
        expect(await failure(scoped.extend(20_000))).toMatchObject({ code: "NOT_OWNER" });
      });
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("remaining", () => {
    test("counts from when the command was sent, less drift and 2 ms", async ({ through }) => {
      const { proxy, mine } = await through();
      proxy.delayReplies(300, named("EVAL", "EVALSHA"));
      const hold = await mine.lock({ lease: 10_000 });
      expect(hold.remaining).toBeLessThanOrEqual(10_000 * 0.99 - 2 - 295);
      expect(hold.remaining).toBeGreaterThan(5_000);
      proxy.restore();
      await hold.unlock();
    });

    test.for<[number, number]>([
      [0, 60_000 - 2],
      [0.01, 60_000 * 0.99 - 2],
      [0.5, 30_000 - 2],
    ])("drift %d", async ([drift, most], { redis, lockName, expectTtl }) => {
      await using drifting = new LockClient(connectionLike(redis), { ...UNHURRIED, drift });
      const hold = await kind.make(drifting, lockName).lock({ lease: 60_000 });
      expect(hold.remaining).toBeLessThanOrEqual(most);
      expect(hold.remaining).toBeGreaterThan(most - 5_000);
      await expectTtl(60_000);
      await hold.unlock();
    });

    test("falls, never rises by itself, and is 0 when over", async ({ lock, take }) => {
      const hold = await takeBriefly(lock, 400);
      const first = hold.remaining;
      await until("it falls", () => hold.remaining < first);
      await until("it is over", () => !hold.isHeld);
      expect(hold.remaining).toBe(0);
      await failure(hold.unlock());
      const second = await take(10_000);
      const unlocking = second.unlock();
      expect(second.remaining).toBe(0);
      await unlocking;
    });
  });

  describe("a Hold's face", () => {
    test("lockName, ownerId, acquiredAt", async ({ lock, wire, take }) => {
      const before = Date.now();
      const hold = await take(10_000);
      expect(hold.lockName).toBe(lock.name);
      expect(await wire.fields()).toEqual(wire.heldBy(hold.ownerId));
      expect(hold.acquiredAt).toBeGreaterThanOrEqual(before - 5);
      expect(hold.acquiredAt).toBeLessThanOrEqual(Date.now() + 5);
      expect(hold.signal).toBeInstanceOf(AbortSignal);
      expect(hold.signal).toBe(hold.signal);
      await hold.unlock();
    });

    test("isHeld is false from the call of unlock on; the signal never tells of an unlock", async ({
      take,
    }) => {
      const hold = await take(10_000);
      const { signal } = hold;
      expect(hold.isHeld).toBe(true);
      const unlocking = hold.unlock();
      expect(hold.isHeld).toBe(false);
      await unlocking;
      expect(signal.aborted).toBe(false);
      expect(hold.signal.aborted).toBe(false);
    });

    test("assertHeld throws LockLostError unless isHeld", async ({ lock, take }) => {
      const hold = await take(10_000);
      expect(hold.assertHeld()).toBeUndefined();
      await lock.forceUnlock();
      const loss = expect.objectContaining({ name: "LockLostError", code: "LOCK_LOST", lockName: lock.name });
      expect(() => hold.assertHeld()).toThrow(loss);
      const second = await take(10_000);
      await second.unlock();
      expect(() => second.assertHeld()).toThrow(loss);
    });
  });
});
