/** Contract section 3, client.scope and explicit owners: one test for each sentence. */

import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient } from "../../src/index.js";
import { type RedisServer, startRedis } from "../support/index.js";
import { countOf, failure } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;
let other: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock("a");
  other = client.getLock("b");
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const NOT_OWNER = { code: "NOT_OWNER", lockName: "a" };

describe("client.scope(fn)", () => {
  test("resolves with what fn returns, rejects with what it throws", async () => {
    expect(await client.scope(async () => 5)).toBe(5);
    expect(await client.scope(() => "sync")).toBe("sync");
    const error = new Error("mine");
    expect(await failure(client.scope(() => Promise.reject(error)))).toBe(error);
    expect(
      await failure(
        client.scope(() => {
          throw error;
        }),
      ),
    ).toBe(error);
  });

  test("fn and all it awaits act for one owner, as one Java thread would", async () => {
    const helper = async (): Promise<Hold> => {
      await sleep(1);
      return lock.lock({ wait: 2_000 });
    };
    await client.scope(async () => {
      const first = await lock.lock();
      const second = await helper();
      await new Promise<void>((resolve) => setTimeout(resolve, 1));
      expect(second.ownerId).toBe(first.ownerId);
      expect(await lock.getHoldCount()).toBe(2);
      await lock.unlock();
      await lock.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("lock.lock() twice re-enters", async () => {
    await client.scope(async () => {
      await lock.lock();
      await lock.lock({ wait: 2_000 });
      expect(await countOf(server, "a")).toBe(2);
      expect((await lock.tryLock())?.isHeld).toBe(true);
      expect(await countOf(server, "a")).toBe(3);
      for (let left = 2; left >= 0; left--) {
        await lock.unlock();
        expect(await countOf(server, "a")).toBe(left);
      }
    });
  });

  test("lock.unlock() gives back the innermost hold that this scope took on that lock", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const second = await lock.lock();
      const third = await lock.tryLock();
      const elsewhere = await other.lock();
      await lock.unlock();
      expect([first, second, third].map((hold) => hold?.isHeld)).toEqual([true, true, false]);
      await lock.unlock();
      expect([first, second].map((hold) => hold.isHeld)).toEqual([true, false]);
      await lock.unlock();
      expect(first.isHeld).toBe(false);
      expect(elsewhere.isHeld).toBe(true);
      expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
      await other.unlock();
    });
  });

  test("passing over one that its own Hold gave back already", async () => {
    await client.scope(async () => {
      const first = await lock.lock();
      const second = await lock.lock();
      await second.unlock();
      await lock.unlock();
      expect(first.isHeld).toBe(false);
      expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("never one of a run: then NOT_OWNER", async () => {
    await client.scope(async () => {
      await lock.run(async (hold) => {
        expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
        expect(hold.isHeld).toBe(true);
        expect(await countOf(server, "a")).toBe(1);
      });
    });
  });

  test("also a bare hold that is further out than the run is given back, and not the run's", async () => {
    await client.scope(async () => {
      const bare = await lock.lock();
      await lock.run(async (hold) => {
        await lock.unlock();
        expect([bare.isHeld, hold.isHeld]).toEqual([false, true]);
        expect(await countOf(server, "a")).toBe(1);
      });
      expect(await redis.exists("a")).toBe(0);
    });
  });

  test("never a hold of another owner, of an enclosing scope or of nobody's", async () => {
    const outside = await other.lock();
    await client.scope(async () => {
      const outer = await lock.lock();
      await client.scope(async () => {
        expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
        expect(await failure(other.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: "b" });
      });
      expect(outer.isHeld).toBe(true);
      await lock.unlock();
    });
    expect(outside.isHeld).toBe(true);
    await outside.unlock();
  });

  test("a Hold that lock.unlock() gave back answers its own unlock() with NOT_OWNER", async () => {
    await client.scope(async () => {
      const hold = await lock.lock();
      const outer = hold;
      const inner = await lock.lock();
      await lock.unlock();
      expect(await failure(inner.unlock())).toMatchObject(NOT_OWNER);
      expect(await failure(inner[Symbol.asyncDispose]())).toMatchObject(NOT_OWNER);
      expect(await failure(inner.extend(1_000))).toMatchObject(NOT_OWNER);
      expect(outer.isHeld).toBe(true);
      expect(await countOf(server, "a")).toBe(1);
      await lock.unlock();
      expect(await failure(outer.unlock())).toMatchObject(NOT_OWNER);
    });
  });

  test("one scope is one task: parallel bare calls of a scope are the same owner's", async () => {
    await client.scope(async () => {
      const holds = await Promise.all([lock.lock(), lock.lock(), lock.tryLock(2_000), lock.lock()]);
      expect(new Set(holds.map((hold) => hold?.ownerId)).size).toBe(1);
      expect(await countOf(server, "a")).toBe(4);
      await Promise.all([lock.unlock(), lock.unlock(), lock.unlock(), lock.unlock()]);
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("Redisson's idiom works unchanged inside a scope", async () => {
    const worked: string[] = [];
    const task = async (name: string) => {
      if (await lock.tryLock(500, 10_000))
        try {
          worked.push(name);
          expect(await lock.isHeldByCurrentOwner()).toBe(true);
        } finally {
          await lock.unlock();
        }
      else worked.push(`not ${name}`);
    };
    await client.scope(() => task("one"));
    expect(await redis.exists("a")).toBe(0);
    const hold = await lock.lock();
    await client.scope(() => task("two"));
    expect(await countOf(server, "a")).toBe(1);
    await hold.unlock();
    expect(worked).toEqual(["one", "not two"]);
  });

  test("two scopes at a time are two owners", async () => {
    const ids = await Promise.all(
      [1, 2].map(() =>
        client.scope(async () => {
          const hold = await lock.lock();
          expect(await countOf(server, "a")).toBe(1);
          await lock.unlock();
          return hold.ownerId;
        }),
      ),
    );
    expect(new Set(ids).size).toBe(2);
  });
});

describe("client.scope inside a scope is a new owner", () => {
  test("it does not re-enter, and its unlock does not touch the outer hold", async () => {
    await client.scope(async () => {
      const outer = await lock.lock();
      await client.scope(async () => {
        expect(await lock.tryLock()).toBeNull();
        expect(await lock.getHoldCount()).toBe(0);
      });
      expect(await lock.getHoldCount()).toBe(1);
      await outer.unlock();
    });
  });

  test("inside a run it does not re-enter either", async () => {
    await lock.run(async () => {
      await client.scope(async () => expect(await lock.tryLock()).toBeNull());
      expect(await lock.getHoldCount()).toBe(1);
    });
  });

  test("that is how a task forks work: the fork gets the lock when the task gives it back", async () => {
    await client.scope(async () => {
      const outer = await lock.lock();
      const fork = client.scope(async () => {
        const hold = await lock.lock();
        await lock.unlock();
        return hold.ownerId;
      });
      await outer.unlock();
      expect(await fork).not.toBe(outer.ownerId);
    });
  });

  test("awaiting a fork that needs what one holds ends by its wait", async () => {
    await client.scope(async () => {
      await lock.lock();
      const error = await failure(client.scope(() => lock.lock({ wait: 50 })));
      expect(error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: "a" });
      await lock.unlock();
    });
  });
});

describe("options.owner overrides the ambient one", () => {
  test("an Owner", async () => {
    const owner = client.newOwner();
    await client.scope(async () => {
      const hold = await lock.lock({ owner });
      expect(await lock.tryLock()).toBeNull();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.isHeldByCurrentOwner({ owner })).toBe(true);
      expect(await lock.getHoldCount({ owner })).toBe(1);
      expect((await lock.tryLock(0, 5_000, { owner }))?.ownerId).toBe(hold.ownerId);
      expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
      await lock.unlock({ owner });
      await lock.unlock({ owner });
      expect(await failure(lock.unlock({ owner }))).toMatchObject(NOT_OWNER);
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("a Hold: same owner, also after its unlock", async () => {
    const hold = await lock.lock();
    await hold.unlock();
    const second = await lock.lock({ owner: hold });
    const third = await lock.lock({ owner: hold, wait: 2_000 });
    expect(third.ownerId).toBe(second.ownerId);
    expect(second.ownerId).not.toBe(hold.ownerId);
    await lock.unlock({ owner: hold });
    await lock.unlock({ owner: second });
    expect(await redis.exists("a")).toBe(0);
  });

  test("a Hold of a run, and of another lock", async () => {
    await lock.run(async (hold) => {
      const b = await other.lock({ owner: hold });
      expect((await other.lock({ owner: hold, wait: 2_000 })).ownerId).toBe(b.ownerId);
      await client.scope(async () => {
        const nested = await lock.lock({ owner: hold, wait: 2_000 });
        expect(nested.ownerId).toBe(hold.ownerId);
        await nested.unlock();
      });
      await other.unlock({ owner: b });
      await other.unlock({ owner: b });
    });
  });

  test("an Owner's scope makes it the ambient one", async () => {
    const owner = client.newOwner();
    await owner.scope(async () => {
      await lock.lock();
      await owner.scope(() => lock.lock({ wait: 2_000 }));
      expect(await lock.getHoldCount()).toBe(2);
      await lock.unlock();
    });
    await lock.unlock({ owner });
    expect(await redis.exists("a")).toBe(0);
  });

  test("run with owner makes it the ambient owner for fn", async () => {
    const owner = client.newOwner();
    await client.scope(async () => {
      const hold = await other.lock({ owner });
      await lock.run(
        async (mine) => {
          expect((await other.lock({ wait: 2_000 })).ownerId).toBe(hold.ownerId);
          await other.unlock();
          expect(await other.getHoldCount()).toBe(1);
          const nested = await lock.lock({ wait: 2_000 });
          expect(nested.ownerId).toBe(mine.ownerId);
          await lock.unlock();
          expect(await failure(lock.unlock())).toMatchObject(NOT_OWNER);
        },
        { owner },
      );
      expect(await other.getHoldCount()).toBe(0); // the scope is back
      await hold.unlock();
    });
  });

  test("run with the owner of a Hold re-enters that hold", async () => {
    const hold = await lock.lock();
    const seen = await lock.run((nested) => nested.ownerId, { owner: hold, wait: 2_000 });
    expect(seen).toBe(hold.ownerId);
    expect(hold.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await hold.unlock();
  });
});
