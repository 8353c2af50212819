/** Contract section 2: unlock() of a Hold and of a lock, what it costs, and what becomes of it without an answer. */
import { expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { failure, MULTI, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

const COMMAND_TIMEOUT = 1_000;
const client = { commandTimeout: COMMAND_TIMEOUT };
const WAYS = ["requests", "replies"] as const;

const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;

/** An unlock that is called now gets no answer in time. */
async function expectInVain({ pass }: VirtualPlace, call: Promise<unknown>): Promise<void> {
  const watched = watch(call);
  await pass(COMMAND_TIMEOUT - 1);
  expect(watched.outcome).toBe("pending");
  await pass(1);
  expect(watched.outcome).toBe("UNAVAILABLE");
}

row(
  "a free lock is taken by one command for each member, nested by one, and each is given back by one [§2 one-round-trip]",
  async (place) => {
    const { lock, kind } = place;
    const outer = await lock.lock();
    expect(count(place)).toBe(kind.members);
    const inner = await lock.lock({ owner: outer });
    expect(count(place)).toBe(kind.members);
    await inner.unlock();
    expect(count(place)).toBe(kind.members);
    await outer.unlock();
    await place.settle();
    expect(count(place)).toBe(kind.members);
  },
);

row.real(
  "a hold is given back from any async context, once, however often its unlock() is called [§2 unlock-hold]",
  async ({ client: mine, lock, other, view }) => {
    const outer = await lock.lock();
    const holds = [outer];
    for (let i = 0; i < 3; i++) holds.push(await lock.lock({ owner: outer }));
    const [one, two, three] = holds.slice(1) as [Hold, Hold, Hold];
    await new Promise<void>((resolve, reject) => setImmediate(() => void one.unlock().then(resolve, reject)));
    await mine.scope(() => two.unlock());
    await other.run(() => Promise.all([three.unlock(), three.unlock()]));
    expect(await view.count()).toBe(1);
    for (const hold of [one, two, three]) expect(await hold.unlock()).toBeUndefined();
    expect([await view.count(), outer.isHeld]).toEqual([1, true]);
    await outer.unlock();
  },
);

row(
  "a second unlock() of a hold never frees a later hold, and sends nothing [§2 unlock-hold] [§2 wire-id-once]",
  async (place) => {
    const { lock, rival, a } = place;
    a.listen("released");
    const first = await lock.lock();
    await Promise.all([first.unlock(), first.unlock()]);
    const second = await lock.lock();
    expect(second.ownerId).not.toBe(first.ownerId);
    count(place);
    await first.unlock();
    expect(count(place)).toBe(0);
    expect([second.isHeld, await rival.tryLock()]).toEqual([true, null]);
    await second.unlock();
    expect(a.heard("released").filter(({ kind }) => kind === place.kind.kind)).toHaveLength(2);
  },
);

row(
  "isHeld is false and remaining is 0 from the call of unlock() on, and no signal tells of it [§2 unlock-hold] [§8 stats]",
  { kinds: SINGLE },
  async ({ lock, a, pass }) => {
    a.listen("lost");
    const hold = await lock.lock({ lease: 2_000 });
    const { signal } = hold;
    a.keep("replies");
    const back = watch(hold.unlock());
    expect([hold.isHeld, hold.remaining, lock.currentHold(), a.client.stats().held]).toEqual([
      false,
      0,
      null,
      0,
    ]);
    // What is on its way back can be lost no more.
    a.loseAll("forced");
    await pass(2_000);
    const again = watch(hold.unlock());
    await a.letGo();
    expect([back.outcome, again.outcome]).toEqual([undefined, undefined]);
    expect([signal.aborted, hold.signal.aborted, a.told.length]).toEqual([false, false, 0]);
  },
);

row(
  "a hold that was given back says so when it is asserted or extended [§2 unlock-hold] [§2 extend-errors] [B231]",
  async ({ lock, server }) => {
    const hold = await lock.lock();
    await hold.unlock();
    expect(() => hold.assertHeld()).toThrow(
      expect.objectContaining({
        code: "LOCK_LOST",
        since: server.clock.wall(),
        message: expect.stringContaining(
          `lock "${lock.name}": this hold was given back; take the lock again`,
        ),
      }),
    );
    expect(await failure(hold.extend(1_000))).toMatchObject({
      code: "NOT_OWNER",
      message: expect.stringContaining("this hold was given back"),
    });
  },
);

for (const way of WAYS) {
  row(
    `an unlock() whose ${way} are on their way is UNAVAILABLE in time, goes on, and a further one asks again [§2 unlock-unavailable]`,
    { kinds: [...SINGLE, MULTI], client },
    async (place) => {
      const { lock, a, rival } = place;
      a.listen("released", "lost");
      const hold = await lock.lock({ lease: 60_000 });
      a.keep(way);
      for (let i = 0; i < 2; i++) await expectInVain(place, hold.unlock());
      expect(hold.isHeld).toBe(false);
      const third = watch(hold.unlock());
      await a.letGo();
      await place.settle();
      expect(third.outcome).toBeUndefined();
      expect(a.heard("lost")).toEqual([]);
      expect(a.heard("released").filter(({ kind }) => kind === place.kind.kind)).toHaveLength(1);
      await (await rival.tryLock())?.unlock();
    },
  );

  row(
    `lock.unlock() whose ${way} are on their way is asked again until the lock is given back, and then there is nothing to unlock [§2 unlock-unavailable] [B65]`,
    { kinds: SINGLE, client },
    async (place) => {
      const { lock, a, client: mine } = place;
      await mine.scope(async () => {
        const outer = await lock.lock({ lease: 60_000 });
        await lock.lock({ lease: 60_000 });
        a.keep(way);
        for (let i = 0; i < 2; i++) await expectInVain(place, lock.unlock());
        const elsewhere = failure(lock.unlock({ owner: mine.newOwner() }));
        expect(await elsewhere).toMatchObject({ code: "NOT_OWNER" });
        const last = watch(outer.unlock());
        await a.letGo();
        await place.settle();
        expect(last.outcome).toBeUndefined();
        expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      });
    },
  );
}

row(
  "an unlock() that reaches Redis late, and finds nothing, tells the loss [§2 loss-noticed]",
  { kinds: SINGLE, client },
  async ({ lock, a, pass, view }) => {
    a.listen("released");
    const hold = await lock.lock({ lease: 60_000 });
    a.keep("requests");
    void watch(hold.unlock());
    await pass(20_000);
    await view.wipe();
    await a.reconnect();
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    expect(a.told).toEqual([]);
  },
);

/** Calls of an owner that has two holds. */
const CALLS: readonly [string, (place: VirtualPlace, outer: Hold, inner: Hold) => Promise<unknown>][] = [
  ["a nested lock()", ({ lock }, outer) => lock.lock({ owner: outer })],
  ["an unlock()", (_, _outer, inner) => inner.unlock()],
  ["an extend()", (_, _outer, inner) => inner.extend(90_001)],
];

for (const [title, call] of CALLS) {
  for (const [place, after] of [
    ["behind", COMMAND_TIMEOUT / 2],
    ["after", COMMAND_TIMEOUT],
  ] as const) {
    row(
      `${title} ${place} a command of its owner without an answer is UNAVAILABLE in its own time [§2 unavailable] [§3 call-order] [B62]`,
      { kinds: SINGLE, client },
      async (here) => {
        const { lock, a, pass } = here;
        const outer = await lock.lock({ lease: 60_000 });
        const inner = await lock.lock({ lease: 60_000, owner: outer });
        a.keep("requests");
        const first = watch(outer.extend(90_000));
        await pass(after);
        const later = watch(call(here, outer, inner));
        await pass(COMMAND_TIMEOUT - 1);
        expect(later.outcome).toBe("pending");
        await pass(2);
        expect([first.outcome, later.outcome]).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
        await a.letGo();
        await pass(100);
        expect(outer.isHeld).toBe(true);
        await watch(inner.unlock()).promise;
        await outer.unlock();
      },
    );
  }
}

for (const again of [false, true]) {
  row(
    `a nested lock() behind commands on their way${again ? " that are sent again" : ""} is granted, whatever lease ran out meanwhile [§3 call-order] [B96] [B111]`,
    { kinds: SINGLE, client },
    async ({ lock, a, pass, settle }) => {
      const outer = await lock.lock({ lease: 60_000 });
      const holds = [outer];
      for (let i = 0; i < 2; i++) holds.push(await lock.lock({ lease: 500, owner: outer }));
      a.keep("requests");
      const extended = watch(outer.extend(90_000));
      await settle();
      if (again) {
        await a.reconnect();
        a.keep("requests");
      }
      const nested = watch(lock.lock({ lease: 60_000, owner: outer }));
      await pass(501);
      await a.letGo();
      await settle();
      expect([extended.outcome, nested.state]).toEqual([undefined, "resolved"]);
      holds.push(nested.value as Hold);
      const held = holds.filter(({ isHeld }) => isHeld);
      expect(await lock.getHoldCount({ owner: outer })).toBe(held.length);
      for (const hold of held.reverse()) await hold.unlock();
    },
  );
}

row(
  "a hold count that others changed in Redis makes no nested call fail [§2 nested-unknown]",
  { kinds: SINGLE },
  async ({ lock, server, kind, view }) => {
    const outer = await lock.lock({ lease: 60_000 });
    for (const [field] of Object.entries(kind.fields(outer.ownerId, 1)).filter(([, times]) => times === "1"))
      server.execute(["HSET", "job", field, "5"]);
    const nested = await lock.lock({ owner: outer });
    expect(await lock.getHoldCount({ owner: outer })).toBe(2);
    await nested.unlock();
    await outer.unlock();
    expect(await view.keys()).toEqual([]);
  },
);
