/** Contract section 2: extend() of a Hold. */
import { expect } from "vitest";
import { row, SINGLE, watch } from "../support/place/index.js";

/** The part of a lease that the default drift leaves. */
const leaves = (lease: number): number => lease * 0.99 - 2;
const WATCHDOG = 9_000;
const COMMAND_TIMEOUT = 1_000;
const IMPATIENT = { commandTimeout: COMMAND_TIMEOUT };
const LATER = 100_000;

row("extend() to later counts from when it is called [§2 extend-later]", async ({ lock, pass, view }) => {
  const hold = await lock.lock({ lease: 10_000 });
  await pass(3_000);
  await hold.extend(40_000);
  expect([hold.remaining, await view.ttl()]).toEqual([leaves(40_000), 40_000]);
  await pass(leaves(40_000) - 1);
  expect(hold.isHeld).toBe(true);
  await pass(1);
  expect(hold.isHeld).toBe(false);
});

row(
  "extend() to later moves the deadline of all holds of the owner [§2 extend-later] [§2 one-deadline]",
  async ({ lock }) => {
    const outer = await lock.lock({ lease: 20_000 });
    const inner = await lock.lock({ lease: 20_000, owner: outer });
    await inner.extend(60_000);
    expect([outer.remaining, inner.remaining]).toEqual([leaves(60_000), leaves(60_000)]);
    await outer.unlock();
    await inner.unlock();
  },
);

row(
  "extend() of a kept hold never goes below watchdogTimeout, and it is kept all the same, its later deadline too [§2 extend-later] [§2 one-deadline] [§2 ttl-never-lowered]",
  { client: { watchdogTimeout: WATCHDOG } },
  async ({ lock, pass, view }) => {
    const hold = await lock.lock();
    await pass(1_000);
    await hold.extend(1);
    expect(hold.remaining).toBeGreaterThanOrEqual(leaves(WATCHDOG) - 1_000);
    await hold.extend(50_000);
    await pass(40_000);
    expect(await view.ttl()).toBe(10_000);
    expect(hold.remaining).toBe(leaves(50_000) - 40_000);
    await pass(60_000);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  },
);

row(
  "extend() to earlier of a kept hold while a renewal is on its way leaves it kept [§2 extend-earlier] [§2 lease] [B293]",
  { kinds: SINGLE, client: { watchdogTimeout: WATCHDOG, commandTimeout: 2 * WATCHDOG } },
  async ({ lock, pass, a }) => {
    const hold = await lock.lock();
    await hold.extend(LATER);
    a.keep("replies");
    await pass(WATCHDOG / 2);
    expect(a.onTheirWay).toBe(1);
    await hold.extend(WATCHDOG);
    await a.letGo();
    await pass(3 * WATCHDOG);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  },
);

for (const wasKept of [false, true]) {
  row(
    `a nested call that asks to be kept, made before an extend() to earlier and granted after it, keeps the hold${wasKept ? ", which was kept once before" : ""} [§2 extend-earlier] [§2 lease] [B294]`,
    { kinds: SINGLE, client: { watchdogTimeout: WATCHDOG } },
    async ({ lock, pass, settle, a }) => {
      const hold = await lock.lock({ lease: 60_000 });
      if (wasKept) await (await lock.lock({ owner: hold })).unlock();
      a.keep("replies");
      const nested = lock.lock({ owner: hold });
      await settle();
      await hold.extend(100);
      await a.letGo();
      const kept = await nested;
      expect(kept.remaining).toBe(leaves(100));
      await pass(3 * WATCHDOG);
      expect([hold.isHeld, kept.isHeld]).toEqual([true, true]);
      await kept.unlock();
      await hold.unlock();
    },
  );
}

row(
  "extend() to earlier moves the deadline here alone, so Redis keeps its time [§2 extend-earlier] [§2 ttl-never-lowered]",
  async ({ lock, view, pass }) => {
    const hold = await lock.lock({ lease: 60_000 });
    for (const earlier of [20_000, 40_000, 10_000]) {
      await hold.extend(earlier);
      expect(hold.remaining).toBe(leaves(earlier));
    }
    expect(await view.ttl()).toBe(60_000);
    await pass(1_000);
    expect(await view.ttl()).toBe(59_000);
    await hold.unlock();
  },
);

row(
  "extend() to earlier ends all holds of the owner as expired at that time, and gives the lock back [§2 extend-earlier]",
  async ({ lock, rival, pass }) => {
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ lease: 60_000, owner: outer });
    await inner.extend(10_000);
    await pass(leaves(10_000) - 1);
    expect([outer.isHeld, inner.isHeld]).toEqual([true, true]);
    expect(await rival.tryLock()).toBeNull();
    await pass(1);
    for (const { signal } of [outer, inner]) expect(signal.reason).toMatchObject({ reason: "expired" });
    const next = await rival.tryLock();
    expect(next?.isHeld).toBe(true);
    await next?.unlock();
  },
);

row(
  "the answer to a call made before an extend() to earlier does not lift the deadline again [§2 extend-earlier]",
  { kinds: SINGLE },
  async ({ lock, a, pass, settle }) => {
    const hold = await lock.lock({ lease: 60_000 });
    a.keep("replies");
    const later = watch(hold.extend(LATER));
    await settle();
    const earlier = watch(hold.extend(5_000));
    await settle();
    const { state } = earlier;
    await a.letGo();
    expect([state, later.state]).toEqual(["resolved", "resolved"]);
    expect(hold.remaining).toBe(leaves(5_000));
    await pass(5_000);
    expect(hold.isHeld).toBe(false);
  },
);

row(
  "extend() that is called before the unlock is not refused for it, whatever is on its way [§2 extend-errors] [B88]",
  async ({ lock }) => {
    const hold = await lock.lock({ lease: 10_000 });
    const nested = lock.lock({ owner: hold });
    const extending = hold.extend(40_000);
    const unlocking = hold.unlock();
    expect(await extending).toBeUndefined();
    await unlocking;
    await (await nested).unlock();
  },
);

row(
  "extend() without an answer is UNAVAILABLE in time, and the hold keeps the deadline that it had [§2 unavailable] [§2 extend-later]",
  { kinds: SINGLE, client: IMPATIENT },
  async ({ lock, a, pass }) => {
    for (const way of ["requests", "replies"] as const) {
      const hold = await lock.lock({ lease: 60_000 });
      a.keep(way);
      const call = watch(hold.extend(LATER));
      await pass(COMMAND_TIMEOUT - 1);
      expect(call.outcome).toBe("pending");
      await pass(1);
      expect(call.outcome).toBe("UNAVAILABLE");
      expect(hold.remaining).toBe(leaves(60_000) - COMMAND_TIMEOUT);
      await a.letGo();
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
    }
  },
);

for (const isKnown of [true, false]) {
  row(
    `extend() behind an unanswered one, of a hold that ends meanwhile, is LOCK_LOST; its script is ${isKnown ? "known" : "new"} to Redis [§2 extend-errors] [B58]`,
    { kinds: SINGLE, client: { commandTimeout: 300 } },
    async ({ lock, a, pass }) => {
      const hold = await lock.lock({ lease: 2_000 });
      if (isKnown) await hold.extend(2_000);
      a.keep("replies");
      const unanswered = watch(hold.extend(2_001));
      await pass(300);
      expect(unanswered.outcome).toBe("UNAVAILABLE");
      await pass(1_500);
      const behind = watch(hold.extend(2_000));
      await pass(190);
      expect(hold.isHeld).toBe(false);
      await a.letGo();
      expect(behind.outcome).toBe("LOCK_LOST");
      await pass(1_000);
    },
  );
}
