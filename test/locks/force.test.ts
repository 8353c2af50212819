/** forceUnlock(): holders in this process are told at once, and holders in other processes later. In virtual time. */
import { describe, expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import {
  expectNothingLeft,
  failure,
  type KindScene,
  NAME,
  Party,
  sceneOf,
  sidesOf,
  testIn,
  testInScope,
  watch,
} from "./scene.js";

describe.each(byName(KINDS))("%s", (_, kind) => {
  const open = (): KindScene => {
    const place = sceneOf(kind, { commandTimeout: 1_000, watchdogTimeout: 9_000 });
    place.a.listen("lost");
    place.b.listen("lost");
    return place;
  };
  const test = testIn(open);
  const FORCED = { code: "LOCK_LOST", reason: "forced", lockName: NAME };

  test("is true if somebody held it, and the holds of this client are lost as forced", async (place) => {
    const { lock, server, a } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer, lease: 5_000 });
    expect(await lock.forceUnlock()).toBe(true);
    for (const hold of [outer, inner]) {
      expect(hold.signal.reason).toMatchObject(FORCED);
      expect(await failure(hold.unlock())).toMatchObject(FORCED);
    }
    expect(a.heard("lost").map(({ reason }) => reason)).toEqual(["forced", "forced"]);
    expect(server.hash()).toEqual({});
  });

  test("as the first call on a cluster finds out how releases are announced there", async ({ server }) => {
    server.instead = ({ name }) => (name === "PUBSUB" ? [] : undefined);
    const { client } = new Party(server, {}, { isCluster: true, slots: [], nodes: () => [] });
    expect(await kind.make(client, NAME).forceUnlock()).toBe(false);
    const forced = server.ran.filter(({ name }) => name.endsWith("/force"));
    expect(forced).toMatchObject([{ args: expect.arrayContaining(["SPUBLISH"]) }]);
  });

  test("is false if nobody held it", async ({ lock }) => {
    expect(await lock.forceUnlock()).toBe(false);
  });

  test("that found nothing does nothing to the next holder when its command arrives once more [B123]", async (place) => {
    const { lock, twin, a, settle, server } = place;
    a.keep("requests");
    const force = watch(lock.forceUnlock());
    await settle();
    await a.reconnect();
    expect(force.outcome).toBe(false);
    const hold = await twin.lock({ lease: 60_000 });
    await a.letGo();
    expect(server.hash()).toEqual(kind.fields(hold.ownerId, 1));
    await hold.unlock();
  });

  test("tells another client of the process on the same server before it resolves", async (place) => {
    const { lock, twin, b, settle } = place;
    const theirs = await twin.lock();
    expect(await lock.forceUnlock()).toBe(true);
    expect(theirs.signal.reason).toMatchObject(FORCED);
    expect(b.heard("lost").map(({ reason }) => reason)).toEqual(["forced"]);
    await settle();
  });

  test("tells another client of the process also of a grant that is on its way [B99]", async (place) => {
    const { lock, twin, b, settle } = place;
    await (await twin.lock()).unlock();
    b.keep("replies");
    const theirs = watch(twin.lock());
    await settle();
    const forced = watch(lock.forceUnlock());
    await settle();
    await b.letGo();
    expect(forced.outcome).toBe(true);
    expect(theirs.value?.signal.reason).toMatchObject(FORCED);
  });

  test("does not tell another client of the process whose try on its way comes after it", async (place) => {
    const { lock, twin, b, settle } = place;
    await (await twin.lock()).unlock();
    await lock.lock();
    b.keep("requests");
    const theirs = watch(twin.lock());
    await settle();
    const forced = watch(lock.forceUnlock());
    await settle();
    await b.letGo();
    expect([forced.outcome, theirs.value?.isHeld]).toEqual([true, true]);
    await theirs.value?.unlock();
  });

  test("means nothing to a lock of the same name on another server", async ({ lock }) => {
    const elsewhere = open();
    const other = await elsewhere.lock.lock();
    await lock.lock();
    expect(await lock.forceUnlock()).toBe(true);
    await elsewhere.settle();
    expect(other.isHeld).toBe(true);
    // A later loss of the other server's hold has its own reason, because the force was not on that server.
    elsewhere.server.delete();
    expect(await failure(other.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await expectNothingLeft(elsewhere);
  });

  test("leaves no suspicion behind with a client whose server, another one, did not answer in time [B125]", async (place) => {
    const elsewhere = open();
    const other = await elsewhere.lock.lock();
    await place.lock.lock();
    elsewhere.a.keep("requests");
    void watch(place.lock.forceUnlock());
    await place.settle();
    await elsewhere.advance(1_500);
    await elsewhere.a.letGo();
    expect(other.isHeld).toBe(true);
    elsewhere.server.delete();
    expect(await failure(other.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await expectNothingLeft(elsewhere);
  });

  test("does not wait without end for a client whose server does not answer", async (place) => {
    const { lock, twin, b, advance } = place;
    const theirs = await twin.lock();
    b.keep("replies");
    const forced = watch(lock.forceUnlock());
    await advance(999);
    expect(forced.outcome).toBe("pending");
    await advance(1);
    expect(forced.outcome).toBe(true);
    await b.letGo();
    // The other client learns of the force, and of its reason, by its next renewal.
    await advance(12_500);
    expect(theirs.signal.reason).toMatchObject(FORCED);
  });

  test("wakes those that wait", async ({ lock, twin, rival, settle }) => {
    await lock.lock();
    const waiting = watch(rival.lock());
    await settle();
    expect(waiting.outcome).toBe("pending");
    await twin.forceUnlock();
    await settle();
    expect(waiting.value?.isHeld).toBe(true);
    await waiting.value?.unlock();
  });

  test("leaves a hold alone that was granted after it was called", async ({ lock, a, settle }) => {
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
  });

  test("is the reason of a loss that a holder is told of before the answer to it is here", async (place) => {
    const { lock, a, settle } = place;
    const hold = await lock.lock();
    a.keep("requests");
    const forced = watch(lock.forceUnlock());
    await settle();
    const extended = watch(hold.extend(60_000));
    await settle();
    await a.letGo();
    expect(forced.outcome).toBe(true);
    expect(extended.error).toMatchObject(FORCED);
  });

  test("by another client is the reason of a loss that a nested call under way is told of", async (place) => {
    const { lock, twin, a, settle } = place;
    const hold = await lock.lock();
    a.keep("requests");
    const nested = watch(lock.tryLock(0, undefined, { owner: hold }));
    await settle();
    const forced = watch(twin.forceUnlock());
    await settle();
    await a.letGo();
    expect(forced.outcome).toBe(true);
    expect(hold.signal.reason).toMatchObject(FORCED);
    // The nested call takes the lock as a new one, because the force has freed it.
    expect(nested.value?.isHeld).toBe(true);
    await nested.value?.unlock();
  });

  test("means nothing to a hold of another lock, of this client or another", async (place) => {
    const { lock, twin, a, b, server } = place;
    const holds = await Promise.all([a, b].map(({ client }, i) => kind.make(client, `other-${i}`).lock()));
    await twin.lock();
    expect(await lock.forceUnlock()).toBe(true);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, true]);
    for (const [i, hold] of holds.entries()) {
      server.delete(`other-${i}`);
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    }
  });

  test("is told as such also while renewals are not answered", async ({ lock, twin, a, advance }) => {
    a.listen("suspended");
    const hold = await lock.lock();
    a.keep("requests");
    await advance(5_000);
    expect(a.heard("suspended")).toHaveLength(1);
    await a.reconnect();
    expect(await lock.forceUnlock()).toBe(true);
    expect(hold.signal.reason).toMatchObject(FORCED);
    expect(await twin.forceUnlock()).toBe(false);
  });

  test("that fails leaves no suspicion behind", async ({ lock, a, advance, server }) => {
    const hold = await lock.lock();
    a.keep("requests");
    const forced = watch(lock.forceUnlock());
    await advance(1_000);
    expect(forced.outcome).toBe("UNAVAILABLE");
    await a.reconnect();
    await advance(1);
    server.delete();
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("by another process is noticed by the next renewal, as a loss", async ({ lock, server, advance }) => {
    const hold = await lock.lock();
    server.delete();
    await advance(4_000);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("tells nobody whose client is closed", async ({ lock, server }) => {
    const clients = (globalThis as Record<symbol, unknown>)[Symbol.for("holdfast.clients/1")] as Set<unknown>;
    const { size } = clients;
    const third = new Party(server);
    const theirs = await kind.make(third.client, NAME).lock({ lease: 60_000 });
    await third.client.close({ timeout: 0 });
    expect(theirs.signal.reason).toMatchObject({ reason: "closed" });
    expect(clients.size).toBe(size);
    expect(await lock.forceUnlock()).toBe(false);
  });
});

const test = testInScope(() => sidesOf({ commandTimeout: 1_000 }));

test("of one side leaves the other alone", async ({ read, write, a, server }) => {
  await a.client.scope(async () => {
    const holds: Hold[] = [await write.lock(), await read.lock()];
    expect(await write.forceUnlock()).toBe(true);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, true]);
    expect(holds[0]?.signal.reason).toMatchObject({ reason: "forced" });
    expect(server.hash()).toEqual({ mode: "read", [holds[1]?.ownerId as string]: "1" });
    server.delete();
    // The force was on the write side, so it is not the reason here.
    expect(await failure(holds[1]?.unlock() as Promise<void>)).toMatchObject({ reason: "expired" });
  });
});

test("of the read side leaves a writer's lock the time of its write holds [B205]", async (place) => {
  const { read, theirRead, write, server, settle } = place;
  const hold = await write.lock({ lease: 5_000 });
  for (const side of [read, theirRead]) {
    const reads = await read.lock({ lease: 100_000 });
    expect(await side.forceUnlock()).toBe(true);
    await settle();
    expect(reads.signal.aborted).toBe(true);
    expect(server.ttl()).toBeLessThanOrEqual(5_000);
    expect(await failure(reads.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  }
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
});

test("of the read side by another client is told to those who read", async ({
  read,
  write,
  theirRead,
  a,
}) => {
  await a.client.scope(async () => {
    const holds = [await write.lock(), await read.lock()];
    expect(await theirRead.forceUnlock()).toBe(true);
    expect(holds.map(({ isHeld }) => isHeld)).toEqual([true, false]);
    expect(holds[1]?.signal.reason).toMatchObject({ reason: "forced" });
    await write.unlock();
  });
});

test("by another client is no reason of what is lost later [B125]", async ({
  write,
  read,
  theirRead,
  a,
  server,
}) => {
  await a.client.scope(async () => {
    await write.lock();
    await read.lock();
    expect(await theirRead.forceUnlock()).toBe(true);
    const next = await read.lock();
    server.delete();
    expect(await failure(next.unlock())).toMatchObject({ reason: "expired" });
  });
});

test("of a side on another server leaves no suspicion behind when that side was given back before its server answered [B138]", async ({
  read,
  settle,
}) => {
  await read.lock();
  const elsewhere = sidesOf({ commandTimeout: 1_000 });
  const { a, server } = elsewhere;
  await a.client.scope(async () => {
    await elsewhere.write.lock();
    const given = await elsewhere.read.lock();
    a.keep("requests");
    void watch(read.forceUnlock());
    await settle();
    await elsewhere.advance(1_500);
    void watch(given.unlock());
    await a.letGo();
    const next = await elsewhere.read.lock();
    server.delete();
    expect(await failure(next.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });
});

test("of both sides, whose answers are lost, is the reason of what commands under way are told of", async (place) => {
  const { read, write, a, advance } = place;
  await a.client.scope(async () => {
    const sides = [write, read];
    const holds: Hold[] = [];
    for (const side of sides) holds.push(await side.lock({ lease: 60_000 }));
    a.keep("replies");
    for (const side of sides) void watch(side.forceUnlock());
    await advance(500);
    for (const hold of holds) void watch(hold.extend(60_000));
    await advance(500);
    await a.letGo();
    for (const { signal } of holds) expect(signal.reason).toMatchObject({ reason: "forced" });
  });
});

test("of a side that nobody has is false, and leaves the other alone", async ({ read, write }) => {
  const hold = await read.lock();
  expect(await write.forceUnlock()).toBe(false);
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
});
