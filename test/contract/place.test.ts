/** The places of the contract suite: each kind of lock works in each of them. */
import { expect } from "vitest";
import { row, watch } from "../support/place/index.js";

row.real(
  "a free lock is granted, kept from others, seen by all, and given back [§2 one-round-trip]",
  async (place) => {
    const { lock, rival, twin, view, eventually } = place;
    const hold = await lock.lock({ lease: 30_000 });
    expect(hold.isHeld).toBe(true);
    expect(await twin.isLocked()).toBe(true);
    expect(await view.count()).toBe(1);
    expect(await rival.tryLock()).toBeNull();
    await hold.unlock();
    expect(await twin.isLocked()).toBe(false);
    expect(await eventually(async () => (await view.keys()).length === 0)).toBe(true);
  },
);

row.real("a waiter is woken by the release [§2 woken-by-message]", async ({ lock, rival, eventually }) => {
  const hold = await lock.lock();
  const waiting = watch(rival.lock());
  await eventually(() => waiting.state === "pending");
  await hold.unlock();
  const next = await waiting.promise;
  await next.unlock();
});

row(
  "a hold whose process loses Redis ends at its deadline [§2 lost-is-final]",
  async ({ a, lock, pass, rival }) => {
    const hold = await lock.lock();
    await a.cut();
    await pass(31_000);
    expect(hold.isHeld).toBe(false);
    const theirs = await rival.tryLock();
    expect(theirs).not.toBeNull();
    await theirs?.unlock();
    await a.mend();
  },
);
