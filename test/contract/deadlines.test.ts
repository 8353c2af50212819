/** Contract section 2: an owner's one deadline on a lock, and what a Hold says about its time. */
import { expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { recordWarnings } from "../support/index.js";
import { failure, ORDERS, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

/** The part of a lease that the default drift leaves. */
const leaves = (lease: number): number => lease * 0.99 - 2;
const WATCHDOG = 9_000;
const BRISK = { watchdogTimeout: WATCHDOG };

/** Takes the lock as often as there are leases, for one owner. */
async function nest({ lock }: Pick<VirtualPlace, "lock">, ...leases: number[]): Promise<Hold[]> {
  const holds: Hold[] = [];
  for (const lease of leases) holds.push(await lock.lock(holds[0] ? { lease, owner: holds[0] } : { lease }));
  return holds;
}

const remaining = (holds: readonly Hold[]) => holds.map((hold) => hold.remaining);
const held = (holds: readonly Hold[]) => holds.map(({ isHeld }) => isHeld);
const all = <T>(holds: readonly Hold[], value: T) => holds.map(() => value);

async function unlockAll(holds: readonly Hold[]): Promise<void> {
  for (const hold of holds) await hold.unlock();
}

for (const [drift, left] of [
  [0, 59_998],
  [0.01, 59_398],
  [0.5, 29_998],
] as const) {
  row(
    `a drift of ${drift} leaves ${left} ms of a minute here, and all of it in Redis [§2 remaining-from-send]`,
    { client: { drift } },
    async ({ lock, view }) => {
      const hold = await lock.lock({ lease: 60_000 });
      expect([hold.remaining, await view.ttl()]).toEqual([left, 60_000]);
      await hold.unlock();
    },
  );
}

row(
  "a grant whose answer was slow has the less time left [§2 remaining-from-send]",
  { kinds: SINGLE },
  async ({ lock, a, pass }) => {
    a.keep("replies");
    const call = watch(lock.lock({ lease: 10_000 }));
    await pass(700);
    await a.letGo();
    expect(call.value?.remaining).toBe(leaves(10_000) - 700);
    await call.value?.unlock();
  },
);

row(
  "the greatest drift leaves a kept hold the time of its renewals, and a greater one is refused [§2 lease]",
  { client: { ...BRISK, drift: 0.6664 } },
  async ({ lock, pass, party }) => {
    const hold = await lock.lock();
    await pass(10 * WATCHDOG);
    expect(hold.isHeld).toBe(true);
    expect(() => party({ drift: 0.66645 })).toThrow(/^drift must be at least 0 and below 0\.666,/);
    await hold.unlock();
  },
);

row(
  "a nested lock that the watchdog keeps never shortens a longer lease [§2 nested-never-shortens]",
  { client: BRISK },
  async ({ lock, view, pass }) => {
    const [outer] = (await nest({ lock }, 60_000)) as [Hold];
    const inner = await lock.lock({ owner: outer });
    await pass(30_000);
    expect([await view.ttl(), outer.remaining]).toEqual([30_000, leaves(60_000) - 30_000]);
    await unlockAll([inner, outer]);
  },
);

row.real("leases of nested locks never add up [§2 nested-never-shortens] [F36]", async (place) => {
  const holds = await nest(place, 10_000, 10_000, 10_000, 10_000);
  expect(await place.view.ttl()).toBeLessThanOrEqual(10_000);
  expect(await place.view.count()).toBe(4);
  await unlockAll(holds);
});

row(
  "all holds of an owner last until the latest of their leases, and are lost together then [§2 one-deadline] [§2 shared-loss]",
  async (place) => {
    const holds = await nest(place, 10_000, 5_000, 20_000);
    expect(remaining(holds)).toEqual(all(holds, leaves(20_000)));
    await place.pass(leaves(20_000) - 1);
    expect(held(holds)).toEqual(all(holds, true));
    await place.pass(1);
    expect(held(holds)).toEqual(all(holds, false));
    const signals = new Set(holds.map(({ signal }) => signal));
    // Holds of a group are made of the same holds of its members.
    expect(signals.size).toBe("members" in (holds[0] as Hold) ? holds.length : 1);
    for (const { reason } of signals) expect(reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  },
);

for (const order of ORDERS) {
  row(
    `unlocks in the order ${order.join(", ")} change no deadline before the last one, which deletes [§2 unlock-keeps-deadline] [§2 ttl-never-lowered]`,
    async (place) => {
      const holds = await nest(place, 20_000, 60_000, 40_000);
      for (const [done, which] of order.entries()) {
        expect(await place.view.ttl()).toBe(60_000);
        expect(await place.lock.getHoldCount({ owner: holds[0] as Hold })).toBe(3 - done);
        await holds[which]?.unlock();
        expect(holds[which]?.isHeld).toBe(false);
      }
      expect(await place.view.keys()).toEqual([]);
    },
  );
}

row(
  "a hold with a short lease next to a kept one lasts as long as that, and then as long as was last granted [§2 one-deadline] [§2 watchdog-any]",
  { client: BRISK },
  async ({ lock, pass, view }) => {
    const leased = await lock.lock({ lease: 5_000 });
    const kept = await lock.lock({ owner: leased });
    await pass(40_000);
    expect(held([leased, kept])).toEqual([true, true]);
    const left = await view.ttl();
    await kept.unlock();
    expect(await view.ttl()).toBe(left);
    await pass(WATCHDOG);
    expect(leased.isHeld).toBe(false);
  },
);

row(
  "the last hold that ends by its lease is given back before that lease ends in Redis [§2 lost-is-final]",
  async ({ lock, rival, pass }) => {
    const hold = await lock.lock({ lease: 10_000 });
    await pass(leaves(10_000) - 1);
    expect(hold.isHeld).toBe(true);
    expect(hold.signal.aborted).toBe(false);
    await pass(1);
    expect(hold.isHeld).toBe(false);
    const next = await rival.tryLock(0, 5_000);
    expect(next?.isHeld).toBe(true);
    await next?.unlock();
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  },
);

row(
  "what Redis keeps of holds whose deadline passed in a stall is released [§2 lost-is-final] [B60]",
  { kinds: SINGLE },
  async (place) => {
    const [outer, inner] = (await nest(place, 2_000, 2_000)) as [Hold, Hold];
    place.a.keep("requests");
    void watch(inner.unlock());
    // The process has stalled: no timer has fired yet.
    place.server.clock.moveTo(2_000);
    await place.a.letGo();
    expect(outer.isHeld).toBe(false);
    expect(outer.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  },
);

row(
  "isHeld, assertHeld, remaining and extend look at the clock before any timer has fired [§2 remaining-from-send]",
  async ({ lock, server }) => {
    const hold = await lock.lock({ lease: 10_000 });
    server.clock.moveTo(leaves(10_000) - 1);
    expect(hold.assertHeld()).toBeUndefined();
    expect([hold.isHeld, hold.remaining]).toEqual([true, 1]);
    server.clock.moveTo(leaves(10_000));
    expect([hold.isHeld, hold.remaining]).toEqual([false, 0]);
    const loss = { code: "LOCK_LOST", reason: "expired" };
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining(loss));
    expect(hold.signal.aborted).toBe(true);
    expect(await failure(hold.extend(1_000))).toMatchObject(loss);
  },
);

row(
  "a suspend that only the wall clock saw ends the hold, and a step back lengthens none [§2 remaining-from-send] [F18]",
  async ({ lock, server }) => {
    const { clock } = server;
    const wall = clock.wall.bind(clock);
    let stepped = -3_600_000;
    const hold = await lock.lock({ lease: 60_000 });
    clock.wall = () => wall() + stepped;
    expect(hold.remaining).toBe(leaves(60_000));
    clock.moveTo(clock.mono() + 20_000);
    expect(hold.remaining).toBe(leaves(60_000) - 20_000);
    stepped = 10_000;
    expect(hold.remaining).toBe(leaves(60_000) - 30_000);
    stepped = 40_000;
    expect(hold.isHeld).toBe(false);
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  },
);

row.real(
  "a hold says what it is of, whose it is and when it was granted, also when it is over [§2 hold-face]",
  async ({ lock, client }) => {
    {
      await using hold = await lock.lock({ lease: 10_000 });
      const { signal, acquiredAt, ownerId, lockName } = hold;
      expect(ownerId).toMatch(new RegExp(`^${client.id}:\\d+$`));
      expect(lockName).toBe(lock.name);
      expect(typeof acquiredAt).toBe("number");
      await hold.unlock();
      expect(hold.isHeld).toBe(false);
      expect(hold.signal).toBe(signal);
      expect(signal.aborted).toBe(false);
      expect([hold.acquiredAt, hold.ownerId, hold.lockName]).toEqual([acquiredAt, ownerId, lockName]);
    }
    expect(await lock.isLocked()).toBe(false);
  },
);

row("acquiredAt is the wall clock's time of the grant [§2 hold-face]", async ({ lock, server, pass }) => {
  await pass(1_234);
  const hold = await lock.lock();
  expect(hold.acquiredAt).toBe(server.clock.wall());
  await hold.unlock();
});

const warnings = recordWarnings();

for (const lease of [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1]) {
  row.real(
    `a lease of ${lease} ms is kept by Redis, and ends nothing at once [§6 arguments]`,
    async ({ lock, view, pass }) => {
      const near = async () => expect(await view.ttl()).toBeGreaterThan(lease - 30_000);
      const hold = await lock.lock({ lease });
      // By then a timer that cannot carry it would have fired, with a warning of Node.
      await pass(50);
      expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
      await near();
      expect(hold.remaining).toBeGreaterThan(lease * 0.98 - 30_000);
      await hold.unlock();
      await (await lock.tryLock(0, lease))?.unlock();
      await lock.run(near, { lease });
      const short = await lock.lock({ lease: 20_000 });
      await short.extend(lease);
      const nested = await lock.lock({ owner: short, lease });
      await near();
      await unlockAll([nested, short]);
      expect(warnings).toEqual([]);
    },
  );
}

for (const ms of [2 ** 31, 2 ** 53 - 1]) {
  const client = { watchdogTimeout: ms, pollCap: ms, commandTimeout: ms, fairWaitTimeout: ms };
  row.real(
    `client options of ${ms} ms are times like others [§1 options]`,
    { client },
    async ({ lock, view, rival, pass, client: mine, eventually }) => {
      const hold = await lock.lock();
      expect(await view.ttl()).toBeGreaterThan(ms - 30_000);
      const waiting = watch(rival.lock());
      await pass(50);
      expect([hold.isHeld, waiting.state]).toEqual([true, "pending"]);
      await hold.unlock();
      await (await waiting.promise).unlock();
      const last = await lock.lock();
      const closing = watch(mine.close({ timeout: ms }));
      await last.unlock();
      await eventually(() => closing.state === "resolved");
      expect(warnings).toEqual([]);
    },
  );
}

row(
  "a nested call answered after the owner's last hold was lost gives what Redis has [§2 lost-is-final] [B42]",
  { kinds: SINGLE },
  async ({ lock, a, pass, settle, view }) => {
    const owner = a.client.newOwner();
    const outer = await lock.lock({ lease: 1_000, owner });
    a.keep("replies");
    const nested = watch(lock.lock({ owner }));
    await pass(990);
    expect(outer.isHeld).toBe(false);
    await a.letGo();
    await settle();
    await pass(100);
    const hold = nested.value ?? expect.fail("it has no outcome");
    expect(hold.isHeld).toBe(true);
    expect(Object.keys(await view.hash()).join()).toContain(hold.ownerId);
    await hold.unlock();
  },
);
