/** Contract section 3, introduction and bare calls: one test for each sentence. */
import { describe, expect } from "vitest";
import type { Lock } from "../../src/index.js";
import { SLACK } from "../support/index.js";
import { failure, isBuilt, loadCjs, loadEsm, notOwner } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("owners and bare calls", (test, kind) => {
  const WIRE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:\d+$/;

  describe("ownership follows the async context", () => {
    test("never the process: a task of the same process that is in no scope does not re-enter", async ({
      client,
      lock,
      excluded,
    }) => {
      const hold = await lock.lock();
      expect(await excluded.tryLock()).toBeNull();
      await client.scope(async () => expect(await excluded.tryLock()).toBeNull());
      await hold.unlock();
    });

    test("never the lock object: two getLock of one name of one client re-enter", async ({
      client,
      lockName,
      wire,
    }) => {
      await client.scope(async () => {
        const first = await kind.make(client, lockName).lock();
        const second = await kind.make(client, lockName).lock({ wait: SLACK });
        expect(second.ownerId).toBe(first.ownerId);
        expect(await wire.count()).toBe(2);
        await kind.make(client, lockName).unlock();
        await kind.make(client, lockName).unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("never the client: the same name through another client is somebody else's lock, also inside one scope", async ({
      client,
      lock,
      excluded,
      twin,
      rival,
    }) => {
      await client.scope(async () => {
        const mine = await lock.lock();
        expect(await rival.tryLock()).toBeNull();
        expect(await twin.isHeldByCurrentOwner()).toBe(false);
        expect(await failure(twin.unlock())).toMatchObject({ code: "NOT_OWNER" });
        expect(mine.isHeld).toBe(true);
        await mine.unlock();
        const theirs = await twin.lock();
        expect(theirs.ownerId.split(":")[0]).not.toBe(mine.ownerId.split(":")[0]);
        expect(await excluded.tryLock()).toBeNull();
        await theirs.unlock();
      });
    });

    test("two names are two locks to one owner", async ({ client, lock, other, wire }) => {
      await client.scope(async () => {
        const a = await lock.lock();
        const b = await other.lock();
        expect(await wire.count()).toBe(1);
        expect(await other.getHoldCount()).toBe(1);
        await a.unlock();
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
        await b.unlock();
      });
    });
  });

  describe.skipIf(!isBuilt)("one store for ESM and CJS copies", () => {
    test("a scope that one copy opened is the owner of calls through the others", async ({
      server,
      client,
      lockName,
      other,
      wire,
    }) => {
      const copies = [await loadEsm(), loadCjs()];
      const clients = [client, ...copies.map((copy) => new copy.LockClient(server.connect()))];
      for (const opener of clients) {
        for (const user of clients) {
          const used = kind.make(user, lockName);
          await opener.scope(async () => {
            const outer = await used.lock();
            const inner = await used.lock({ wait: SLACK });
            expect(inner.ownerId).toBe(outer.ownerId);
            await used.unlock();
            await used.unlock();
          });
          expect(await wire.keys()).toEqual([]);
          await kind.make(opener, other.name).run(async () => {
            expect(await failure(used.unlock())).toMatchObject({ code: "NOT_OWNER" });
          });
        }
      }
      await Promise.all(clients.slice(1).map((each) => each.close()));
    });

    test("an Owner or a Hold of one copy is understood by the other", async ({
      server,
      lockName,
      other,
      wire,
    }) => {
      const [esm, cjs] = [await loadEsm(), loadCjs()];
      await using first = new esm.LockClient(server.connect());
      await using second = new cjs.LockClient(server.connect());
      const owner = first.newOwner() as never;
      const used = kind.make(second, lockName);
      const hold = await used.lock({ owner });
      expect((await used.lock({ owner, wait: SLACK })).ownerId).toBe(hold.ownerId);
      const theirs = kind.make(first, other.name);
      const elsewhere = await theirs.lock({ owner: hold as never });
      await theirs.unlock({ owner: hold as never });
      expect(elsewhere.isHeld).toBe(false);
      await used.unlock({ owner });
      await used.unlock({ owner });
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("on the wire a hold is clientId:n", () => {
    test("the client id is laid out as a lower-case UUID v4", async ({ lockName, lock, wire }) => {
      const hold = await lock.lock();
      expect(hold.ownerId).toMatch(WIRE_ID);
      expect(await wire.fields()).toEqual(wire.heldBy(hold.ownerId));
      const keys = await wire.keys();
      expect(keys).toEqual(expect.arrayContaining([lockName, ...kind.beside(lockName, hold.ownerId, 1)]));
      expect(keys).toHaveLength(kind.members + kind.beside(lockName, hold.ownerId, 1).length);
      await hold.unlock();
    });

    test("n is fresh per outermost acquisition, and never used again", async ({
      client,
      lock,
      other,
      wire,
    }) => {
      const ids = new Set<string>();
      await client.scope(async () => {
        for (let i = 0; i < 20; i++) {
          const hold = await lock.lock();
          expect((await lock.lock()).ownerId).toBe(hold.ownerId);
          ids.add(hold.ownerId);
          await lock.unlock();
          await hold.unlock();
        }
        const lost = await lock.lock();
        ids.add(lost.ownerId);
        await wire.wipe();
        await failure(lost.unlock());
        const next = await lock.lock();
        ids.add(next.ownerId);
        await next.unlock();
      });
      const elsewhere = await other.lock();
      ids.add(elsewhere.ownerId);
      await elsewhere.unlock();
      expect(ids.size).toBe(23);
      expect(new Set([...ids].map((id) => id.split(":")[0])).size).toBe(1);
    });
  });

  describe("bare calls", () => {
    test("a new owner each time, given back by its Hold", async ({ lock, excluded, wire }) => {
      const hold = await lock.lock();
      expect(await excluded.tryLock()).toBeNull();
      const waiting = excluded.lock();
      await hold.unlock();
      const second = await waiting;
      expect(second.ownerId).not.toBe(hold.ownerId);
      expect(await lock.tryLock(2_500)).toBeNull();
      await second.unlock();
      const third = await lock.tryLock();
      expect(third?.ownerId).not.toBe(second.ownerId);
      await third?.unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("shared lock objects serve many tasks, one at a time as far as the kind excludes", async ({
      lock,
      excluded,
    }) => {
      const inside: Lock[] = [];
      let overlaps = 0;
      const task = async (mine: Lock) => {
        const hold = await mine.lock();
        inside.push(mine);
        const shared = !kind.exclusive && !inside.includes(excluded);
        if (inside.length > 1 && !shared) overlaps++;
        await new Promise((resolve) => setImmediate(resolve));
        inside.splice(inside.indexOf(mine), 1);
        await hold.unlock();
      };
      await Promise.all(Array.from({ length: 20 }, (_, i) => task(i % 4 === 3 ? excluded : lock)));
      expect(overlaps).toBe(0);
    });

    test("nothing re-enters: no owner holds anything outside a scope", async ({ lock }) => {
      const hold = await lock.lock();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.getHoldCount()).toBe(0);
      await hold.unlock();
    });

    test("except inside fn of a run of that lock", async ({ lock, wire }) => {
      await lock.run(async (outer) => {
        const bare = await lock.lock({ wait: SLACK });
        expect(bare.ownerId).toBe(outer.ownerId);
        expect(await wire.count()).toBe(2);
        expect(await lock.getHoldCount()).toBe(2);
        await bare.unlock();
        expect(await wire.count()).toBe(1);
        const tried = await lock.tryLock();
        expect(tried?.ownerId).toBe(outer.ownerId);
        await tried?.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("not inside fn of a run of another lock", async ({ lock, other, excluded }) => {
      await other.run(async () => {
        const hold = await lock.lock();
        expect(await excluded.tryLock()).toBeNull();
        await hold.unlock();
      });
    });

    test("or with { owner: hold }", async ({ lock, wire }) => {
      const hold = await lock.lock();
      const nested = await lock.lock({ owner: hold, wait: SLACK });
      expect(nested.ownerId).toBe(hold.ownerId);
      expect(await lock.getHoldCount({ owner: hold })).toBe(2);
      expect(await lock.isHeldByCurrentOwner({ owner: nested })).toBe(true);
      const third = await lock.tryLock(0, 5_000, { owner: nested });
      expect(third?.ownerId).toBe(hold.ownerId);
      for (const each of [hold, nested, third]) await each?.unlock();
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("lock.unlock() outside a scope rejects NOT_OWNER, names hold.unlock() and client.scope, and never guesses", () => {
    async function refuses(lock: Lock): Promise<void> {
      const error = await failure(lock.unlock());
      expect(error).toMatchObject({ code: "NOT_OWNER", lockName: lock.name, name: "LockNotOwnerError" });
      expect(error.message).toContain("hold.unlock()");
      expect(error.message).toContain("client.scope");
    }

    test("when nobody holds it", ({ lock }) => refuses(lock));

    test("when there is one bare hold, which stays", async ({ lock, wire }) => {
      const hold = await lock.lock();
      await refuses(lock);
      expect(hold.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await hold.unlock();
    });

    test("inside fn of a run, whose hold and bare hold stay", async ({ lock, wire }) => {
      await lock.run(async (hold) => {
        const bare = await lock.lock();
        await refuses(lock);
        expect(hold.isHeld && bare.isHeld).toBe(true);
        expect(await wire.count()).toBe(2);
        await bare.unlock();
      });
    });
  });
});
