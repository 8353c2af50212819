/** Contract section 2: unlock of a Hold, "lost is final", and late grants. */
import { describe, expect } from "vitest";
import { type Hold, type Lock, LockLostError } from "../../src/index.js";
import { named, SLACK, until } from "../support/index.js";
import { failure, lost, nameOf, notOwner, recordEvents, takeBriefly, toldBy } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("unlock and loss of a Hold", (test, kind) => {
  describe("unlock of a Hold", () => {
    test("works from any async context", async ({ client, lock, other, wire }) => {
      const holds: Hold[] = await client.scope(() =>
        Promise.all([lock.lock(), lock.lock(), lock.lock(), lock.lock()]),
      );
      const [one, two, three, four] = holds as [Hold, Hold, Hold, Hold];
      await new Promise<void>((resolve, reject) =>
        setTimeout(() => void one.unlock().then(resolve, reject), 1),
      );
      await client.scope(() => two.unlock());
      await other.run(() => three.unlock());
      expect(await wire.count()).toBe(1);
      await four.unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("a second call shares the first one's outcome", async ({ client, lock, counter }) => {
      const events = recordEvents(client);
      const hold = await lock.lock();
      await counter.reset();
      await Promise.all([hold.unlock(), hold.unlock()]);
      await hold.unlock();
      await counter.settle();
      expect(counter.all()).toHaveLength(kind.members);
      expect(toldBy(lock, "released", events)).toHaveLength(1);
    });

    test("a second call never frees a later hold", async ({ lock, wire }) => {
      const first = await lock.lock();
      await first.unlock();
      const second = await lock.lock();
      await first.unlock();
      expect(second.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await second.unlock();
    });

    test("the same, of nested holds of one owner", async ({ lock, wire }) => {
      const outer = await lock.lock();
      const inner = await lock.lock({ owner: outer });
      await Promise.all([inner.unlock(), inner.unlock(), inner.unlock()]);
      expect(await wire.count()).toBe(1);
      expect(outer.isHeld).toBe(true);
      await outer.unlock();
    });

    test("after UNAVAILABLE the release goes on in the background, and a further call asks again", async ({
      lock,
      wire,
      through,
    }) => {
      const { proxy, mine } = await through({ commandTimeout: 600 });
      const hold = await until("it is taken", () => mine.lock({ lease: 60_000 }));
      proxy.blackhole();
      expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE", lockName: nameOf(lock) });
      expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE", lockName: nameOf(lock) });
      expect(hold.isHeld).toBe(false);
      proxy.restore();
      await wire.untilFree();
      await until("a further call tells so", () => hold.unlock().then(() => true));
      expect(hold.signal.aborted).toBe(false);
    });

    test("so does lock.unlock() in a scope", async ({ wire, through }) => {
      const { proxy, client, mine } = await through({ commandTimeout: 600 });
      await client.scope(async () => {
        await until("it is taken", () => mine.lock({ lease: 60_000 }));
        proxy.blackhole();
        expect(await failure(mine.unlock())).toMatchObject({ code: "UNAVAILABLE" });
        expect(await failure(mine.unlock())).toMatchObject({ code: "UNAVAILABLE" });
        proxy.restore();
        await wire.untilFree();
        await until("a further call finds nothing to give back", async () => {
          return ((await failure(mine.unlock())) as { code?: string }).code === "NOT_OWNER";
        });
      });
    });
  });

  describe("lost is final", () => {
    test("signal, isHeld, unlock and run agree, even if Redis has the key again", async ({
      redis,
      lockName,
      lock,
      wire,
    }) => {
      const result = lock.run(async (hold) => {
        const state = await wire.fields();
        await wire.wipe();
        expect(await failure(hold.extend(10_000))).toMatchObject({ ...lost(lock), reason: "expired" });
        await redis.hset(lockName, state);
        await redis.pexpire(lockName, 60_000);
        expect(hold.signal.aborted).toBe(true);
        expect(hold.isHeld).toBe(false);
        expect(await failure(hold.extend(10_000))).toMatchObject(lost(lock));
        expect(await failure(hold.unlock())).toMatchObject(lost(lock));
        return "done";
      });
      expect(await failure(result)).toMatchObject({ ...lost(lock), reason: "expired", result: "done" });
    });

    test("the error: LockLostError with since and reason, the signal's reason too", async ({
      redis,
      lock,
    }) => {
      const before = Date.now();
      const hold = await lock.lock();
      await redis.flushall();
      const error = (await failure(hold.unlock())) as LockLostError;
      expect(error).toBeInstanceOf(LockLostError);
      expect(error).toMatchObject({ ...lost(lock), reason: "expired", name: "LockLostError" });
      expect(error.since).toBeGreaterThanOrEqual(before - 5);
      expect(error.since).toBeLessThanOrEqual(Date.now() + 5);
      expect(hold.signal.reason).toMatchObject({ ...lost(lock), reason: "expired" });
      expect("result" in error && error.result !== undefined).toBe(false);
    });

    test("a leased hold is lost at its local deadline without any call", async ({ client, lock }) => {
      const hold = await takeBriefly(lock, 400);
      const events = recordEvents(client);
      await until("the signal", () => hold.signal.aborted);
      expect(hold.isHeld).toBe(false);
      expect(toldBy(lock, "lost", events)).toMatchObject([{ payload: { reason: "expired" } }]);
      expect(await failure(hold.unlock())).toMatchObject({ ...lost(lock), reason: "expired" });
    });

    test("lock.unlock() that reaches it rejects LOCK_LOST once and drops it", async ({
      client,
      lock,
      wire,
    }) => {
      await client.scope(async () => {
        await lock.lock();
        await lock.lock();
        await wire.wipe();
        expect(await failure(lock.unlock())).toMatchObject(lost(lock));
        expect(await failure(lock.unlock())).toMatchObject(lost(lock));
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
      });
    });

    test("the lost Hold's unlock() drops it for lock.unlock() too", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const hold = await lock.lock();
        await wire.wipe();
        expect(await failure(hold.unlock())).toMatchObject(lost(lock));
        expect(await failure(hold.unlock())).toMatchObject(lost(lock)); // both calls share one outcome
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
      });
    });

    test("a loss of one nested hold by its lease leaves the outer one", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const outer = await lock.lock();
        const inner = await takeBriefly(lock, 400);
        await until("it is lost", () => inner.signal.aborted);
        expect(await failure(lock.unlock())).toMatchObject({ ...lost(lock), reason: "expired" });
        expect(outer.isHeld).toBe(true);
        await until("it is given back", async () => (await wire.count()) === 1);
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("a nested call notices it, and starts afresh", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        await wire.wipe();
        const second = await lock.lock({ wait: SLACK });
        expect(second.ownerId).not.toBe(first.ownerId);
        expect(first.signal.reason).toMatchObject({ ...lost(lock), reason: "expired" });
        expect(await wire.fields()).toEqual(wire.heldBy(second.ownerId));
        expect(await failure(first.unlock())).toMatchObject(lost(lock));
        expect(second.isHeld).toBe(true);
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("the next acquire starts afresh, like a stranger", async ({ client, lock, rival }) => {
      await client.scope(async () => {
        const first = await takeBriefly(lock, 400);
        await until("it is lost", () => first.signal.aborted);
        const theirs = await rival.lock();
        expect(await lock.tryLock()).toBeNull();
        await theirs.unlock();
        const second = await lock.lock();
        expect(second.ownerId).not.toBe(first.ownerId);
        await lock.unlock(); // the innermost hold, which is not the lost one
        expect(second.isHeld).toBe(false);
        expect(await failure(lock.unlock())).toMatchObject(lost(lock));
      });
    });

    test("taken by another: their hold is left alone", async ({ lock, rival, wire }) => {
      const hold = await lock.lock();
      await wire.wipe();
      const theirs = await rival.lock();
      expect(await failure(hold.unlock())).toMatchObject({ ...lost(lock), reason: "taken" });
      expect(theirs.isHeld).toBe(true);
      expect(await wire.fields()).toEqual(kind.rival.fields(theirs.ownerId, 1));
      await theirs.unlock();
    });
  });

  describe("a grant that arrives at or after its deadline is given back and the call rejects LOCK_LOST", () => {
    test.for<[string, (lock: Lock) => Promise<unknown>]>([
      ["lock", (lock) => lock.lock({ lease: 1 })],
      ["tryLock", (lock) => lock.tryLock(0, 1)],
      ["tryLock with a wait", (lock) => lock.tryLock(1_000, 1)],
      ["run", (lock) => lock.run(() => "never", { lease: 1 })],
    ])("%s with lease 1", async ([_, call], { client, lock, wire }) => {
      const events = recordEvents(client);
      expect(await failure(call(lock))).toMatchObject({ ...lost(lock), reason: "expired" });
      await wire.untilFree();
      expect(events.filter(({ name }) => name === "acquired" || name === "released")).toEqual([]);
      await (await lock.lock({ wait: SLACK })).unlock();
    });

    test("one that was slow to arrive", async ({ lock, wire, through }) => {
      const { proxy, client, mine } = await through();
      proxy.delayReplies(250, named("EVAL", "EVALSHA"));
      const taking = mine.lock({ lease: 200 });
      const later = kind.make(client, "later").lock({ lease: 60_000 });
      expect(await failure(taking)).toMatchObject({ ...lost(lock), reason: "expired" });
      expect((await later).isHeld).toBe(true);
      await (await later).unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("a nested one is undone alone", async ({ lock, wire }) => {
      const outer = await lock.lock({ lease: 60_000 });
      expect(await failure(lock.lock({ owner: outer, lease: 1 }))).toMatchObject(lost(lock));
      expect(outer.isHeld).toBe(true);
      await until("it is undone", async () => (await wire.count()) === 1);
      expect(await wire.ttl()).toBeGreaterThan(50_000);
      const nested = await lock.lock({ owner: outer });
      expect(await wire.count()).toBe(2);
      await nested.unlock();
      await outer.unlock();
      expect(await wire.keys()).toEqual([]);
    });
  });
});
