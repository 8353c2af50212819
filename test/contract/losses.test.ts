/** Contract section 2: how holds are lost, for which reason, who learns of it, and what the owner has afterwards. */
import { expect } from "vitest";
import { type Hold, LockLostError, type LossReason } from "../../src/index.js";
import { recordWarnings } from "../support/index.js";
import {
  EXCLUSIVE,
  failure,
  KINDS,
  PLAIN,
  type Place,
  RED,
  row,
  SINGLE,
  type VirtualPlace,
  watch,
} from "../support/place/index.js";

const WATCHDOG = 9_000;
const ROUND = WATCHDOG / 3;
const OPTIONS = { watchdogTimeout: WATCHDOG, commandTimeout: 1_000 };

const lossesOf = ({ a, kind }: VirtualPlace) => a.heard("lost").filter((event) => event.kind === kind.kind);

type Way = readonly [title: string, reason: LossReason, act: (place: Place) => Promise<unknown>];
const WAYS: readonly Way[] = [
  ["gone", "expired", ({ view }) => view.wipe()],
  ["taken by another", "taken", ({ view }) => view.seize()],
];

for (const [title, reason, act] of WAYS) {
  const LOST = { code: "LOCK_LOST", reason };

  row(
    `the next renewal notices that the lock is ${title}, and all holds of the owner learn of it [§2 loss-noticed] [§6 reasons] [F21]`,
    { client: OPTIONS },
    async (place) => {
      const { lock, view, pass, a, servers, kind } = place;
      a.listen("lost");
      const hold = await lock.lock();
      const inner = await lock.lock({ owner: hold, lease: 60_000 });
      await act(place);
      await pass(ROUND - 1);
      expect(hold.isHeld).toBe(true);
      await pass(1 + WATCHDOG / 12);
      const told = { reason, ownerId: hold.ownerId, lockName: lock.name, kind: kind.kind };
      expect(lossesOf(place)).toMatchObject([told, told]);
      for (const each of [inner, hold]) {
        expect(each.signal.reason).toMatchObject({ ...LOST, lockName: lock.name });
        expect(await failure(each.unlock())).toBe(each.signal.reason);
      }
      // The client knows nothing of the hold any more, so a second unlock sends no command.
      for (const server of servers) server.took();
      await watch(hold.unlock()).promise.catch(() => {});
      expect(servers.flatMap((server) => server.took())).toEqual([]);
      await view.wipe();
    },
  );

  for (const [by, call] of [
    ["an extend()", (hold: Hold) => hold.extend(90_000)],
    ["an unlock()", (hold: Hold) => hold.unlock()],
  ] as const) {
    row(
      `${by} notices that the lock is ${title}, for all holds of the owner, and leaves the lock as it is [§2 loss-noticed] [§2 shared-loss]`,
      // Of a MultiLock only one member is taken.
      { kinds: reason === "taken" ? [...SINGLE, RED] : KINDS },
      async (place) => {
        const { lock, view, a } = place;
        a.listen("lost", "released");
        const outer = await lock.lock();
        const inner = await lock.lock({ lease: 60_000, owner: outer });
        await act(place);
        const before = await view.hash();
        expect(await failure(call(inner))).toMatchObject(LOST);
        expect([outer.isHeld, inner.isHeld]).toEqual([false, false]);
        expect(outer.signal.reason).toMatchObject(LOST);
        expect(await failure(outer.unlock())).toMatchObject(LOST);
        expect(await view.hash()).toEqual(before);
        expect(lossesOf(place)).toHaveLength(2);
        expect(a.heard("released")).toEqual([]);
        await view.wipe();
      },
    );
  }
}

row.real(
  "the unlock that finds the lock gone rejects LOCK_LOST, with the time and the reason [§6 codes] [§2 loss-noticed]",
  async ({ lock, view, pass }) => {
    const hold = await lock.lock();
    await pass(50);
    await view.wipe();
    const error = (await failure(hold.unlock())) as LockLostError;
    expect(error).toBeInstanceOf(LockLostError);
    expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired", name: "LockLostError" });
    // Nothing is known of it since the grant.
    expect(error.since).toBe(hold.acquiredAt);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(error.result).toBeUndefined();
  },
);

row.real(
  "a hold is lost at its deadline, however late that is noticed [§2 loss-noticed] [§6 reasons] [B271]",
  { kinds: [PLAIN] },
  async ({ client, lock, pass }) => {
    const told: (number | undefined)[] = [];
    client.on("lost", ({ held }) => told.push(held));
    const hold = await lock.lock({ lease: 1_000 });
    // The event loop of a real process stands still until long after.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
    await pass(1_500);
    const { since } = (await failure(hold.unlock())) as LockLostError;
    for (const held of [since - hold.acquiredAt, ...told]) {
      expect(held).toBeGreaterThan(100);
      expect(held).toBeLessThanOrEqual(1_000);
    }
    expect(told.length).toBeGreaterThan(0);
  },
);

row.real(
  "another owner of the client that is granted a lock tells the one that had it, at once [§6 reasons] [B291]",
  { kinds: EXCLUSIVE },
  async ({ lock, view, twin }) => {
    const first = await lock.lock();
    await view.wipe();
    const second = await lock.lock();
    expect(first.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    expect([first.isHeld, second.isHeld, await twin.isLocked()]).toEqual([false, true, true]);
    expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    await second.unlock();
  },
);

row.real(
  "a nested call that finds the lock gone starts afresh under a new id [§2 loss-noticed] [§2 lost-unlock-once]",
  async ({ client, lock, view }) => {
    await client.scope(async () => {
      const first = await lock.lock();
      await view.wipe();
      const second = await lock.lock();
      expect(second.ownerId).not.toBe(first.ownerId);
      expect(first.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(await failure(first.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(second.isHeld).toBe(true);
      await second.unlock();
    });
  },
);

row(
  "a nested call that finds the lock taken waits like a stranger [§2 loss-noticed] [§2 lost-unlock-once]",
  { kinds: SINGLE },
  async ({ lock, view, client }) => {
    const owner = client.newOwner();
    const hold = await lock.lock({ lease: 60_000, owner });
    await view.seize();
    expect(await lock.tryLock(0, undefined, { owner })).toBeNull();
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "taken" });
    await view.wipe();
  },
);

row(
  "the loss of a hold is final, even if Redis has the lock again [§2 lost-is-final]",
  { kinds: SINGLE },
  async ({ lock, view, server }) => {
    const result = lock.run(async (hold) => {
      const state = await view.hash();
      await view.wipe();
      expect(await failure(hold.extend(90_000))).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      server.give(state);
      expect([hold.isHeld, hold.signal.aborted, hold.remaining]).toEqual([false, true, 0]);
      for (const call of [() => hold.extend(90_000), () => hold.unlock()])
        expect(await failure(call())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      return "done";
    });
    expect(await failure(result)).toMatchObject({ code: "LOCK_LOST", reason: "expired", result: "done" });
    await view.wipe();
  },
);

row(
  "a loss aborts the signal once, with the error that the unlock rejects with, also one asked for only then [§2 lost-is-final]",
  async (place) => {
    place.a.listen("lost");
    const hold = await place.lock.lock({ lease: 5_000 });
    const late = await place.other.lock({ lease: 5_000 });
    let told = 0;
    hold.signal.addEventListener("abort", () => told++);
    await place.pass(5_000);
    expect(told).toBe(1);
    for (const { signal } of [hold, late])
      expect(signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await failure(hold.unlock())).toBe(hold.signal.reason);
    expect(lossesOf(place)[0]).toMatchObject({ reason: "expired", held: 5_000 * 0.99 - 2 });
  },
);

row(
  "lock.unlock() that reaches a lost hold rejects LOCK_LOST once, and drops it [§2 lost-unlock-once]",
  { kinds: SINGLE },
  async ({ lock, client, view }) => {
    await client.scope(async () => {
      await lock.lock();
      await lock.lock();
      await view.wipe();
      for (const code of ["LOCK_LOST", "LOCK_LOST", "NOT_OWNER"])
        expect(await failure(lock.unlock())).toMatchObject({ code, lockName: lock.name });
      const hold = await lock.lock();
      await view.wipe();
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
    });
  },
);

row.real(
  "after a loss the owner's next lock is that of a stranger, which is given back before the lost one [§2 lost-unlock-once]",
  { kinds: SINGLE },
  async ({ client, lock, rival, pass, eventually }) => {
    await client.scope(async () => {
      const first = await lock.lock({ lease: 1_000 });
      await pass(1_050);
      await eventually(() => first.signal.aborted);
      const theirs = await rival.lock();
      expect(await lock.tryLock()).toBeNull();
      await theirs.unlock();
      const second = await lock.lock();
      expect(second.ownerId).not.toBe(first.ownerId);
      await lock.unlock();
      expect(second.isHeld).toBe(false);
      expect(await failure(lock.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    });
  },
);

row(
  "a kept hold without answers is lost as unreachable before Redis lets go, and what is left is given back [§6 reasons] [F19]",
  { kinds: SINGLE, client: OPTIONS },
  async (place) => {
    const { lock, a, pass, rival } = place;
    a.listen("lost");
    const hold = await lock.lock();
    a.keep("replies");
    await pass(WATCHDOG * 0.99 - 3);
    expect(hold.isHeld).toBe(true);
    await pass(1);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    expect(lossesOf(place)).toHaveLength(1);
    await a.letGo();
    await (await rival.tryLock())?.unlock();
  },
);

row(
  "a grant that arrives at its deadline is given back, and the call rejects LOCK_LOST [§2 late-grant]",
  { kinds: SINGLE },
  async ({ lock, a, pass, rival, settle }) => {
    a.listen("acquired", "released");
    for (const call of [
      () => lock.lock({ lease: 300 }),
      () => lock.tryLock(0, 300),
      () => lock.tryLock(1_000, 300),
      () => lock.run(() => "never", { lease: 300 }),
    ]) {
      a.keep("replies");
      const late = watch<unknown>(call());
      // Redis still has the lock for some milliseconds.
      await pass(296);
      await a.letGo();
      expect(late.error).toMatchObject({ code: "LOCK_LOST", reason: "expired", lockName: lock.name });
      await settle();
      await (await rival.tryLock())?.unlock();
    }
    expect(a.told).toEqual([]);
  },
);

row.real(
  "a lease that is over at once is refused as lost, and leaves nothing [§2 late-grant]",
  { kinds: SINGLE },
  async ({ lock }) => {
    expect(await failure(lock.lock({ lease: 1 }))).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await (await lock.lock()).unlock();
  },
);

row(
  "a nested grant that arrives late leaves the outer hold as it is [§2 late-grant]",
  { kinds: SINGLE, client: { commandTimeout: 30_000 } },
  async ({ lock, a, pass, rival }) => {
    const outer = await lock.lock({ lease: 60_000 });
    a.keep("replies");
    const call = watch(lock.lock({ lease: 300, owner: outer }));
    await pass(300);
    await a.letGo();
    if (call.value) await call.value.unlock();
    else expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(await lock.getHoldCount({ owner: outer })).toBe(1);
    expect([outer.isHeld, await rival.tryLock()]).toEqual([true, null]);
    await outer.unlock();
  },
);

row(
  "the command of a lost hold that is still on its way brings nothing back [§2 lost-is-final] [§2 wire-id-once] [B59]",
  { kinds: SINGLE, client: OPTIONS },
  async ({ lock, a, view, settle, pass }) => {
    for (const between of [async () => {}, () => pass(4_000)]) {
      a.keep("requests");
      const call = watch(lock.lock());
      await settle();
      await a.reconnect();
      await between();
      await view.wipe();
      expect(await failure((call.value as Hold).unlock())).toMatchObject({ code: "LOCK_LOST" });
      await settle();
      await a.letGo();
      expect(await view.hash()).toEqual({});
    }
  },
);

row.real(
  "a hold's signal takes any number of listeners without a warning [B274]",
  { kinds: SINGLE },
  async ({ lock, pass }) => {
    const warnings = recordWarnings();
    const hold = await lock.lock();
    for (let i = 0; i < 20; i++) hold.signal.addEventListener("abort", () => {});
    await pass(10);
    expect(warnings).toEqual([]);
    await hold.unlock();
  },
);
