/** Contract section 3: what `client.scope` makes one owner, and which hold `lock.unlock()` gives back inside it. */
import { expect } from "vitest";
import type { Owner } from "../../src/index.js";
import { failure, type Kind, ORDERS, PLAIN, row, SINGLE, watch } from "../support/place/index.js";

/** The owner of a scope, a run or a timer does not depend on the kind: rows of the context itself need only one. */
const ONE: readonly Kind[] = [PLAIN];

row(
  "a scope resolves with what its function returns, and rejects with what it throws [§3 scope]",
  { kinds: ONE },
  async ({ client }) => {
    expect(await client.scope(async () => 5)).toBe(5);
    expect(await client.scope(() => "sync")).toBe("sync");
    const error = new Error("mine");
    const throws = () => {
      throw error;
    };
    expect(await failure(client.scope(throws))).toBe(error);
    expect(await failure(client.scope(() => Promise.reject(error)))).toBe(error);
    expect(await failure(client.newOwner().scope(throws))).toBe(error);
  },
);

row("a scope gives its owner to its function [§3 scope]", { kinds: ONE }, async ({ client, lock }) => {
  const take = async (owner: Owner) => {
    await lock.lock();
    return owner;
  };
  const owner = await client.scope(take as never as () => Promise<Owner>);
  expect(await lock.getHoldCount({ owner })).toBe(1);
  await lock.unlock({ owner });
});

row.real(
  "all that a scope awaits acts for one owner, which re-enters, and each unlock() gives one hold back [§3 scope]",
  async ({ client, lock, twin, excluded }) => {
    await client.scope(async () => {
      const first = await lock.lock();
      const helper = async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return lock.tryLock();
      };
      expect((await helper())?.ownerId).toBe(first.ownerId);
      expect((await lock.lock()).ownerId).toBe(first.ownerId);
      for (const left of [3, 2, 1]) {
        expect(await lock.getHoldCount()).toBe(left);
        expect(await twin.isLocked()).toBe(true);
        await lock.unlock();
      }
      expect(await lock.getHoldCount()).toBe(0);
    });
    const free = await excluded.tryLock();
    expect(free).not.toBeNull();
    await free?.unlock();
  },
);

row(
  "what begins only when it is awaited acts for the scope or run that returned it [§3 scope] [B90]",
  async ({ client, lock }) => {
    const lazy = (work: () => Promise<unknown>): Promise<unknown> => {
      // biome-ignore lint/suspicious/noThenProperty: a query that is sent when it is awaited has one
      const query = { then: (resolve: (done: Promise<unknown>) => void) => resolve(work()) };
      return query as PromiseLike<unknown> as Promise<unknown>;
    };
    await client.scope(() => lazy(() => lock.lock().then(() => lock.unlock())));
    const nested = await lock.run(() => lazy(() => lock.tryLock()));
    expect(nested).toMatchObject({ isHeld: true });
    await (nested as { unlock(): Promise<void> }).unlock();
  },
);

row.real(
  "Redisson's idiom works unchanged inside a scope [§3 scope]",
  async ({ client, lock, rival, twin }) => {
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
    expect(await twin.isLocked()).toBe(false);
    const theirs = await rival.lock();
    await client.scope(async () => {
      expect(await lock.tryLock()).toBeNull();
      worked.push("not two");
    });
    await theirs.unlock();
    await client.scope(() => task("three"));
    expect(worked).toEqual(["one", "not two", "three"]);
  },
);

row("two scopes at one time are two owners [§3 scope]", async ({ client, lock }) => {
  const task = async () => {
    const hold = await lock.lock();
    expect(await lock.getHoldCount()).toBe(1);
    await lock.unlock();
    return hold.ownerId;
  };
  const ids = await Promise.all([client.scope(task), client.scope(task)]);
  expect(new Set(ids).size).toBe(2);
});

row.real(
  "unlock() in a scope gives back the innermost hold that lock() or tryLock() took there on that lock [§3 scope-unlock]",
  async ({ client, lock, other }) => {
    await client.scope(async () => {
      const holds = [
        await lock.lock(),
        await lock.tryLock(),
        await lock.lock(),
        await lock.tryLock(0, 20_000),
      ];
      const elsewhere = await other.lock();
      const held = () => holds.map((hold) => hold?.isHeld);
      await holds[1]?.unlock();
      await lock.unlock();
      expect(held()).toEqual([true, false, true, false]);
      await lock.unlock();
      expect(held()).toEqual([true, false, false, false]);
      await holds[0]?.unlock();
      expect(elsewhere.isHeld).toBe(true);
      const error = await failure(lock.unlock());
      expect(error).toMatchObject({ code: "NOT_OWNER", lockName: lock.name });
      expect(error.message).toContain("nothing to unlock");
      await other.unlock();
    });
  },
);

row(
  "a Hold that lock.unlock() gave back shares its outcome, and cannot be extended [§3 scope-unlock]",
  async ({ client, lock }) => {
    await client.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.lock();
      await lock.unlock();
      await inner.unlock();
      await inner[Symbol.asyncDispose]();
      expect(await failure(inner.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
      expect(outer.isHeld).toBe(true);
      await lock.unlock();
      await outer.unlock();
    });
  },
);

row(
  "unlock() in a scope passes over holds of runs, inside and outside of them [§3 scope-unlock]",
  async ({ client, lock, twin }) => {
    await client.scope(async () => {
      const bare = await lock.lock();
      await lock.run(async (hold) => {
        await lock.unlock();
        expect([bare.isHeld, hold.isHeld]).toEqual([false, true]);
        const error = await failure(lock.unlock());
        expect(error).toMatchObject({ code: "NOT_OWNER", lockName: lock.name });
        expect(error.message).toContain("A run() gives its hold back by itself");
        const inside = await lock.lock();
        expect(await lock.run((nested) => nested.isHeld)).toBe(true);
        await lock.unlock();
        expect([inside.isHeld, hold.isHeld]).toEqual([false, true]);
      });
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(await twin.isLocked()).toBe(false);
    });
  },
);

row(
  "unlock() reaches no hold of an enclosing scope, and none that a bare call outside took [§3 scope-unlock]",
  async ({ client, lock, other }) => {
    const outside = await other.lock();
    await client.scope(async () => {
      const outer = await lock.lock();
      await client.scope(async () => {
        expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: lock.name });
        expect(await failure(other.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: other.name });
      });
      expect(outer.isHeld).toBe(true);
      await lock.unlock();
    });
    expect(outside.isHeld).toBe(true);
    await outside.unlock();
  },
);

const UNDER_WAY = "still under way; await it before unlock()";

row(
  "unlock() does not reach a lock() that is still under way, and says so [§3 scope-unlock]",
  { kinds: SINGLE },
  async ({ client, lock, rival, settle }) => {
    await client.scope(async () => {
      for (const call of [() => lock.lock(), () => lock.tryLock()]) {
        const taken = call();
        expect((await failure(lock.unlock())).message).toContain(UNDER_WAY);
        expect((await taken)?.isHeld).toBe(true);
        await lock.unlock();
      }
      const theirs = await rival.lock();
      const waiting = watch(lock.lock());
      await settle();
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: lock.name });
      expect((await failure(lock.unlock())).message).toContain(UNDER_WAY);
      await theirs.unlock();
      await settle();
      expect(waiting.state).toBe("resolved");
      await lock.unlock();
      expect((await failure(lock.unlock())).message).not.toContain("under way");
    });
  },
);

for (const order of ORDERS)
  row(
    `unlock() knows no lock() that has ended, aborted in the order ${order} [§3 scope-unlock]`,
    { kinds: SINGLE },
    async ({ client, lock, rival, settle }) => {
      const theirs = await rival.lock();
      await client.scope(async () => {
        const controllers = [0, 1, 2].map(() => new AbortController());
        const calls = controllers.map(({ signal }) => watch(lock.lock({ signal })));
        await settle();
        for (const which of order) {
          expect((await failure(lock.unlock())).message).toContain(UNDER_WAY);
          controllers[which]?.abort(which);
          await settle();
        }
        expect(calls.map(({ outcome }) => outcome)).toEqual([0, 1, 2]);
        expect((await failure(lock.unlock())).message).toContain("nothing to unlock");
      });
      await theirs.unlock();
    },
  );

row.real(
  "a scope inside a scope or a run is a new owner, which holds nothing and is kept out [§3 scope-in-scope]",
  async ({ client, lock, excluded }) => {
    const isKeptOut = () =>
      client.scope(async () => {
        expect(await excluded.tryLock()).toBeNull();
        expect(await lock.getHoldCount()).toBe(0);
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect((await failure(lock.unlock())).message).toContain("nothing to unlock");
      });
    await client.scope(async () => {
      await lock.lock();
      await isKeptOut();
      expect(await lock.getHoldCount()).toBe(1);
      await lock.unlock();
    });
    await lock.run(async () => {
      await client.scope(async () => expect(await excluded.tryLock()).toBeNull());
      expect(await lock.getHoldCount()).toBe(1);
    });
  },
);

row(
  "a fork gets the lock when its task gives it back, and one that the task awaits ends by its wait [§3 scope-in-scope]",
  async ({ client, lock, excluded, pass }) => {
    await client.scope(async () => {
      const outer = await lock.lock();
      const stuck = watch(client.scope(() => excluded.lock({ wait: 500 })));
      await pass(500);
      expect(stuck.error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: excluded.name });
      const fork = client.scope(async () => {
        const hold = await excluded.lock();
        await excluded.unlock();
        return hold.ownerId;
      });
      await outer.unlock();
      await pass(100);
      expect(await fork).not.toBe(outer.ownerId);
    });
  },
);
