/** Contract section 3, introduction and bare calls: one test for each sentence. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { type RedisServer, startRedis } from "../support/index.js";
import { countOf, failure, isBuilt, loadCjs, loadEsm } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock("a");
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const WIRE_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:\d+$/;

describe("ownership follows the async context", () => {
  test("never the process: a task of the same process that is in no scope does not re-enter", async () => {
    const hold = await lock.lock();
    expect(await lock.tryLock()).toBeNull();
    await client.scope(async () => expect(await lock.tryLock()).toBeNull());
    await hold.unlock();
  });

  test("never the lock object: two getLock of one name of one client re-enter", async () => {
    await client.scope(async () => {
      const first = await client.getLock("a").lock();
      const second = await client.getLock("a").lock({ wait: 2_000 });
      expect(second.ownerId).toBe(first.ownerId);
      expect(await countOf(server, "a")).toBe(2);
      await client.getLock("a").unlock();
      await client.getLock("a").unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("never the client: the same name through another client is somebody else's lock, also inside one scope", async () => {
    await using other = new LockClient(redis);
    await client.scope(async () => {
      const mine = await lock.lock();
      expect(await other.getLock("a").tryLock()).toBeNull();
      expect(await other.getLock("a").isHeldByCurrentOwner()).toBe(false);
      expect(await failure(other.getLock("a").unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(mine.isHeld).toBe(true);
      await mine.unlock();
      const theirs = await other.getLock("a").lock();
      expect(theirs.ownerId.split(":")[0]).not.toBe(mine.ownerId.split(":")[0]);
      expect(await lock.tryLock()).toBeNull();
      await theirs.unlock();
    });
  });

  test("two names are two locks to one owner", async () => {
    await client.scope(async () => {
      const a = await lock.lock();
      const b = await client.getLock("b").lock();
      expect(await countOf(server, "a")).toBe(1);
      expect(await countOf(server, "b")).toBe(1);
      expect(await failure(client.getLock("c").unlock())).toMatchObject({ code: "NOT_OWNER", lockName: "c" });
      await a.unlock();
      await b.unlock();
    });
  });
});

describe.skipIf(!isBuilt)("one store for ESM and CJS copies", () => {
  test("a scope that one copy opened is the owner of calls through the others", async () => {
    const copies = [await loadEsm(), loadCjs()];
    const clients = [client, ...copies.map((copy) => new copy.LockClient(server.connect()))];
    for (const opener of clients) {
      for (const user of clients) {
        const used = user.getLock("shared");
        await opener.scope(async () => {
          const outer = await used.lock();
          const inner = await used.lock({ wait: 2_000 });
          expect(inner.ownerId).toBe(outer.ownerId);
          await used.unlock();
          await used.unlock();
        });
        expect(await redis.exists("shared")).toBe(0);
        await opener.getLock("outer").run(async () => {
          expect(await failure(used.unlock())).toMatchObject({ code: "NOT_OWNER" });
        });
      }
    }
    await Promise.all(clients.slice(1).map((each) => each.close()));
  });

  test("an Owner or a Hold of one copy is understood by the other", async () => {
    const [esm, cjs] = [await loadEsm(), loadCjs()];
    await using first = new esm.LockClient(server.connect());
    await using second = new cjs.LockClient(server.connect());
    const owner = first.newOwner() as never;
    const used = second.getLock("shared");
    const hold = await used.lock({ owner });
    expect((await used.lock({ owner, wait: 2_000 })).ownerId).toBe(hold.ownerId);
    const elsewhere = await first.getLock("other").lock({ owner: hold as never });
    await first.getLock("other").unlock({ owner: hold as never });
    expect(elsewhere.isHeld).toBe(false);
    await used.unlock({ owner });
    await used.unlock({ owner });
    expect(await redis.exists("shared")).toBe(0);
  });
});

describe("on the wire a hold is clientId:n", () => {
  test("the client id is laid out as a lower-case UUID v4", async () => {
    const hold = await lock.lock();
    expect(hold.ownerId).toMatch(WIRE_ID);
    expect(await redis.hgetall("a")).toEqual({ [hold.ownerId]: "1" });
    await hold.unlock();
  });

  test("n is fresh per outermost acquisition, and never used again", async () => {
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
      await redis.del("a");
      await failure(lost.unlock());
      const next = await lock.lock();
      ids.add(next.ownerId);
      await next.unlock();
    });
    const other = await client.getLock("b").lock();
    ids.add(other.ownerId);
    await other.unlock();
    expect(ids.size).toBe(23);
    expect(new Set([...ids].map((id) => id.split(":")[0])).size).toBe(1);
  });
});

describe("bare calls", () => {
  test("a new owner each time, given back by its Hold", async () => {
    const hold = await lock.lock();
    expect(await lock.tryLock()).toBeNull();
    const waiting = lock.lock();
    await hold.unlock();
    const second = await waiting;
    expect(second.ownerId).not.toBe(hold.ownerId);
    expect(await lock.tryLock(50)).toBeNull();
    await second.unlock();
    const third = await lock.tryLock();
    expect(third?.ownerId).not.toBe(second.ownerId);
    await third?.unlock();
    expect(await redis.exists("a")).toBe(0);
  });

  test("a shared lock object serves many tasks, one at a time", async () => {
    let inside = 0;
    let most = 0;
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        const hold = await lock.lock();
        most = Math.max(most, ++inside);
        await new Promise((resolve) => setImmediate(resolve));
        inside--;
        await hold.unlock();
      }),
    );
    expect(most).toBe(1);
  });

  test("nothing re-enters: no owner holds anything outside a scope", async () => {
    const hold = await lock.lock();
    expect(await lock.isHeldByCurrentOwner()).toBe(false);
    expect(await lock.getHoldCount()).toBe(0);
    await hold.unlock();
  });

  test("except inside fn of a run of that lock", async () => {
    await lock.run(async (outer) => {
      const bare = await lock.lock({ wait: 2_000 });
      expect(bare.ownerId).toBe(outer.ownerId);
      expect(await countOf(server, "a")).toBe(2);
      expect(await lock.getHoldCount()).toBe(2);
      await bare.unlock();
      expect(await countOf(server, "a")).toBe(1);
      const tried = await lock.tryLock();
      expect(tried?.ownerId).toBe(outer.ownerId);
      await tried?.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("not inside fn of a run of another lock", async () => {
    await client.getLock("b").run(async () => {
      const hold = await lock.lock();
      expect(await lock.tryLock()).toBeNull();
      await hold.unlock();
    });
  });

  test("also with runs of other locks between", async () => {
    await lock.run(async (outer) => {
      await client.getLock("b").run(async () => {
        const bare = await lock.lock({ wait: 2_000 });
        expect(bare.ownerId).toBe(outer.ownerId);
        await bare.unlock();
      });
    });
  });

  test("or with { owner: hold }", async () => {
    const hold = await lock.lock();
    const nested = await lock.lock({ owner: hold, wait: 2_000 });
    expect(nested.ownerId).toBe(hold.ownerId);
    expect(await lock.getHoldCount({ owner: hold })).toBe(2);
    expect(await lock.isHeldByCurrentOwner({ owner: nested })).toBe(true);
    const third = await lock.tryLock(0, 5_000, { owner: nested });
    expect(third?.ownerId).toBe(hold.ownerId);
    for (const each of [hold, nested, third]) await each?.unlock();
    expect(await redis.exists("a")).toBe(0);
  });
});

describe("lock.unlock() outside a scope rejects NOT_OWNER, names hold.unlock() and client.scope, and never guesses", () => {
  async function refuses(): Promise<void> {
    const error = await failure(lock.unlock());
    expect(error).toMatchObject({ code: "NOT_OWNER", lockName: "a", name: "LockNotOwnerError" });
    expect(error.message).toContain("hold.unlock()");
    expect(error.message).toContain("client.scope");
  }

  test("when nobody holds it", refuses);

  test("when there is one bare hold, which stays", async () => {
    const hold = await lock.lock();
    await refuses();
    expect(hold.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await hold.unlock();
  });

  test("inside fn of a run, whose hold and bare hold stay", async () => {
    await lock.run(async (hold) => {
      const bare = await lock.lock();
      await refuses();
      expect(hold.isHeld && bare.isHeld).toBe(true);
      expect(await countOf(server, "a")).toBe(2);
      await bare.unlock();
    });
  });
});
