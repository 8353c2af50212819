/** The core of the contract: which owner has a lock, which has not, and what that is good for. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import type { FencedHold, Hold, Lock } from "../../src/index.js";
import { notOwner } from "../contract/helpers.js";
import type { Kind } from "../contract/kinds.js";
import type { NewAct } from "./core-act.js";

export function owning(act: NewAct): void {
  test("it is granted, seen by all, kept from others, given back", async () => {
    const { lock, rival, twin } = act();
    expect(await lock.isLocked()).toBe(false);
    expect(await twin.remainTimeToLive()).toBe(-2);
    const hold = await lock.lock({ lease: 30_000 });
    expect(hold.isHeld).toBe(true);
    expect(await twin.isLocked()).toBe(true);
    expect(await twin.remainTimeToLive()).toBeGreaterThan(1_000);
    expect(await twin.remainTimeToLive()).toBeLessThanOrEqual(30_000);
    expect(await rival.tryLock()).toBeNull();
    await hold.unlock();
    expect(hold.isHeld).toBe(false);
    expect(await twin.isLocked()).toBe(false);
    await (await rival.tryLock())?.unlock();
    expect(await lock.remainTimeToLive()).toBe(-2);
  });

  test("a scope re-enters and gives back as often as it took", async () => {
    const { ours, lock, rival } = act();
    await ours.scope(async () => {
      const outer = await lock.lock();
      const inner = await lock.tryLock();
      expect(inner?.ownerId).toBe(outer.ownerId);
      expect(await lock.getHoldCount()).toBe(2);
      expect(await lock.isHeldByCurrentOwner()).toBe(true);
      await lock.unlock();
      expect(await lock.getHoldCount()).toBe(1);
      expect(await rival.tryLock()).toBeNull();
      await lock.unlock();
      expect(await lock.getHoldCount()).toBe(0);
      await expect(lock.unlock()).rejects.toMatchObject(notOwner(lock));
    });
    await (await rival.lock()).unlock();
  });

  test("a named owner re-enters, and the holds end in any order", async () => {
    const { lock, rival } = act();
    const first = await lock.lock();
    const second = await lock.lock({ owner: first });
    expect(await lock.getHoldCount({ owner: second })).toBe(2);
    await first.unlock();
    expect([first.isHeld, second.isHeld]).toEqual([false, true]);
    expect(await lock.getHoldCount({ owner: first })).toBe(1);
    expect(await rival.tryLock()).toBeNull();
    await second.unlock();
    expect(await lock.isLocked()).toBe(false);
  });

  test("an owner without a hold can neither give it back nor extend it", async () => {
    const { lock, twin } = act();
    const hold = await lock.lock();
    await expect(twin.unlock()).rejects.toMatchObject(notOwner(twin));
    await expect(twin.isHeldByCurrentOwner()).resolves.toBe(false);
    expect(await twin.isLocked()).toBe(true);
    await hold.unlock();
    await expect(hold.unlock()).resolves.toBeUndefined();
    await expect(hold.extend(1_000)).rejects.toMatchObject(notOwner(lock));
  });

  test("a hold is extended and shortened", async () => {
    const { lock } = act();
    const hold = await lock.lock({ lease: 20_000 });
    await hold.extend(50_000);
    expect(hold.remaining).toBeGreaterThan(30_000);
    expect(await lock.remainTimeToLive()).toBeGreaterThan(30_000);
    await hold.extend(10_000);
    expect(hold.remaining).toBeLessThanOrEqual(10_000);
    expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(10_000);
    await hold.unlock();
  });
}

export function sharing(act: NewAct, { exclusive }: Kind): void {
  test("runs nest; parallel ones inside a run take turns", async () => {
    const { lock } = act();
    let inside = 0;
    let most = 0;
    const visit = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await turn();
      inside--;
    };
    const seen = await lock.run(async (outer) => {
      await lock.run((inner) => expect(inner.ownerId).toBe(outer.ownerId));
      await Promise.all([1, 2, 3].map(() => lock.run(visit)));
      return "done";
    });
    expect([seen, exclusive ? most : 1]).toEqual(["done", 1]);
    expect(await lock.isLocked()).toBe(false);
  });

  test("no update is lost, and who holds it sees none, whoever of both clients works", async () => {
    const { lock, twin, excluded, rival } = act();
    let count = 0;
    const increment = async (): Promise<void> => {
      const read = count;
      await lock.isLocked(); // long enough for others to come in between
      count = read + 1;
    };
    const look = async (): Promise<void> => {
      const read = count;
      await lock.isLocked();
      expect(count).toBe(read);
    };
    const task = async (writes: Lock, reads: Lock): Promise<void> => {
      for (let i = 0; i < 5; i++) {
        await writes.run(increment);
        await reads.run(look);
      }
    };
    const tasks = [excluded, rival, excluded, rival].map((writes) => {
      return task(writes, writes === excluded ? lock : twin);
    });
    await Promise.all(tasks);
    expect(count).toBe(20);
    expect(await lock.isLocked()).toBe(false);
  });
}

export function tokensRise(act: NewAct): void {
  test("tokens rise with every grant to whoever, over force too", async () => {
    const { lock, twin } = act();
    const tokens: bigint[] = [];
    const note = (hold: Hold): void => void tokens.push((hold as FencedHold).token);
    for (const each of [lock, twin, lock]) await each.run(note);
    await twin.lock();
    await lock.forceUnlock();
    for (const each of [twin, lock]) await each.run(note);
    const sorted = [...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1));
    expect(tokens).toEqual(sorted);
    expect(tokens).toHaveLength(5);
  });
}
