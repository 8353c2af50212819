/** Contract section 4: one owner, and many, on both sides of a read-write lock. */
import { expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold, Lock } from "../../src/index.js";
import { failure, READ, row, type VirtualPlace, watch } from "../support/place/index.js";

const kinds = [READ];
const client = { watchdogTimeout: 9_000 };
const leaves = (lease: number): number => lease * 0.99 - 2;

interface Sides {
  readonly read: Lock;
  readonly write: Lock;
  readonly theirRead: Lock;
  readonly theirWrite: Lock;
}

function sidesOf({ client: mine, rivals }: Pick<VirtualPlace, "client" | "rivals">): Sides {
  const [here, there] = [mine.getReadWriteLock("job"), rivals.getReadWriteLock("job")];
  return {
    read: here.readLock(),
    write: here.writeLock(),
    theirRead: there.readLock(),
    theirWrite: there.writeLock(),
  };
}

/** A row in a scope of the first client, so that its calls have one owner. */
const inScope = (body: (place: VirtualPlace & Sides) => Promise<unknown>) => (place: VirtualPlace) =>
  place.client.scope(() => body({ ...place, ...sidesOf(place) }));

row(
  "an owner that only reads and asks for the write side is refused at once, without a command [§4 upgrade-refused] [F36]",
  { kinds },
  inScope(async ({ read, write, server }) => {
    const hold = await read.lock();
    server.took();
    for (const call of [write.lock(), write.tryLock(1_000), write.run(() => 1)])
      expect(await failure(call)).toMatchObject({ code: "UPGRADE_REFUSED", lockName: "job" });
    expect([server.took(), hold.isHeld]).toEqual([[], true]);
    await hold.unlock();
    await write.run(() => 1);
  }),
);

row(
  "a read hold that is over, or on its way back, refuses nobody the write side [§4 upgrade-refused]",
  { kinds },
  inScope(async ({ read, write, server }) => {
    await read.lock({ lease: 1_000 });
    server.clock.moveTo(1_000);
    await (await write.lock()).unlock();
    const other = await read.lock();
    const back = other.unlock();
    const next = await write.lock();
    await back;
    await next.unlock();
  }),
);

row(
  "the writer takes the read side as well, and goes on as a reader without a gap, which wakes readers [§4 downgrade] [F36]",
  { kinds, client: { pollCap: 600_000 } },
  inScope(async ({ read, write, theirRead, settle }) => {
    const writing = await write.lock();
    const reading = await read.lock();
    expect(reading.ownerId).toBe(writing.ownerId);
    expect(await Promise.all([read.getHoldCount(), write.getHoldCount()])).toEqual([1, 1]);
    expect([read.currentHold(), write.currentHold()]).toEqual([reading, writing]);
    const reader = watch(theirRead.lock());
    await settle();
    expect(reader.state).toBe("pending");
    await writing.unlock();
    await settle();
    expect([reading.isHeld, reader.value?.isHeld]).toEqual([true, true]);
    await reading.unlock();
    await reader.value?.unlock();
  }),
);

row(
  "an owner that has both sides may take the write side again, and gives each back by itself [§4 read-write]",
  { kinds },
  inScope(async ({ read, write }) => {
    const holds = [await write.lock(), await read.lock(), await write.lock()];
    expect(new Set(holds.map(({ ownerId }) => ownerId)).size).toBe(1);
    await write.unlock();
    await write.unlock();
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, true, false]);
    expect(await failure(write.unlock())).toMatchObject({ code: "NOT_OWNER" });
    await read.unlock();
  }),
);

row(
  "both sides of an owner have one deadline, which the reader keeps when the writer has gone [§4 downgrade] [§2 one-deadline] [B276]",
  { kinds },
  inScope(async ({ read, write, theirRead, pass }) => {
    const writing = await write.lock({ lease: 20_000 });
    const reading = await read.lock({ lease: 100 });
    expect([writing.remaining, reading.remaining]).toEqual([leaves(20_000), leaves(20_000)]);
    await pass(5_000);
    expect(await read.isHeldByCurrentOwner()).toBe(true);
    await writing.unlock();
    expect([reading.remaining, await theirRead.isLocked()]).toEqual([leaves(20_000) - 5_000, true]);
    await reading.unlock();
  }),
);

row(
  "both sides are kept by the watchdog, and what is left of them after an unlock [§2 watchdog-any] [§4 read-write]",
  { kinds, client },
  inScope(async ({ read, write, pass, server }) => {
    const holds = [await write.lock(), await read.lock(), await read.lock()];
    server.took();
    await pass(4_000);
    expect(server.took().length).toBeLessThanOrEqual(2);
    await pass(30_000);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, true, true]);
    await holds[0]?.unlock();
    await pass(30_000);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, true, true]);
    for (const hold of holds.slice(1)) await hold.unlock();
  }),
);

for (const isWriteOnly of [false, true]) {
  row(
    `an owner whose ${isWriteOnly ? "write side is" : "sides are"} gone in Redis loses all its holds on the lock at the next renewal [§2 shared-loss] [§2 loss-noticed]`,
    { kinds, client },
    inScope(async ({ read, write, pass, server }) => {
      const holds = [await write.lock(), await read.lock()] as [Hold, Hold];
      if (isWriteOnly) {
        server.execute(["HDEL", "job", `${holds[0].ownerId}:write`]);
        server.execute(["HSET", "job", "mode", "read"]);
      } else server.delete();
      await pass(4_000);
      const held = holds.map(({ isHeld }) => isHeld);
      for (const hold of holds) await watch(hold.unlock()).promise.catch(() => {});
      expect(held).toEqual([false, false]);
    }),
  );
}

row(
  "the release of a lost read hold, sent again after its owner reads anew, leaves nothing of the lost hold [§2 lost-is-final] [B63]",
  { kinds, client },
  inScope(async ({ read, theirRead, theirWrite, pass, settle, server }) => {
    // Another reader keeps the key, so that what the lost one left there stays.
    const beside = await theirRead.lock({ lease: 60_000 });
    const lost = await read.lock({ lease: 5_000 });
    server.instead = ({ args }) => {
      if (args.includes("job")) throw new ReplyError("NOREPLICAS Not enough good replicas to write.");
      return undefined;
    };
    await pass(5_100);
    expect(lost.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    server.instead = () => undefined;
    const again = await read.lock({ lease: 20_000 });
    await pass(1_000);
    await beside.unlock();
    await again.unlock();
    await settle();
    const next = await theirWrite.tryLock();
    expect(next?.isHeld).toBe(true);
    await next?.unlock();
  }),
);

row.real(
  "readers share, each with a lease of its own, and a writer waits for the last of them [§4 read-write] [§4 reader-leases] [F34]",
  // If the last reader's client comes too late to tell of its end, the writer finds it by a poll.
  { kinds, client: { pollCap: 2_000 } },
  async (place) => {
    const mine = await place.lock.lock({ lease: 60_000 });
    const theirs = await place.twin.lock({ lease: 900 });
    const writer = watch(place.rival.lock());
    await place.pass(50);
    await mine.unlock();
    expect(writer.state).toBe("pending");
    await place.pass(950);
    const writing = await writer.promise;
    expect([await place.lock.tryLock(), theirs.isHeld]).toEqual([null, false]);
    await writing.unlock();
  },
);

row(
  "the end of a reader leaves Redis the time of the longest reader left, and that of a dead one lapses [§4 reader-leases] [§2 ttl-never-lowered] [F34]",
  { kinds },
  async ({ lock, twin, view, pass, rival, b }) => {
    const mine = await lock.lock({ lease: 60_000 });
    await twin.lock({ lease: 20_000 });
    await b.cut();
    expect(await view.ttl()).toBe(60_000);
    await mine.unlock();
    expect(await view.ttl()).toBe(20_000);
    await pass(20_001);
    await b.mend();
    await (await rival.tryLock())?.unlock();
  },
);

row(
  "an unlock of one side does not reach a hold of the other [§3 scope-unlock]",
  { kinds },
  inScope(async ({ read, write, theirRead, settle }) => {
    const reading = await read.lock();
    expect(await failure(write.unlock())).toMatchObject({ code: "NOT_OWNER" });
    await reading.unlock();
    const theirs = await theirRead.lock();
    const writing = watch(write.lock());
    await settle();
    for (const side of [read, write])
      expect(await failure(side.unlock())).toMatchObject({ code: "NOT_OWNER" });
    await theirs.unlock();
    await settle();
    await writing.value?.unlock();
  }),
);

row(
  "a writer that gives up first in line is followed by the next of its process before any reader of another [§4 prefer-writers] [B82]",
  { kinds },
  async (place) => {
    const { write, theirRead } = sidesOf(place);
    const { a, settle } = place;
    const reading = await theirRead.lock();
    const controller = new AbortController();
    const leaving = watch(write.lock({ signal: controller.signal }));
    await settle();
    const next = watch(write.lock());
    await settle();
    a.keep("requests");
    controller.abort();
    await settle();
    expect(leaving.state).toBe("rejected");
    while (a.onTheirWay > 0) {
      expect(await theirRead.tryLock()).toBeNull();
      await a.letOneGo();
    }
    await a.letGo();
    expect(await theirRead.tryLock()).toBeNull();
    await reading.unlock();
    await settle();
    await next.value?.unlock();
  },
);

row(
  "a reader behind a writer of its process gets the lock when that one gives up, and nobody had heard of it [§4 prefer-writers] [B64] [B83]",
  { kinds, client: { pollCap: 600_000 } },
  async (place) => {
    const { write, read } = sidesOf(place);
    const { pass, settle, server } = place;
    const writing = await write.lock();
    const controller = new AbortController();
    const [next, third] = [watch(write.lock()), watch(write.lock())];
    const last = watch(write.lock({ signal: controller.signal }));
    const reader = watch(read.lock());
    await settle();
    // Hand-overs are so fast that Redis does not know the last writer yet when somebody deletes the lock.
    await writing.unlock();
    await pass(10);
    await next.value?.unlock();
    await settle();
    server.delete();
    expect([third.value?.isHeld, last.state, reader.state]).toEqual([true, "pending", "pending"]);
    controller.abort();
    await pass(100);
    expect(reader.value?.isHeld).toBe(true);
    await reader.value?.unlock();
    await failure(third.value?.unlock() as Promise<void>);
  },
);
