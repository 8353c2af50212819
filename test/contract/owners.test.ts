/** Contract section 3: whose call it is outside scopes and runs, the ids of owners, and owners that calls name. */
import { AsyncResource } from "node:async_hooks";
import { expect } from "vitest";
import { Lock, type Owner } from "../../src/index.js";
import { failure, PLAIN, row } from "../support/place/index.js";

row.real(
  "each bare call is a new owner's: it does not re-enter, and only its Hold gives it back [§3 bare-calls]",
  async ({ client, lock, excluded, pass }) => {
    const hold = await lock.lock();
    expect(await excluded.tryLock()).toBeNull();
    expect(await client.scope(() => excluded.tryLock())).toBeNull();
    expect([await lock.isHeldByCurrentOwner(), await lock.getHoldCount()]).toEqual([false, 0]);
    expect(lock.currentHold()).toBeNull();
    const waiting = excluded.lock();
    await hold.unlock();
    await pass(100);
    const second = await waiting;
    expect(second.ownerId).not.toBe(hold.ownerId);
    await second.unlock();
  },
);

row(
  "a bare call re-enters inside a run of that lock, and with a hold that it names as owner [§3 bare-calls]",
  async ({ lock, twin }) => {
    await lock.run(async (outer) => {
      const bare = await lock.lock();
      const tried = await lock.tryLock();
      expect([bare.ownerId, tried?.ownerId]).toEqual([outer.ownerId, outer.ownerId]);
      expect(await lock.getHoldCount()).toBe(3);
      await bare.unlock();
      await tried?.unlock();
      expect(await lock.getHoldCount()).toBe(1);
    });
    const hold = await lock.lock();
    const nested = await lock.lock({ owner: hold });
    const third = await lock.tryLock(0, 5_000, { owner: nested });
    expect([nested.ownerId, third?.ownerId]).toEqual([hold.ownerId, hold.ownerId]);
    expect(await lock.getHoldCount({ owner: hold })).toBe(3);
    expect(await lock.isHeldByCurrentOwner({ owner: nested })).toBe(true);
    for (const each of [hold, nested, third]) await each?.unlock();
    expect(await twin.isLocked()).toBe(false);
  },
);

row(
  "a bare call inside a run of another lock is a stranger's [§3 bare-calls]",
  async ({ lock, other, excluded }) => {
    await other.run(async () => {
      const hold = await lock.lock();
      expect(await excluded.tryLock()).toBeNull();
      expect(await lock.getHoldCount()).toBe(0);
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      await hold.unlock();
    });
  },
);

row(
  "unlock() outside a scope never guesses, and names hold.unlock() and client.scope [§3 bare-unlock]",
  async ({ lock, other }) => {
    const refuses = async () => {
      const error = await failure(lock.unlock());
      expect(error).toMatchObject({ code: "NOT_OWNER", lockName: lock.name, name: "LockNotOwnerError" });
      expect(error.message).toContain("hold.unlock()");
      expect(error.message).toContain("client.scope");
      return error.message;
    };
    await refuses();
    const elsewhere = await other.lock();
    const hold = await lock.lock();
    await refuses();
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await elsewhere.unlock();
    await lock.run(async (mine) => {
      const bare = await lock.lock();
      const text = await refuses();
      expect(text).toContain("A run() gives its hold back by itself");
      expect([mine.isHeld, bare.isHeld]).toEqual([true, true]);
      await bare.unlock();
    });
  },
);

row(
  "two lock objects of one client are one lock, and two names are two [§1 same-lock]",
  async ({ kind, a, lock, other }) => {
    await a.client.scope(async () => {
      const first = await lock.lock();
      const same = kind.make(a.clients, "job");
      expect((await same.tryLock())?.ownerId).toBe(first.ownerId);
      await other.lock();
      expect([await lock.getHoldCount(), await other.getHoldCount()]).toEqual([2, 1]);
      await same.unlock();
      await same.unlock();
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      await other.unlock();
    });
  },
);

row.real(
  "the same name through another client is somebody else's lock, also inside one scope [§1 same-lock]",
  async ({ client, lock, rival, twin, excluded }) => {
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
  },
);

row(
  "each outermost acquisition has an id of its own, the client's and a number, as the server shows it [§2 wire-id-once] [§3 bare-calls]",
  async ({ kind, client, lock, other, view }) => {
    expect(client.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const ids = new Set<string>();
    await client.scope(async () => {
      for (const each of [lock, lock, other, lock]) {
        const hold = await each.lock();
        expect((await each.lock()).ownerId).toBe(hold.ownerId);
        await each.unlock();
        if (each === lock) expect(await view.hash()).toEqual(kind.fields(hold.ownerId, 1));
        await each.unlock();
        ids.add(hold.ownerId);
      }
    });
    expect(ids.size).toBe(4);
    for (const id of ids) expect(id).toMatch(new RegExp(`^${client.id}:\\d+$`));
  },
);

row(
  "a call acts for the Owner that it names, not for the scope around it [§3 owner-option]",
  async ({ client, lock, excluded, twin }) => {
    const owner = client.newOwner();
    await client.scope(async () => {
      const hold = await lock.lock({ owner });
      expect(await excluded.tryLock()).toBeNull();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      expect(await lock.isHeldByCurrentOwner({ owner })).toBe(true);
      expect((await lock.tryLock(0, 5_000, { owner }))?.ownerId).toBe(hold.ownerId);
      expect(await lock.getHoldCount({ owner })).toBe(2);
      for (const stranger of [undefined, client.newOwner()])
        expect(await failure(lock.unlock({ owner: stranger }))).toMatchObject({ code: "NOT_OWNER" });
      await lock.unlock({ owner });
      await lock.unlock({ owner });
      expect(await failure(lock.unlock({ owner }))).toMatchObject({
        code: "NOT_OWNER",
        lockName: lock.name,
      });
    });
    expect(await twin.isLocked()).toBe(false);
  },
);

row("a Hold names its owner, also after its unlock [§3 owner-option]", async ({ lock }) => {
  const hold = await lock.lock();
  await hold.unlock();
  const second = await lock.lock({ owner: hold });
  const third = await lock.lock({ owner: hold });
  expect(third.ownerId).toBe(second.ownerId);
  expect(second.ownerId).not.toBe(hold.ownerId);
  await lock.unlock({ owner: hold });
  expect([second.isHeld, third.isHeld]).toEqual([true, false]);
  await lock.unlock({ owner: second });
  expect(second.isHeld).toBe(false);
});

row(
  "unlock() with a bare Hold as its owner gives that hold back, or tells once that it was lost [§3 owner-option] [§2 lost-unlock-once]",
  async ({ lock }) => {
    const hold = await lock.lock();
    await lock.unlock({ owner: hold });
    expect([hold.isHeld, await lock.isLocked()]).toEqual([false, false]);
    const lost = await lock.lock();
    await lock.forceUnlock();
    expect(await failure(lock.unlock({ owner: lost }))).toMatchObject({
      code: "LOCK_LOST",
      reason: "forced",
    });
    expect(await failure(lock.unlock({ owner: lost }))).toMatchObject({ code: "NOT_OWNER" });
  },
);

row(
  "the scope of an Owner makes it the ambient one, as often as it is opened [§3 owner-option]",
  async ({ client, lock }) => {
    const owner = client.newOwner();
    await owner.scope(async () => {
      const first = await lock.lock();
      const again = await owner.scope(() => lock.tryLock());
      expect(again?.ownerId).toBe(first.ownerId);
      expect(await lock.getHoldCount()).toBe(2);
      await lock.unlock();
    });
    await lock.unlock({ owner });
  },
);

row(
  "a run with an owner re-enters that owner's hold, and makes it ambient for the function alone [§3 owner-option]",
  async ({ client, lock, other }) => {
    const owner = client.newOwner();
    await client.scope(async () => {
      const outer = await lock.lock({ owner });
      const hold = await other.lock({ owner });
      await lock.run(
        async (mine) => {
          expect(mine.ownerId).toBe(outer.ownerId);
          expect((await other.tryLock())?.ownerId).toBe(hold.ownerId);
          await other.unlock();
          expect(await other.getHoldCount()).toBe(1);
          const nested = await lock.tryLock();
          expect(nested?.ownerId).toBe(mine.ownerId);
          await lock.unlock();
        },
        { owner },
      );
      expect([outer.isHeld, await other.getHoldCount()]).toEqual([true, 0]);
      await hold.unlock();
      const seen = await lock.run((nested) => nested.ownerId, { owner: outer });
      expect(seen).toBe(outer.ownerId);
      await outer.unlock();
    });
  },
);

row("locks are made by a client, not by new [§6 arguments]", { kinds: [PLAIN] }, () => {
  const text = "create a lock by client.getLock(name) or the like, not by new";
  for (const made of [undefined, {}]) expect(() => new Lock(made as never)).toThrow(new TypeError(text));
});

row(
  "with explicit reentrancy only { owner } re-enters, and scope and run hand the owner to their function [§1 reentrancy-explicit] [B300]",
  { client: { reentrancy: "explicit" } },
  async ({ client, lock, excluded }) => {
    // What runs here has lost the async context.
    const queue = new AsyncResource("queue");
    const act = async (owner: Owner) => {
      const outer = await lock.lock({ owner });
      expect(await excluded.tryLock()).toBeNull();
      expect((await lock.tryLock(0, undefined, { owner }))?.ownerId).toBe(outer.ownerId);
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      for (let i = 0; i < 2; i++) await lock.unlock({ owner });
    };
    await client.scope(act);
    await lock.run(async (hold) => {
      expect(await excluded.tryLock()).toBeNull();
      expect(await lock.run((nested) => nested.ownerId, { owner: hold })).toBe(hold.ownerId);
      const nested = () => lock.run(({ ownerId }) => ownerId, { owner: hold, wait: 0 });
      expect(await queue.runInAsyncScope(nested)).toBe(hold.ownerId);
    });
  },
);
