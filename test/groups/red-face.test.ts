/** The parts of a RedLock, its holds, and its events. */
import { expect, test } from "vitest";
import { LockClient, MultiLock, RedLock } from "../../src/index.js";
import { as, failure, recordEvents, refused, untilWaiting } from "../contract/helpers.js";
import { watch } from "../faults/harness.js";
import { startProxy, until } from "../support/index.js";
import { expectNothingLeft, heldOn, joined, LONG, NEVER, Party, parked, useMasters } from "./red-helpers.js";

const masters = await useMasters(3);

test("it is taken on all masters and given back on all, with the ids and the name that belong to it", async () => {
  await using party = await Party.of(masters);
  const { lock, name } = party;
  expect(lock).toBeInstanceOf(MultiLock);
  expect(lock.name).toBe(`${name},${name},${name}`);
  const hold = await joined(await lock.lock());
  expect(await heldOn(party)).toEqual([0, 1, 2]);
  expect(hold).toMatchObject({ lockName: lock.name, isHeld: true });
  expect(hold.members.map(({ lockName }) => lockName)).toEqual([name, name, name]);
  expect(hold.ownerId).toBe(hold.members[0]?.ownerId);
  for (const [i, { ownerId }] of hold.members.entries()) {
    expect(await masters[i]?.call("HGETALL", name)).toEqual([ownerId, "1"]);
  }
  await hold.unlock();
  expect(hold.isHeld).toBe(false);
  await expectNothingLeft(party);
});

test("the constructor refuses too few locks, one lock twice, and what is no lock", async () => {
  await using party = await Party.of(masters);
  const [a, b, c] = party.clients.map((client) => client.getLock(party.name)) as [never, never, never];
  await refused(() => new RedLock(), TypeError);
  await refused(() => new RedLock(a), TypeError);
  await refused(() => new RedLock(a, b), TypeError);
  await refused(() => new RedLock(a, b, party.client(0).getLock(party.name)), TypeError);
  await refused(() => new RedLock(a, b, as(new MultiLock(a, b))), TypeError);
  await refused(() => new RedLock(a, b, as(party.lock)), TypeError);
  for (const wrong of [null, undefined, {}, "name", party.client(0), { name: "x" }]) {
    await refused(() => new RedLock(a, b, as(wrong)), TypeError);
  }
  expect(() => new RedLock(a, b, c)).not.toThrow();
});

test("two members on one server are refused by the first call, whichever it is, and nothing stays taken", async () => {
  await using party = await Party.of(masters);
  await using beside = await startProxy(masters[0] as never);
  const { name } = party;
  const redis = beside.connect();
  const client = new LockClient(redis, { watchdogTimeout: 1_000_000 });
  const make = (other = name): RedLock =>
    new RedLock(party.client(0).getLock(name), client.getLock(other), party.client(1).getLock(name));
  const calls: ((lock: RedLock) => Promise<unknown>)[] = [
    (lock) => lock.lock(),
    (lock) => lock.lock({ wait: NEVER }),
    (lock) => lock.tryLock(),
    (lock) => lock.run(() => "never"),
    (lock) => lock.isLocked(),
    (lock) => lock.remainTimeToLive(),
    (lock) => lock.forceUnlock(),
  ];
  for (const call of calls) {
    for (const lock of [make(), make(`${name}other`)]) {
      expect(await failure(call(lock))).toMatchObject({ code: "UNSUPPORTED", lockName: lock.name });
    }
  }
  // Members of one client that differ by name only.
  const ofOne = new RedLock(...["1", "2", "3"].map((part) => client.getLock(name + part)));
  expect(await failure(ofOne.lock())).toMatchObject({ code: "UNSUPPORTED" });
  await expectNothingLeft(party);
  await client.close();
});

test("events of kind red go to every client of a member, beside those of the members", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER } });
  await using other = await Party.of(masters, { name: party.name });
  const seen = party.clients.map((client) => recordEvents(client));
  const red = (): string[][] =>
    seen.map((events) => events.filter(({ payload }) => payload.kind === "red").map(({ name }) => name));
  const hold = await other.lock.lock();
  const waiter = await parked(party, () => party.lock.lock());
  await hold.unlock();
  const next = await joined(await waiter.done);
  await next.unlock();
  const life = ["waiting", "acquired", "released"];
  expect(red()).toEqual([life, life, life]);
  const acquired = seen[0]?.find(({ name, payload }) => name === "acquired" && payload.kind === "red");
  expect(acquired?.payload).toMatchObject({ lockName: party.lock.name, ownerId: next.ownerId });
  expect(acquired?.payload.waited).toBeGreaterThan(0);
  for (const events of seen) {
    const ofMember = (event: string) =>
      events.some(({ name, payload }) => name === event && payload.kind === "lock");
    await until("the member's events are there", () => ofMember("acquired") && ofMember("released"));
  }
  const forced = await party.lock.lock();
  expect(await party.lock.forceUnlock()).toBe(true);
  const gone = seen[0]?.find(({ name, payload }) => name === "lost" && payload.kind === "red");
  expect(gone?.payload).toMatchObject({ reason: "forced", lockName: party.lock.name });
  expect(await failure(forced.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
});

test("tokens of fenced members are in hold.members, and rise on every master", async () => {
  await using party = await Party.of(masters, { make: (client, name) => client.getFencedLock(name) });
  const tokens: bigint[][] = [];
  for (let i = 0; i < 3; i++) {
    const hold = await party.lock.lock();
    // A majority has granted the hold; the other masters join.
    await until("all are held", () => hold.members.length === masters.length);
    tokens.push(hold.members.map((member) => (member as unknown as { token: bigint }).token));
    await hold.unlock();
  }
  for (const [i, later] of tokens.slice(1).entries()) {
    for (const [k, token] of later.entries()) expect(token).toBeGreaterThan(tokens[i]?.[k] as bigint);
  }
});

test("of read sides many are held at once; the write sides wait for all, and are woken", async () => {
  const client = { pollCap: NEVER };
  const read = { make: (by: LockClient, name: string) => by.getReadWriteLock(name).readLock(), client };
  const write = { make: (by: LockClient, name: string) => by.getReadWriteLock(name).writeLock(), client };
  await using one = await Party.of(masters, read);
  await using two = await Party.of(masters, { ...read, name: one.name });
  await using writer = await Party.of(masters, { ...write, name: one.name });
  const holds = [await one.lock.lock(), await two.lock.lock()];
  expect(await writer.lock.tryLock()).toBeNull();
  const writing = await untilWaiting(writer.client(0), () => writer.lock.lock());
  const state = watch(writing.done);
  await holds[0]?.unlock();
  expect(await one.lock.isLocked()).toBe(true);
  expect(state.state).toBe("pending");
  await holds[1]?.unlock();
  const hold = await writing.done;
  expect(await one.lock.tryLock()).toBeNull();
  await hold.unlock();
  await expectNothingLeft(one);
});

test("a call that waits is seen to wait on each master, by the client of that master [B132]", async () => {
  await using one = await Party.of(masters);
  await using two = await Party.of(masters, { name: one.name, client: { pollCap: NEVER } });
  const hold = await joined(await one.lock.lock());
  const waiting = await untilWaiting(two.client(0), () => two.lock.lock());
  const seen = () =>
    Promise.all(one.clients.map(async (client) => (await client.inspect(one.name))?.waiting));
  const ids = two.clients.map(({ id }) => [id]);
  await until("all masters know", async () => {
    const waits = await seen();
    return JSON.stringify(waits.map((each) => each?.map(({ client }) => client?.id))) === JSON.stringify(ids);
  });
  await hold.unlock();
  const theirs = await waiting.done;
  expect((await two.client(1).inspect(two.name))?.waiting).toEqual([]);
  await theirs.unlock();
  await expectNothingLeft(one);
});

test("fair members work: waiters of several clients are all served", async () => {
  const fair = { make: (by: LockClient, name: string) => by.getFairLock(name), client: { pollCap: NEVER } };
  await using one = await Party.of(masters, fair);
  await using two = await Party.of(masters, { ...fair, name: one.name });
  let [inside, served] = [0, 0];
  const visit = async (): Promise<void> => {
    expect(++inside).toBe(1);
    await Promise.resolve();
    inside--;
    served++;
  };
  await Promise.all([one, two, one, two, one, two].map(({ lock }) => lock.run(visit)));
  expect(served).toBe(6);
  await expectNothingLeft(one);
});

test("queries of another client are answered by the majority", async () => {
  await using party = await Party.of(masters);
  await using other = await Party.of(masters, { name: party.name });
  const { lock } = other;
  expect([await lock.isLocked(), await lock.remainTimeToLive(), await lock.getHoldCount()]).toEqual([
    false,
    -2,
    0,
  ]);
  const hold = await party.lock.lock({ lease: LONG });
  expect(await lock.isLocked()).toBe(true);
  expect(await lock.remainTimeToLive()).toBeGreaterThan(LONG / 2);
  expect(await lock.isHeldByCurrentOwner()).toBe(false);
  expect(await lock.isHeldByCurrentOwner({ owner: hold as never })).toBe(false);
  expect(await party.lock.getHoldCount({ owner: hold })).toBe(1);
  await hold.unlock();
  expect(await lock.isLocked()).toBe(false);
});
