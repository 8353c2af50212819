/** Contract section 3, client.scope and explicit owners: one test for each sentence. */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { SLACK } from "../support/index.js";
import { failure, notOwner } from "./helpers.js";
import { eachKind, eachSingleKind } from "./scene.js";

eachKind("client.scope and explicit owners", (test) => {
  describe("client.scope(fn)", () => {
    test("resolves with what fn returns, rejects with what it throws", async ({ client }) => {
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

    test("what begins only when it is awaited acts for that owner, too [B90]", async ({ client, lock }) => {
      const lazy = (work: () => Promise<unknown>): Promise<unknown> => {
        // biome-ignore lint/suspicious/noThenProperty: a query that is sent when it is awaited has one
        const query = { then: (resolve: (done: Promise<unknown>) => void) => resolve(work()) };
        return query as PromiseLike<unknown> as Promise<unknown>;
      };
      await client.scope(() => lazy(() => lock.lock().then(() => lock.unlock())));
      const nested = await lock.run(() => lazy(() => lock.tryLock()));
      expect(nested).not.toBeNull();
    });

    test("fn and all it awaits act for one owner, as one Java thread would", async ({
      client,
      lock,
      wire,
    }) => {
      const helper = async (): Promise<Hold> => {
        await sleep(1);
        return lock.lock({ wait: SLACK });
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
      expect(await wire.keys()).toEqual([]);
    });

    test("lock.lock() twice re-enters", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        await lock.lock();
        await lock.lock({ wait: SLACK });
        expect(await wire.count()).toBe(2);
        expect((await lock.tryLock())?.isHeld).toBe(true);
        expect(await wire.count()).toBe(3);
        for (let left = 2; left >= 0; left--) {
          await lock.unlock();
          expect(await wire.count()).toBe(left);
        }
      });
    });

    test("lock.unlock() gives back the innermost hold that this scope took on that lock", async ({
      client,
      lock,
      other,
    }) => {
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
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
        await other.unlock();
      });
    });

    test("passing over one that its own Hold gave back already", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const second = await lock.lock();
        await second.unlock();
        await lock.unlock();
        expect(first.isHeld).toBe(false);
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("never one of a run: then NOT_OWNER", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        await lock.run(async (hold) => {
          expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
          expect(hold.isHeld).toBe(true);
          expect(await wire.count()).toBe(1);
        });
      });
    });

    test("also a bare hold that is further out than the run is given back, and not the run's", async ({
      client,
      lock,
      wire,
    }) => {
      await client.scope(async () => {
        const bare = await lock.lock();
        await lock.run(async (hold) => {
          await lock.unlock();
          expect([bare.isHeld, hold.isHeld]).toEqual([false, true]);
          expect(await wire.count()).toBe(1);
        });
        expect(await wire.keys()).toEqual([]);
      });
    });

    test("never a hold of another owner, of an enclosing scope or of nobody's", async ({
      client,
      lock,
      other,
    }) => {
      const outside = await other.lock();
      await client.scope(async () => {
        const outer = await lock.lock();
        await client.scope(async () => {
          expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
          expect(await failure(other.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: other.name });
        });
        expect(outer.isHeld).toBe(true);
        await lock.unlock();
      });
      expect(outside.isHeld).toBe(true);
      await outside.unlock();
    });

    test("a Hold that lock.unlock() gave back answers its own unlock() with NOT_OWNER", async ({
      client,
      lock,
      wire,
    }) => {
      await client.scope(async () => {
        const hold = await lock.lock();
        const outer = hold;
        const inner = await lock.lock();
        await lock.unlock();
        expect(await failure(inner.unlock())).toMatchObject(notOwner(lock));
        expect(await failure(inner[Symbol.asyncDispose]())).toMatchObject(notOwner(lock));
        expect(await failure(inner.extend(1_000))).toMatchObject(notOwner(lock));
        expect(outer.isHeld).toBe(true);
        expect(await wire.count()).toBe(1);
        await lock.unlock();
        expect(await failure(outer.unlock())).toMatchObject(notOwner(lock));
      });
    });

    test("one scope is one task: parallel bare calls of a scope are the same owner's", async ({
      client,
      lock,
      wire,
    }) => {
      await client.scope(async () => {
        const holds = await Promise.all([lock.lock(), lock.lock(), lock.tryLock(SLACK), lock.lock()]);
        expect(new Set(holds.map((hold) => hold?.ownerId)).size).toBe(1);
        expect(await wire.count()).toBe(4);
        await Promise.all([lock.unlock(), lock.unlock(), lock.unlock(), lock.unlock()]);
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("Redisson's idiom works unchanged inside a scope", async ({ client, lock, rival, wire }) => {
      const worked: string[] = [];
      const task = async (name: string) => {
        if (await lock.tryLock(2_500, 30_000))
          try {
            worked.push(name);
            expect(await lock.isHeldByCurrentOwner()).toBe(true);
          } finally {
            await lock.unlock();
          }
        else worked.push(`not ${name}`);
      };
      await client.scope(() => task("one"));
      expect(await wire.keys()).toEqual([]);
      const hold = await rival.lock();
      await client.scope(() => task("two"));
      expect(await wire.count()).toBe(1);
      await hold.unlock();
      expect(worked).toEqual(["one", "not two"]);
    });

    test("two scopes at a time are two owners", async ({ client, lock }) => {
      const ids = await Promise.all(
        [1, 2].map(() =>
          client.scope(async () => {
            const hold = await lock.lock();
            expect(await lock.getHoldCount()).toBe(1);
            await lock.unlock();
            return hold.ownerId;
          }),
        ),
      );
      expect(new Set(ids).size).toBe(2);
    });
  });

  describe("client.scope inside a scope is a new owner", () => {
    test("it does not re-enter, and its unlock does not touch the outer hold", async ({
      client,
      lock,
      excluded,
    }) => {
      await client.scope(async () => {
        const outer = await lock.lock();
        await client.scope(async () => {
          expect(await excluded.tryLock()).toBeNull();
          expect(await lock.getHoldCount()).toBe(0);
        });
        expect(await lock.getHoldCount()).toBe(1);
        await outer.unlock();
      });
    });

    test("inside a run it does not re-enter either", async ({ client, lock, excluded }) => {
      await lock.run(async () => {
        await client.scope(async () => expect(await excluded.tryLock()).toBeNull());
        expect(await lock.getHoldCount()).toBe(1);
      });
    });

    test("that is how a task forks work: the fork gets the lock when the task gives it back", async ({
      client,
      lock,
      excluded,
    }) => {
      await client.scope(async () => {
        const outer = await lock.lock();
        const fork = client.scope(async () => {
          const hold = await excluded.lock();
          await excluded.unlock();
          return hold.ownerId;
        });
        await outer.unlock();
        expect(await fork).not.toBe(outer.ownerId);
      });
    });

    test("awaiting a fork that needs what one holds ends by its wait", async ({ client, lock, excluded }) => {
      await client.scope(async () => {
        await lock.lock();
        const error = await failure(client.scope(() => excluded.lock({ wait: 2_500 })));
        expect(error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: lock.name });
        await lock.unlock();
      });
    });
  });

  describe("options.owner overrides the ambient one", () => {
    test("an Owner", async ({ client, lock, excluded, wire }) => {
      const owner = client.newOwner();
      await client.scope(async () => {
        const hold = await lock.lock({ owner });
        expect(await excluded.tryLock()).toBeNull();
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect(await lock.isHeldByCurrentOwner({ owner })).toBe(true);
        expect(await lock.getHoldCount({ owner })).toBe(1);
        expect((await lock.tryLock(0, 5_000, { owner }))?.ownerId).toBe(hold.ownerId);
        expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
        await lock.unlock({ owner });
        await lock.unlock({ owner });
        expect(await failure(lock.unlock({ owner }))).toMatchObject(notOwner(lock));
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("a Hold: same owner, also after its unlock", async ({ lock, wire }) => {
      const hold = await lock.lock();
      await hold.unlock();
      const second = await lock.lock({ owner: hold });
      const third = await lock.lock({ owner: hold, wait: SLACK });
      expect(third.ownerId).toBe(second.ownerId);
      expect(second.ownerId).not.toBe(hold.ownerId);
      await lock.unlock({ owner: hold });
      await lock.unlock({ owner: second });
      expect(await wire.keys()).toEqual([]);
    });

    test("a Hold of a run, and of another lock", async ({ client, lock, other }) => {
      await lock.run(async (hold) => {
        const b = await other.lock({ owner: hold });
        expect((await other.lock({ owner: hold, wait: SLACK })).ownerId).toBe(b.ownerId);
        await client.scope(async () => {
          const nested = await lock.lock({ owner: hold, wait: SLACK });
          expect(nested.ownerId).toBe(hold.ownerId);
          await nested.unlock();
        });
        await other.unlock({ owner: b });
        await other.unlock({ owner: b });
      });
    });

    test("an Owner's scope makes it the ambient one", async ({ client, lock, wire }) => {
      const owner = client.newOwner();
      await owner.scope(async () => {
        await lock.lock();
        await owner.scope(() => lock.lock({ wait: SLACK }));
        expect(await lock.getHoldCount()).toBe(2);
        await lock.unlock();
      });
      await lock.unlock({ owner });
      expect(await wire.keys()).toEqual([]);
    });

    test("run with owner makes it the ambient owner for fn", async ({ client, lock, other }) => {
      const owner = client.newOwner();
      await client.scope(async () => {
        const hold = await other.lock({ owner });
        await lock.run(
          async (mine) => {
            expect((await other.lock({ wait: SLACK })).ownerId).toBe(hold.ownerId);
            await other.unlock();
            expect(await other.getHoldCount()).toBe(1);
            const nested = await lock.lock({ wait: SLACK });
            expect(nested.ownerId).toBe(mine.ownerId);
            await lock.unlock();
            expect(await failure(lock.unlock())).toMatchObject(notOwner(lock));
          },
          { owner },
        );
        expect(await other.getHoldCount()).toBe(0); // the scope's owner is the current one again
        await hold.unlock();
      });
    });

    test("run with the owner of a Hold re-enters that hold", async ({ lock, wire }) => {
      const hold = await lock.lock();
      const seen = await lock.run((nested) => nested.ownerId, { owner: hold, wait: SLACK });
      expect(seen).toBe(hold.ownerId);
      expect(hold.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await hold.unlock();
    });
  });
});

eachSingleKind("unlock() beside a lock() that is under way", (test) => {
  test("NOT_OWNER says that a lock() called just before it is to be awaited; its hold stays", async ({
    client,
    lock,
    wire,
  }) => {
    await client.scope(async () => {
      for (const call of [() => lock.lock(), () => lock.tryLock()]) {
        const taken = call();
        const error = await failure(lock.unlock());
        expect(error).toMatchObject(notOwner(lock));
        expect((error as Error).message).toContain("is still under way; await it before unlock()");
        expect((await taken)?.isHeld).toBe(true);
        await lock.unlock();
      }
      expect(((await failure(lock.unlock())) as Error).message).not.toContain("under way");
    });
    expect(await wire.keys()).toEqual([]);
  });

  test("lock.unlock() does not wait for a lock() that waits for others: NOT_OWNER says so", async ({
    client,
    lock,
    rival,
    wire,
  }) => {
    const theirs = await rival.lock();
    await client.scope(async () => {
      const waiting = lock.lock();
      const error = await failure(lock.unlock());
      expect(error).toMatchObject(notOwner(lock));
      expect((error as Error).message).toContain("is still under way; await it before unlock()");
      await theirs.unlock();
      const hold = await waiting;
      expect(hold.isHeld).toBe(true);
      await lock.unlock();
    });
    expect(await wire.keys()).toEqual([]);
  });
});
