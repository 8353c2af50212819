/** Contract section 2: forceUnlock, and the calls that ask about a lock. */
import { describe, expect } from "vitest";
import { type Hold, LockClient } from "../../src/index.js";
import { connectionLike, SLACK, UNHURRIED, until } from "../support/index.js";
import { failure, nextEvent, recordEvents, toldBy, untilWaiting } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("forceUnlock, and the questions one may ask", (test, kind) => {
  describe("forceUnlock", () => {
    test("false of a free lock, true of a held one, whoever holds it", async ({ lock, twin, wire }) => {
      expect(await lock.forceUnlock()).toBe(false);
      const hold = await twin.lock();
      await twin.lock({ owner: hold });
      expect(await lock.forceUnlock()).toBe(true);
      expect(await wire.keys()).toEqual([]);
      expect(await lock.forceUnlock()).toBe(false);
      await failure(hold.unlock());
    });

    test("of a lock that another library's process holds", async ({ lock, wire }) => {
      await wire.occupy(2);
      expect(await lock.forceUnlock()).toBe(true);
      expect(await wire.keys()).toEqual([]);
    });

    test("so does one whose grant was on its way [B85]", async ({ lock }) => {
      const taking = lock.lock({ lease: 60_000 });
      const forcing = lock.forceUnlock();
      const giving = Promise.all([taking, forcing]).then(([hold, forced]) => {
        expect(hold.isHeld).toBe(!forced);
        return hold.unlock();
      });
      if (await forcing) expect(await failure(giving)).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      else await giving;
    });

    test("the holder learns `forced` at once, of the same client", async ({ client, lock }) => {
      const events = recordEvents(client);
      const hold = await lock.lock();
      const nested = await lock.lock({ owner: hold });
      expect(await lock.forceUnlock()).toBe(true);
      for (const each of [hold, nested]) {
        await until("it is told", () => each.signal.aborted);
        expect(each.signal.reason).toMatchObject({
          code: "LOCK_LOST",
          reason: "forced",
          lockName: lock.name,
        });
        expect(await failure(each.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      }
      expect(toldBy(lock, "lost", events)).toHaveLength(2);
    });

    test("so does a holder whose unlock or extend meets it on its way [B52]", async ({ lock }) => {
      for (const meet of [(hold: Hold) => hold.unlock(), (hold: Hold) => hold.extend(40_000)]) {
        const hold = await lock.lock();
        const [forced, error] = await Promise.all([lock.forceUnlock(), failure(meet(hold))]);
        expect(forced).toBe(true);
        expect(error).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      }
    });

    test.for([[undefined], [60_000]])(
      "the holder learns `forced` at once, of another client of this process, lease %s [F21]",
      async ([lease], { rivals, lock, twin }) => {
        const events = recordEvents(rivals);
        const hold = await twin.lock({ lease });
        const nested = await twin.lock({ owner: hold, lease });
        expect(await lock.forceUnlock()).toBe(true);
        for (const each of [hold, nested]) {
          expect(each.signal.aborted).toBe(true);
          expect(await failure(each.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
        }
        expect(toldBy(lock, "lost", events)).toHaveLength(2);
      },
    );

    test("the same name in another database is another lock, whose loss is not told as `forced` [B14]", async ({
      server,
      lock,
      lockName,
    }) => {
      const elsewhere = server.connect({ db: 1 });
      await using stranger = new LockClient(connectionLike(elsewhere));
      const [mine, theirs] = [await lock.lock(), await kind.make(stranger, lockName).lock()];
      expect(await lock.forceUnlock()).toBe(true);
      await failure(mine.unlock());
      expect(theirs.isHeld).toBe(true);
      await elsewhere.flushdb();
      expect(await failure(theirs.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    });

    test("is over though Redis does not answer the holder, a client of this process", async ({
      lock,
      through,
    }) => {
      // forceUnlock() waits this long for the answer of the holder's client.
      const { proxy, mine } = await through({ watchdogTimeout: 3_000, commandTimeout: 4_000 });
      const hold = await until("it is taken", () => mine.lock());
      proxy.blackhole();
      expect(await lock.forceUnlock()).toBe(true);
      await until("its deadline is over", () => hold.signal.aborted);
      proxy.restore();
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
    });

    test("wakes waiters", async ({ server, lockName, rival, wire }) => {
      await using patient = new LockClient(connectionLike(server.connect()), {
        ...UNHURRIED,
        pollCap: 60_000,
      });
      const hold = await rival.lock();
      const waiter = await untilWaiting(patient, () => kind.make(patient, lockName).lock());
      const began = performance.now();
      await rival.forceUnlock();
      const mine = await waiter.done;
      expect(performance.now() - began).toBeLessThan(SLACK);
      await failure(hold.unlock());
      expect(mine.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await mine.unlock();
    });
  });

  describe("questions", () => {
    test("isLocked and remainTimeToLive: whoever holds it", async ({ lock, twin }) => {
      expect(await lock.isLocked()).toBe(false);
      expect(await lock.remainTimeToLive()).toBe(-2);
      const hold = await twin.lock({ lease: 10_000 });
      expect(await lock.isLocked()).toBe(true);
      const ttl = await lock.remainTimeToLive();
      expect(ttl).toBeGreaterThan(5_000);
      expect(ttl).toBeLessThanOrEqual(10_000);
      await hold.unlock();
      expect(await lock.isLocked()).toBe(false);
    });

    test("isHeldByCurrentOwner and getHoldCount: the current owner's", async ({ client, lock }) => {
      await client.scope(async () => {
        await lock.lock();
        await lock.lock();
        expect(await lock.isHeldByCurrentOwner()).toBe(true);
        expect(await lock.getHoldCount()).toBe(2);
        await lock.unlock();
        expect(await lock.getHoldCount()).toBe(1);
        await lock.unlock();
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect(await lock.getHoldCount()).toBe(0);
      });
    });

    test("they ask Redis", async ({ client, lock, wire, counter }) => {
      await client.scope(async () => {
        const hold = await lock.lock();
        await counter.reset();
        expect(await lock.isHeldByCurrentOwner()).toBe(true);
        expect(await lock.getHoldCount()).toBe(1);
        await counter.settle();
        expect(counter.all()).toHaveLength(2 * kind.members);
        await wire.wipe();
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect(await lock.getHoldCount()).toBe(0);
        await failure(hold.unlock());
      });
    });

    test("false and 0 without a call for an owner that holds nothing, or no owner", async ({
      client,
      lock,
      other,
      counter,
    }) => {
      const hold = await lock.lock();
      const owner = client.newOwner();
      await counter.reset();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.getHoldCount()).toBe(0);
      expect(await lock.isHeldByCurrentOwner({ owner })).toBe(false);
      expect(await lock.getHoldCount({ owner })).toBe(0);
      await client.scope(async () => {
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect(await lock.getHoldCount()).toBe(0);
      });
      await other.run(async () => {
        await counter.reset();
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        await counter.settle();
        expect(counter.all()).toEqual([]);
      });
      await hold.unlock();
      await counter.reset();
      expect(await lock.getHoldCount({ owner: hold })).toBe(0);
      await counter.settle();
      expect(counter.all()).toEqual([]);
    });

    test("the same without a call before the first use of a client", async ({ server, lockName }) => {
      const fresh = new LockClient(server.connect({ lazyConnect: true }));
      expect(await kind.make(fresh, lockName).isHeldByCurrentOwner()).toBe(false);
      expect(await kind.make(fresh, lockName).getHoldCount()).toBe(0);
      await fresh.close();
    });

    test("without an answer they reject UNAVAILABLE", async ({ other, through }) => {
      const { proxy, client, mine } = await through({ commandTimeout: 600 });
      const hold = await until("it is taken", () => mine.lock({ lease: 60_000 }));
      proxy.blackhole();
      const calls = [
        () => mine.isLocked(),
        () => mine.remainTimeToLive(),
        () => kind.make(client, other.name).forceUnlock(), // its outcome is unknown, because Redis may still execute it
        () => mine.getHoldCount({ owner: hold }),
        () => mine.isHeldByCurrentOwner({ owner: hold }),
      ];
      for (const call of calls) expect(await failure(call())).toMatchObject({ code: "UNAVAILABLE" });
      const released = nextEvent(client, "released");
      proxy.restore();
      await until("Redis answers", () => hold.unlock().then(() => true));
      await released;
    });
  });
});
