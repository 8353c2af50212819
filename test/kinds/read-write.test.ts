/** Contract section 4: both sides of a read-write lock: who goes first, and what late answers and lost ones change. */
import { expect } from "vitest";
import { readHold } from "../../src/base/names.js";
import type { Hold, Lock } from "../../src/index.js";
import {
  failure,
  NAME,
  type Party,
  READ,
  row,
  type VirtualPlace,
  type Watched,
  watch,
} from "../support/place/index.js";

const kinds = [READ];
const client = { pollCap: 600_000, commandTimeout: 30_000, watchdogTimeout: 900_000 };

const sidesOf = (party: Party, preferWriters = true): { read: Lock; write: Lock } => {
  const both = party.client.getReadWriteLock(NAME, { preferWriters });
  return { read: both.readLock(), write: both.writeLock() };
};

interface Sides {
  readonly read: Lock;
  readonly write: Lock;
  readonly theirRead: Lock;
  readonly theirWrite: Lock;
}

const withSides = (body: (place: VirtualPlace & Sides) => Promise<unknown>) => (place: VirtualPlace) => {
  const [here, there] = [sidesOf(place.a), sidesOf(place.b)];
  return body({ ...place, ...here, theirRead: there.read, theirWrite: there.write });
};

const states = (calls: readonly Watched[]) => calls.map(({ state }) => state);

async function unlockAll(holds: readonly (Hold | null | undefined)[]): Promise<void> {
  for (const hold of holds) await hold?.unlock();
}

row(
  "twenty readers that come again and again cannot keep a writer out [§4 prefer-writers] [F35]",
  { kinds },
  withSides(async ({ read, theirRead, server, party, pass }) => {
    const { write } = sidesOf(party());
    const section = () => new Promise<void>((done) => void server.clock.after(50, done));
    let isOver = false;
    const loop = async (i: number) => {
      while (!isOver) await (i % 2 ? read : theirRead).run(section);
    };
    const readers: Promise<void>[] = [];
    for (let i = 0; i < 20; i++) {
      readers.push(loop(i));
      await pass(2.5);
    }
    for (let round = 0; round < 4; round++) {
      const writer = watch(write.lock());
      await pass(55);
      expect(writer.value?.isHeld).toBe(true);
      await writer.value?.unlock();
      await pass(120);
    }
    isOver = true;
    await pass(200);
    await Promise.all(readers);
  }),
);

row(
  "many readers wait without a command and are let in at once by few, each with its own lease [§4 read-write] [§4 reader-leases]",
  { kinds, client },
  withSides(async ({ read, theirRead, theirWrite, server, pass, settle, view }) => {
    await (await theirRead.lock()).unlock();
    const writing = await theirWrite.lock();
    const leases = Array.from({ length: 120 }, (_, i) => 300_000 + 100 * i);
    const readers = leases.map((lease) => watch(read.lock({ lease })));
    await settle();
    server.took();
    await pass(10_000);
    expect(server.took()).toEqual([]);
    await writing.unlock();
    await settle();
    // The release, and one try of each: the first granted one tells the other readers.
    expect(server.took().length).toBeLessThanOrEqual(leases.length + 1);
    const holds = readers.map(({ value }) => value as Hold);
    const counts = Object.fromEntries(holds.map(({ ownerId }) => [ownerId, "1"]));
    expect(await view.hash()).toEqual({ mode: "read", ...counts });
    for (const [i, { ownerId }] of holds.entries())
      expect(server.ttl(readHold(NAME, ownerId, 1))).toBe(leases[i]);
    await unlockAll(holds);
  }),
);

row(
  "while a writer waits only those who read already get in, and with preferWriters: false every reader does [§4 prefer-writers]",
  { kinds, client },
  withSides(async ({ client: mine, read, theirRead, theirWrite, party, pass, settle, b }) => {
    const third = party();
    await mine.scope(async () => {
      const reading = await read.lock();
      expect(await theirWrite.tryLock()).toBeNull();
      const before = await theirRead.tryLock();
      expect(before?.isHeld).toBe(true);
      await before?.unlock();
      const writer = watch(theirWrite.lock());
      await settle();
      const late = watch(sidesOf(third).read.tryLock(2_500));
      await pass(2_500);
      expect([await theirRead.tryLock(), late.outcome]).toEqual([null, null]);
      const bold = await sidesOf(third, false).read.tryLock();
      const again = await read.lock({ wait: 0 });
      await read.run(() => read.run(() => {}));
      expect([bold?.isHeld, again.isHeld, writer.state]).toEqual([true, true, "pending"]);
      await unlockAll([bold, again, reading]);
      await settle();
      await writer.value?.unlock();
      const second = await read.lock();
      const modest = watch(sidesOf(b, false).write.lock());
      await settle();
      const beside = await sidesOf(third).read.tryLock();
      expect([beside?.isHeld, modest.state]).toEqual([true, "pending"]);
      await unlockAll([second, beside]);
      await settle();
      await unlockAll([modest.value]);
      expect(modest.state).toBe("resolved");
    });
  }),
);

for (const way of ["is aborted", "times out", "is ended by the close of its client"] as const) {
  row(
    `a waiting writer that ${way} lets the waiting readers in at once, also when its last try is unanswered [§4 prefer-writers] [§2 nothing-left]`,
    { kinds, client },
    withSides(async ({ read, theirRead, party, pass, settle }) => {
      for (const isUnanswered of [false, true]) {
        const other = party();
        const reading = await read.lock();
        const controller = new AbortController();
        const options = way === "times out" ? { wait: 5_500 } : { signal: controller.signal };
        if (isUnanswered) other.keep("replies");
        const writer = watch(sidesOf(other).write.lock(options));
        await settle();
        const readers = [watch(theirRead.lock()), watch(theirRead.lock())];
        await settle();
        expect(states(readers)).toEqual(["pending", "pending"]);
        if (way === "is aborted") controller.abort(new Error("enough"));
        if (way === "times out") await pass(5_500);
        const closed = way === "is ended by the close of its client" ? other.close() : undefined;
        await settle();
        expect(writer.state).toBe("rejected");
        await other.letGo();
        await pass(100);
        await closed;
        expect(states(readers)).toEqual(["resolved", "resolved"]);
        await unlockAll([reading, ...readers.map(({ value }) => value)]);
      }
    }),
  );
}

row(
  "writers that wait for longer than they count as alive unheard of stay preferred [§4 prefer-writers] [§2 poll-cap]",
  { kinds, client: { ...client, pollCap: 1_500 } },
  withSides(async ({ read, theirWrite, party, pass }) => {
    const { read: late } = sidesOf(party());
    const reading = await read.lock();
    const writers = [1, 2, 3].map(() => watch(theirWrite.run(() => {})));
    for (let ms = 0; ms < 7_000; ms += 100) {
      await pass(100);
      expect(await late.tryLock()).toBeNull();
    }
    await reading.unlock();
    await pass(100);
    expect(states(writers)).toEqual(writers.map(() => "resolved"));
  }),
);

row(
  "a writer whose process stood still until its mark lapsed goes before the readers of that process all the same [§4 prefer-writers] [B50]",
  { kinds, client: { ...client, pollCap: 100 } },
  withSides(async ({ read, theirRead, theirWrite, server, pass, settle }) => {
    const order: string[] = [];
    const reading = await read.lock();
    void watch(theirWrite.run(() => void order.push("write")));
    await settle();
    server.clock.moveTo(server.clock.mono() + 400);
    const tried = theirRead.tryLock();
    void watch(theirRead.run(() => void order.push("read")));
    await settle();
    expect([await tried, order]).toEqual([null, []]);
    await reading.unlock();
    await pass(500);
    expect(order).toEqual(["write", "read"]);
  }),
);

row(
  "a writer whose process is silent counts as dead after three poll caps, and keeps readers out again once it is heard [§4 prefer-writers]",
  { kinds, client: { ...client, pollCap: 300 } },
  withSides(async ({ read, theirWrite, b, pass, settle }) => {
    const reading = await read.lock();
    const writer = watch(theirWrite.lock());
    await settle();
    await b.cut();
    await pass(800);
    expect(await read.tryLock()).toBeNull();
    await pass(200);
    const beside = await read.tryLock();
    expect(beside?.isHeld).toBe(true);
    await b.mend();
    await pass(300);
    expect(await read.tryLock()).toBeNull();
    await unlockAll([reading, beside]);
    await settle();
    expect(writer.value?.isHeld).toBe(true);
    await unlockAll([writer.value]);
  }),
);

row(
  "one of twenty readers dies: it lapses within its lease, whoever renews, and a writer gets in when the live ones leave [§4 reader-leases] [F34]",
  { kinds, client: { ...client, watchdogTimeout: 4_500 } },
  withSides(async ({ read, theirRead, b, party, server, pass, settle }) => {
    const live = await Promise.all(Array.from({ length: 19 }, () => read.lock()));
    const dead = await theirRead.lock();
    await b.cut();
    const writer = watch(sidesOf(party()).write.lock());
    const ttl = () => server.ttl(readHold(NAME, dead.ownerId, 1));
    await pass(4_499);
    expect(ttl()).toBeGreaterThan(0);
    await pass(1);
    expect(ttl()).toBe(-2);
    await pass(9_000);
    expect([ttl(), writer.state, live.every(({ isHeld }) => isHeld)]).toEqual([-2, "pending", true]);
    await unlockAll(live);
    await settle();
    expect(writer.value?.isHeld).toBe(true);
    await unlockAll([writer.value]);
    await b.mend();
  }),
);

row(
  "a grant or a mark that is sent again after things have changed excludes nobody [§4 prefer-writers] [§4 downgrade] [§2 counts-once]",
  { kinds, client },
  withSides(async ({ read, write, theirRead, theirWrite, a, settle, view }) => {
    await (await read.lock()).unlock();
    a.keep("replies");
    const reader = watch(read.lock());
    await settle();
    const writer = watch(theirWrite.lock());
    await settle();
    await a.reconnect();
    expect([reader.value?.isHeld, await view.count()]).toEqual([true, 1]);
    await unlockAll([reader.value]);
    await settle();
    await unlockAll([writer.value]);
    a.keep("requests");
    const writing = watch(write.lock());
    await settle();
    await a.sendTwice();
    const reading = await read.lock({ owner: writing.value as Hold });
    await unlockAll([writing.value]);
    await a.letGo();
    const beside = await theirRead.tryLock();
    expect(beside?.isHeld).toBe(true);
    await unlockAll([beside, reading]);
  }),
);

for (const first of ["read", "write"] as const) {
  row(
    `a scope that waits for both sides, the ${first} side first, gets both, or without preference is refused one [§4 upgrade-refused] [§4 downgrade]`,
    { kinds, client },
    withSides(async ({ client: mine, a, theirWrite, settle, pass }) => {
      for (const preferWriters of [true, false]) {
        const hold = await theirWrite.lock();
        const sides = sidesOf(a, preferWriters);
        await mine.scope(async () => {
          const calls = [watch(sides[first].lock())];
          await settle();
          calls.push(watch(sides[first === "read" ? "write" : "read"].lock()));
          await settle();
          await hold.unlock();
          await pass(100);
          const outcomes = calls.map(({ state, outcome }) => (state === "resolved" ? state : outcome));
          if (preferWriters) expect(outcomes).toEqual(["resolved", "resolved"]);
          else for (const outcome of outcomes) expect(["resolved", "UPGRADE_REFUSED"]).toContain(outcome);
          expect(outcomes).toContain("resolved");
          await unlockAll(calls.map(({ value }) => value));
        });
        await settle();
      }
    }),
  );
}

row(
  "a release that comes while the answer to a try is on its way wakes the try's call, though its channel is known [§2 woken-by-message] [B19]",
  { kinds, client },
  withSides(async ({ write, theirRead, theirWrite, b, settle, pass }) => {
    const hold = await write.lock();
    const reader = watch(theirRead.run(() => {}));
    await settle();
    // The refusal of the writer arrives after the message of the release, which comes on another connection.
    b.keep("replies");
    const writer = watch(theirWrite.run(() => {}));
    await settle();
    await hold.unlock();
    await settle();
    await b.letGo();
    await pass(100);
    expect(states([reader, writer])).toEqual(["resolved", "resolved"]);
  }),
);

row(
  "a write that was called while its owner wrote re-enters, though a read is granted and the write given back before it [§4 downgrade] [B86]",
  { kinds, client },
  withSides(({ client: mine, read, write }) =>
    mine.scope(async () => {
      const writing = await write.lock();
      const calls = [read.lock(), write.lock()];
      const unlocking = writing.unlock();
      const holds = await Promise.all(calls);
      await unlocking;
      expect([...holds.map(({ isHeld }) => isHeld), await read.getHoldCount()]).toEqual([true, true, 1]);
      await unlockAll(holds);
    }),
  ),
);

row(
  "a reader whose lease is gone in Redis is told so by the next renewal, and the only one that nobody took it [§4 reader-leases] [§2 loss-noticed]",
  { kinds, client: { watchdogTimeout: 4_500 } },
  withSides(async ({ read, a, server, pass }) => {
    a.listen("lost");
    for (const isAlone of [false, true]) {
      const lost = await read.lock();
      const other = isAlone ? undefined : await read.lock();
      server.delete(readHold(NAME, lost.ownerId, 1));
      expect(await read.isHeldByCurrentOwner({ owner: lost })).toBe(false);
      await pass(2_000);
      expect([lost.isHeld, other?.isHeld ?? true]).toEqual([false, true]);
      const { ownerId } = lost;
      expect(a.heard("lost").at(-1)).toMatchObject({ lockName: NAME, kind: "readwrite", ownerId });
      expect(await failure(lost.unlock())).toMatchObject({
        code: "LOCK_LOST",
        reason: isAlone ? "expired" : expect.any(String),
      });
      await other?.unlock();
    }
  }),
);

row(
  "a downgrade costs one command for each of its steps [§4 downgrade] [§2 one-round-trip]",
  { kinds, client },
  withSides(({ client: mine, read, write, server }) =>
    mine.scope(async () => {
      for (const side of [read, write]) await (await side.lock()).unlock();
      server.took();
      for (const step of [() => write.lock(), () => read.lock(), () => write.unlock(), () => read.unlock()]) {
        await step();
        expect(server.took()).toHaveLength(1);
      }
    }),
  ),
);

row(
  "a read lock whose counts say more than there is can be looked at and forced away all the same [§2 queries] [B8]",
  { kinds, client },
  withSides(async ({ read, write, client: mine, server }) => {
    const reader = (i: number) => [`b0e5b1a2-0000-4000-8000-000000000000:${i}`, "99999"] as const;
    server.give({ mode: "read", ...Object.fromEntries(Array.from({ length: 200 }, (_, i) => reader(i))) });
    expect([await write.tryLock(), await read.isLocked()]).toEqual([null, true]);
    expect(await mine.inspect(NAME)).not.toBeNull();
    expect([await read.forceUnlock(), server.hash()]).toEqual([true, {}]);
  }),
);
