/** Contract section 3, last sentence: calls of one owner on one lock count in call order, and none waits for another's answer. */
import { expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { row, watch } from "../support/place/index.js";

row.real(
  "a second lock() while the first still waits re-enters as soon as one of them is granted [§3 second-while-first-waits]",
  async ({ client, lock, rival, twin, pass }) => {
    const theirs = await rival.lock();
    await client.scope(async () => {
      const calls = [watch(lock.lock()), watch(lock.lock()), watch(lock.tryLock(60_000))];
      const run = watch(lock.run((hold) => hold.ownerId));
      await pass(50);
      expect([...calls, run].map(({ state }) => state)).toEqual(Array(4).fill("pending"));
      await theirs.unlock();
      await pass(200);
      const holds = (await Promise.all(calls.map(({ promise }) => promise))) as Hold[];
      const ids = [...holds.map(({ ownerId }) => ownerId), await run.promise];
      expect(new Set(ids).size).toBe(1);
      expect(await lock.getHoldCount()).toBe(3);
      for (const _ of holds) await lock.unlock();
    });
    expect(await twin.isLocked()).toBe(false);
  },
);

for (const kept of ["requests", "replies"] as const)
  row(
    `a tryLock() is granted though the call before it gave up with its ${kept} on the way [§3 second-while-first-waits] [B87]`,
    async ({ a, client, lock, settle }) => {
      await client.scope(async () => {
        const controller = new AbortController();
        a.keep(kept);
        const first = watch(lock.lock({ signal: controller.signal }));
        await settle();
        controller.abort("enough");
        const second = watch(lock.tryLock());
        await settle();
        await a.letGo();
        expect(first.outcome).toBe("enough");
        expect(second.value?.isHeld).toBe(true);
        expect(await lock.getHoldCount()).toBe(1);
        await lock.unlock();
      });
    },
  );

row(
  "a tryLock() on its way together with a lock() of its owner is never refused by it [§3 call-order]",
  async ({ a, client, lock, settle }) => {
    await client.scope(async () => {
      a.keep("replies");
      const calls = [watch(lock.lock()), watch(lock.tryLock()), watch(lock.tryLock())];
      await settle();
      // One reply after the other, so that a refusal by the owner's own grant comes before or after that grant.
      for (let i = 0; i < 20; i++) await a.letOneGo();
      await a.letGo();
      await settle();
      expect(calls.map(({ value }) => value?.isHeld)).toEqual([true, true, true]);
      expect(new Set(calls.map(({ value }) => value?.ownerId)).size).toBe(1);
      for (const _ of calls) await lock.unlock();
    });
  },
);

row(
  "commands of an owner go out at once, whatever answers are still on the way [§3 call-order]",
  async ({ a, client, lock, settle, server }) => {
    await client.scope(async () => {
      const hold = await lock.lock();
      server.took();
      a.keep("replies");
      const extending = watch(hold.extend(60_000));
      await settle();
      const afterOne = server.took().length;
      const nested = watch(lock.lock());
      const released = watch(hold.unlock());
      await settle();
      const afterThree = server.took().length;
      await a.letGo();
      await settle();
      expect([extending.state, nested.state, released.state]).toEqual(["resolved", "resolved", "resolved"]);
      await lock.unlock();
      expect(afterThree).toBe(2 * afterOne);
    });
  },
);

row.real(
  "a lock() called after the last unlock() is a new acquisition, whatever is awaited [§3 lock-after-last-unlock]",
  async ({ client, lock, twin }) => {
    await client.scope(async () => {
      const first = await lock.lock();
      const unlocking = first.unlock();
      const second = await lock.lock();
      await unlocking;
      expect(second.ownerId).not.toBe(first.ownerId);
      expect(await lock.getHoldCount()).toBe(1);
      const nested = await lock.lock();
      const both = [lock.unlock(), lock.unlock()];
      const third = await lock.lock();
      await Promise.all(both);
      expect(nested.ownerId).toBe(second.ownerId);
      expect(third.ownerId).not.toBe(second.ownerId);
      await lock.unlock();
    });
    expect(await twin.isLocked()).toBe(false);
  },
);

row(
  "a rival that waits may come between the last unlock() and the lock() after it [§3 lock-after-last-unlock]",
  async ({ client, lock, rival, pass, settle }) => {
    await client.scope(async () => {
      const first = await lock.lock();
      const theirs = watch(rival.lock());
      await settle();
      const unlocking = first.unlock();
      const second = watch(lock.lock());
      await unlocking;
      for (let i = 0; i < 3; i++) {
        await pass(4_000);
        for (const { value } of [theirs, second]) if (value?.isHeld) await value.unlock();
      }
      expect([theirs.state, second.state]).toEqual(["resolved", "resolved"]);
    });
  },
);

row.real(
  "an unlock() while nested calls are on their way leaves the lock to them [§3 unlock-during-nested]",
  async ({ client, lock, twin }) => {
    const lost: unknown[] = [];
    client.on("lost", (event) => lost.push(event));
    await client.scope(async () => {
      const first = await lock.lock();
      const calls = Array.from({ length: 10 }, () => lock.lock());
      const unlocking = first.unlock();
      const holds = await Promise.all(calls);
      await unlocking;
      expect(new Set([first, ...holds].map(({ ownerId }) => ownerId)).size).toBe(1);
      expect(holds.every(({ isHeld }) => isHeld)).toBe(true);
      expect(await lock.getHoldCount()).toBe(10);
      await Promise.all(holds.map((hold) => hold.unlock()));
    });
    expect(await twin.isLocked()).toBe(false);
    expect(lost).toEqual([]);
  },
);
