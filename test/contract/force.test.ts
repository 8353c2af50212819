/** Contract section 2: forceUnlock(), and what the holders learn of it. */
import { expect } from "vitest";
import type { Hold } from "../../src/index.js";
import {
  failure,
  MULTI,
  openVirtual,
  READ,
  RED,
  row,
  SINGLE,
  type VirtualPlace,
  watch,
} from "../support/place/index.js";
import { expectNothingLeft } from "../support/place/virtual.js";

const client = { commandTimeout: 1_000, watchdogTimeout: 9_000, pollCap: 600_000 };
const FORCED = { code: "LOCK_LOST", reason: "forced" };
const EXPIRED = { code: "LOCK_LOST", reason: "expired" };

row.real(
  "forceUnlock() is true if anybody held the lock, and false otherwise [§2 force-unlock]",
  { kinds: SINGLE },
  async ({ lock, twin, view, kind }) => {
    expect(await lock.forceUnlock()).toBe(false);
    const theirs = await twin.lock();
    await twin.lock({ owner: theirs });
    expect([await lock.forceUnlock(), await view.keys()]).toEqual([true, []]);
    await view.seize();
    // A reader's force is for readers, and here a writer has the lock.
    if (kind.exclusive) expect(await lock.forceUnlock()).toBe(true);
    await failure(theirs.unlock());
    await view.wipe();
  },
);

row.real(
  "forceUnlock() ends the holds of its client at once, as forced [§2 force-unlock] [§6 reasons] [F21]",
  async ({ lock, client: mine, kind }) => {
    const told: string[] = [];
    mine.on("lost", (event) => void (event.kind === kind.kind && told.push(event.reason)));
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer, lease: 5_000 });
    expect(await lock.forceUnlock()).toBe(true);
    for (const hold of [inner, outer]) {
      expect(hold.signal.reason).toMatchObject({ ...FORCED, lockName: lock.name });
      expect(await failure(hold.unlock())).toMatchObject(FORCED);
    }
    expect(told).toEqual(["forced", "forced"]);
  },
);

row(
  "a holder in another client learns of a force as of any loss, by its next command [§2 force-unlock] [§2 loss-noticed]",
  { kinds: SINGLE, client },
  async ({ lock, twin, pass }) => {
    const theirs = await twin.lock();
    await lock.forceUnlock();
    await pass(4_000);
    expect(theirs.signal.reason).toMatchObject(EXPIRED);
  },
);

row(
  "a holder in another client, whose grant may be on its way, has lost the lock by its next command [§2 force-unlock] [B99]",
  { kinds: SINGLE, client },
  async ({ lock, twin, b, settle, pass, rival }) => {
    await (await twin.lock()).unlock();
    b.keep("replies");
    const theirs = watch(twin.lock());
    await settle();
    const forced = watch(lock.forceUnlock());
    await settle();
    await b.letGo();
    await pass(5_000);
    expect([forced.outcome, theirs.value?.isHeld]).toEqual([true, false]);
    await (await rival.tryLock())?.unlock();
  },
);

row(
  "forceUnlock() wakes those who wait [§2 force-unlock] [§2 woken-by-message]",
  { kinds: SINGLE, client },
  async ({ lock, twin, rival, settle }) => {
    await lock.lock();
    const waiting = watch(rival.lock());
    await settle();
    expect(waiting.state).toBe("pending");
    await twin.forceUnlock();
    await settle();
    expect(waiting.value?.isHeld).toBe(true);
    await waiting.value?.unlock();
  },
);

row(
  "a lock() on its way when forceUnlock() is called holds nothing that was forced [§2 force-unlock] [B85]",
  { kinds: SINGLE },
  async ({ lock }) => {
    const taking = lock.lock({ lease: 60_000 });
    const [hold, forced] = await Promise.all([taking, lock.forceUnlock()]);
    expect(hold.isHeld).toBe(!forced);
    if (forced) expect(await failure(hold.unlock())).toMatchObject(FORCED);
    else await hold.unlock();
  },
);

for (const [title, meet] of [
  ["unlock()", (hold: Hold) => hold.unlock()],
  ["extend()", (hold: Hold) => hold.extend(90_000)],
] as const) {
  row(
    `an ${title} that meets a force on its way is LOCK_LOST as forced [§2 force-unlock] [B52]`,
    { kinds: [...SINGLE, MULTI] },
    async ({ lock }) => {
      const hold = await lock.lock();
      const [forced, error] = await Promise.all([lock.forceUnlock(), failure(meet(hold))]);
      expect(forced).toBe(true);
      expect(error).toMatchObject(FORCED);
    },
  );
}

row(
  "a nested call that meets a force on its way takes the lock anew [§2 force-unlock] [§2 loss-noticed]",
  { kinds: SINGLE, client },
  async ({ lock, a, settle }) => {
    const hold = await lock.lock();
    a.keep("requests");
    const forced = watch(lock.forceUnlock());
    const nested = watch(lock.tryLock(0, undefined, { owner: hold }));
    await settle();
    await a.letGo();
    await settle();
    expect(forced.outcome).toBe(true);
    expect(hold.signal.reason).toMatchObject(FORCED);
    expect(nested.value?.isHeld).toBe(true);
    await nested.value?.unlock();
  },
);

row(
  "forceUnlock() leaves a hold alone that was granted after it was called [§2 force-unlock]",
  { kinds: SINGLE, client },
  async ({ lock, a, settle }) => {
    const first = await lock.lock();
    a.keep("replies");
    const forced = watch(lock.forceUnlock());
    await settle();
    const next = watch(lock.lock());
    await settle();
    await a.letGo();
    expect(forced.outcome).toBe(true);
    expect(first.signal.reason).toMatchObject(FORCED);
    expect(next.value?.isHeld).toBe(true);
    await next.value?.unlock();
  },
);

row(
  "a force that found nothing does nothing to the next holder when its command arrives once more [§2 counts-once] [B123]",
  { kinds: SINGLE, client },
  async ({ lock, twin, a, settle, view }) => {
    a.keep("requests");
    const forced = watch(lock.forceUnlock());
    await settle();
    await a.reconnect();
    expect(forced.outcome).toBe(false);
    const hold = await twin.lock({ lease: 60_000 });
    await a.letGo();
    expect(await view.count()).toBe(1);
    await hold.unlock();
  },
);

row(
  "a forced hold leaves nothing, though its lock() arrives once more [§2 counts-once] [§2 wire-id-once] [B112]",
  { kinds: SINGLE, client },
  async ({ lock, twin, a, settle, view }) => {
    a.keep("requests");
    const call = watch(lock.lock({ lease: 600_000 }));
    await settle();
    await a.reconnect();
    expect(await twin.forceUnlock()).toBe(true);
    await failure((call.value as Hold).unlock());
    await a.letGo();
    expect([call.value?.isHeld, await view.hash()]).toEqual([false, {}]);
  },
);

row(
  "a force without an answer is no reason of a later loss [§6 reasons] [B125] [B138]",
  { kinds: SINGLE, client },
  async ({ lock, a, pass, view }) => {
    const hold = await lock.lock();
    a.keep("requests");
    const forced = watch(lock.forceUnlock());
    await pass(1_000);
    expect(forced.outcome).toBe("UNAVAILABLE");
    await a.reconnect();
    await pass(1);
    await view.wipe();
    const { reason } = (await failure(hold.unlock())) as { reason?: string };
    expect(["forced", "expired"]).toContain(reason);
    const next = await lock.lock();
    await view.wipe();
    expect(await failure(next.unlock())).toMatchObject(EXPIRED);
  },
);

row(
  "a force means nothing to a lock of the same name on another server, or to another lock [§2 force-unlock] [B14] [B125] [B138]",
  { kinds: [...SINGLE, RED], client },
  async ({ lock, other, kind, view }) => {
    const elsewhere: VirtualPlace = openVirtual(kind, client);
    const holds = [await elsewhere.lock.lock(), await other.lock()];
    await lock.lock();
    expect(await lock.forceUnlock()).toBe(true);
    await elsewhere.settle();
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, true]);
    await elsewhere.view.wipe();
    await view.wipe();
    for (const hold of holds) expect(await failure(hold.unlock())).toMatchObject(EXPIRED);
    await expectNothingLeft(elsewhere);
  },
);

row(
  "the first call on a cluster, also a forceUnlock(), announces by SPUBLISH where the servers can [§1 options]",
  { kinds: SINGLE },
  async ({ kind, server, party }) => {
    server.instead = ({ name }) => (name === "PUBSUB" ? [] : undefined);
    const { clients } = party({}, { isCluster: true, slots: [], nodes: () => [] });
    expect(await kind.make(clients, "job").forceUnlock()).toBe(false);
    expect(server.ran.filter(({ args }) => args.includes("SPUBLISH"))).not.toEqual([]);
  },
);

/** Both sides of a read-write lock, of this process; those of the other one. */
const sides = ({ client: mine, rivals }: VirtualPlace) => {
  const [here, there] = [mine, rivals].map((each) => each.getReadWriteLock("job"));
  return { read: here?.readLock(), write: here?.writeLock(), theirRead: there?.readLock() } as {
    [side in "read" | "write" | "theirRead"]: ReturnType<
      ReturnType<typeof mine.getReadWriteLock>["readLock"]
    >;
  };
};

row(
  "forceUnlock() of a side that nobody has is false, and leaves the other alone [§2 force-unlock]",
  { kinds: [READ] },
  async (place) => {
    const { read, write } = sides(place);
    const hold = await read.lock();
    expect(await write.forceUnlock()).toBe(false);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  },
);

row(
  "an unlock() after another client has forced the lock tells whether somebody holds it by then [§6 reasons] [B307]",
  async ({ lock, twin, rival }) => {
    for (const next of [undefined, rival]) {
      const hold = await lock.lock();
      expect(await twin.forceUnlock()).toBe(true);
      const theirs = await next?.lock();
      const reason = theirs ? "taken" : "expired";
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason });
      expect(theirs?.isHeld).not.toBe(false);
      await theirs?.unlock();
    }
  },
);

row(
  "forceUnlock() of the write side ends all holds of an owner on both sides, as its next unlock() tells if another client did it [§2 force-unlock] [§6 reasons] [B13]",
  { kinds: [READ] },
  async (place) => {
    const { read, write } = sides(place);
    const theirWrite = place.rivals.getReadWriteLock("job").writeLock();
    for (const [by, loss] of [
      [write, FORCED],
      [theirWrite, EXPIRED],
    ] as const) {
      const writing = await write.lock();
      const reading = await read.lock({ owner: writing });
      expect(await by.forceUnlock()).toBe(true);
      await place.settle();
      for (const hold of [writing, reading]) expect(await failure(hold.unlock())).toMatchObject(loss);
    }
  },
);

row(
  "forceUnlock() of the read side is for readers: it leaves a writer's lock, and the time that it has, as they are [§2 force-unlock] [B205]",
  { kinds: [READ] },
  async (place) => {
    const { read, write, theirRead } = sides(place);
    const writing = await write.lock({ lease: 5_000 });
    const reading = await read.lock({ lease: 4_000, owner: writing });
    const outcomes = [await read.forceUnlock(), await theirRead.forceUnlock()];
    expect([outcomes, writing.isHeld, reading.isHeld]).toEqual([[false, false], true, true]);
    for (const hold of [reading, writing]) await hold.unlock();
  },
);
