/** Contract section 5: permits with ids: how they stand in Redis, how their leases end, and what the watchdog keeps. */
import { expect } from "vitest";
import { failure, NAME, watch } from "../../support/place/index.js";
import { ID, LEASES, type Numbers, SETTINGS, test, UNKNOWN } from "./place.js";

const NOT_OWNER = { code: "NOT_OWNER", lockName: NAME };

/** Takes `count` of `of` permits, each with this lease, or kept by the watchdog. */
async function take({ permits }: Numbers, count: number, of: number, lease?: number): Promise<string[]> {
  await permits().trySetPermits(of);
  const ids: string[] = [];
  for (let i = 0; i < count; i++) ids.push(await permits().acquire({ lease }));
  return ids;
}

test("a permit is 32 hex digits to its user, and 16 bytes in Redis until its lease ends [§5 permits] [§7 wire]", async (place) => {
  const { permits, left, server, counts } = place;
  const [id = ""] = await take(place, 1, 4, 50_000);
  expect(id).toEqual(ID);
  const [entry] = [...(server.keys.get(LEASES, "zset") ?? [])];
  expect(entry).toEqual([Buffer.from(id, "hex").toString("latin1"), server.clock.wall() + 50_000]);
  const kept = [await permits().acquire(), (await permits().tryAcquire()) ?? ""];
  const long = await permits().acquire({ lease: Number.MAX_SAFE_INTEGER });
  const all = left();
  expect([id, ...kept].map((each) => all[each])).toEqual([
    50_000,
    SETTINGS.watchdogTimeout,
    SETTINGS.watchdogTimeout,
  ]);
  expect(all[long]).toBeGreaterThan(1e12);
  expect([await permits().tryAcquire(), await counts()]).toEqual([null, ["0", 4]]);
});

test("a permit is given back once, by any client, in either case of its digits, and one that nobody has is NOT_OWNER [§5 permits]", async (place) => {
  const { a, permits, counts, pass } = place;
  expect(await failure(permits().release(UNKNOWN))).toMatchObject(NOT_OWNER);
  expect(await counts()).toEqual([null, 0]);
  const [leased = "", other = ""] = await take(place, 2, 3, 60_000);
  const kept = await permits().acquire();
  for (const id of [UNKNOWN, "x"]) {
    expect(await failure(permits(1).release(id))).toMatchObject(NOT_OWNER);
    expect(await permits().tryRelease(id)).toBe(false);
  }
  const elsewhere = a.client.getPermitExpirableSemaphore("other");
  expect(await failure(elsewhere.release(leased))).toMatchObject({ code: "NOT_OWNER", lockName: "other" });
  expect(await counts()).toEqual(["0", 3]);
  await permits(1).release(leased);
  expect(await permits(1).tryRelease(other.toUpperCase())).toBe(true);
  a.listen("lost");
  await permits().release(kept.toUpperCase());
  for (const id of [leased, other, kept]) {
    expect(await failure(permits().release(id))).toMatchObject(NOT_OWNER);
    expect(await permits().tryRelease(id)).toBe(false);
  }
  await pass(10_000);
  expect([await counts(), a.told]).toEqual([["3", 0], []]);
});

test("a permit whose lease is over is free once, for whoever looks first, and nobody can give it back [§5 permits]", async (place) => {
  const { permits, pass, counts } = place;
  const ids = await take(place, 3, 3, 20_000);
  expect(await permits(1).updateLeaseTime(ids[2] ?? "", 60_000)).toBe(true);
  await pass(19_999);
  expect(await permits(1).tryAcquire()).toBeNull();
  await pass(1);
  expect(await failure(permits().release(ids[0] ?? ""))).toMatchObject(NOT_OWNER);
  expect(await permits().tryRelease(ids[1] ?? "")).toBe(false);
  expect(await permits().availablePermits()).toBe(2);
  expect(await permits(1).tryAcquire(0, 60_000)).toEqual(ID);
  expect(await permits(1).updateLeaseTime(ids[0] ?? "", 60_000)).toBe(false);
  expect(await counts()).toEqual(["1", 2]);
});

test("a grant that arrives when its lease is over rejects LOCK_LOST, and the permit is given back [§2 late-grant]", async (place) => {
  const { a, permits, pass, counts } = place;
  await permits().trySetPermits(2);
  a.keep("replies");
  const call = watch(permits().acquire({ lease: 1_000 }));
  await pass(990);
  await a.letGo();
  expect([call.outcome, await counts()]).toEqual(["LOCK_LOST", ["2", 0]]);
});

test("the watchdog keeps a permit without a lease, tells so, and leaves one with a lease alone [§5 permits]", async (place) => {
  const { a, permits, pass, left } = place;
  const [kept = ""] = await take(place, 1, 2);
  const leased = await permits().acquire({ lease: 40_000 });
  a.listen();
  await pass(30_000);
  expect(await permits(1).tryAcquire()).toBeNull();
  expect(left()[leased]).toBe(10_000);
  const renewed = { name: "renewed", event: { lockName: NAME, kind: "permits", permitId: kept } };
  expect(a.told).toEqual(Array.from({ length: 10 }, () => renewed));
});

test("many permits are renewed by few commands, and none once they are given back [§5 permits]", async (place) => {
  const { a, server, pass } = place;
  const all = Array.from({ length: 10 }, (_, i) => a.client.getPermitExpirableSemaphore(`many-${i}`));
  const ids = await Promise.all(
    all.map(async (permits) => {
      await permits.trySetPermits(10);
      return Promise.all(Array.from({ length: 10 }, () => permits.acquire()));
    }),
  );
  a.listen("renewed");
  server.took();
  await pass(6_100);
  expect(a.told).toHaveLength(200);
  expect(server.took().length).toBeLessThanOrEqual(20);
  for (const [i, permits] of all.entries()) for (const id of ids[i] ?? []) await permits.release(id);
  server.took();
  await pass(20_000);
  expect(server.took()).toEqual([]);
  for (const { name } of all) server.delete(name);
});

test("a new lease of a kept permit ends its renewals: it may outlast them, and lapses without a loss [§5 permits]", async (place) => {
  const { a, permits, pass, left } = place;
  const [short = "", long = ""] = await take(place, 2, 2);
  a.listen("renewed", "lost");
  await pass(4_000);
  expect(await permits().updateLeaseTime(short, 2_000)).toBe(true);
  expect(await permits().updateLeaseTime(long, 60_000)).toBe(true);
  await pass(20_000);
  expect([a.heard("renewed").length, a.heard("lost")]).toEqual([2, []]);
  expect(await permits(1).tryAcquire()).toEqual(ID);
  expect(left()[long]).toBe(40_000);
});

test("a kept permit that others took away is told as lost by the next renewal, and no other [§5 permits] [§6 reasons]", async (place) => {
  const { a, permits, call, pass, left, counts } = place;
  const [one = "", two = "", three = ""] = await take(place, 3, 3);
  a.listen("lost");
  await call("ZREM", LEASES, Buffer.from(two, "hex").toString("latin1"));
  await pass(3_100);
  const about = { lockName: NAME, kind: "permits", reason: "expired" };
  expect(a.heard("lost")).toMatchObject([{ ...about, permitId: two }]);
  expect(Object.keys(left()).sort()).toEqual([one, three].sort());
  expect([await failure(permits().release(two)), await permits().tryRelease(two)]).toMatchObject([
    NOT_OWNER,
    false,
  ]);
  await call("DEL", NAME, LEASES);
  expect(await failure(permits().release(three))).toMatchObject(NOT_OWNER);
  await pass(3_100);
  expect(a.heard("lost").slice(1)).toMatchObject([three, one].map((permitId) => ({ ...about, permitId })));
  // A renewal does not make the permits anew.
  expect(await counts()).toEqual([null, 0]);
});

test("a kept permit is lost as unreachable at its deadline, and is given back when Redis answers again [§5 permits] [§6 reasons]", async (place) => {
  const { a, permits, pass, counts } = place;
  const [kept = ""] = await take(place, 1, 3);
  await permits().acquire({ lease: 600_000 });
  a.listen("lost", "suspended");
  await a.cut();
  await pass(8_907);
  expect(a.told.map(({ name }) => name)).toEqual(["suspended"]);
  await pass(1);
  expect(a.heard("lost")).toMatchObject([
    { lockName: NAME, kind: "permits", permitId: kept, reason: "unreachable" },
  ]);
  await a.mend();
  await pass(1_000);
  expect([a.heard("lost").length, await counts()]).toEqual([1, ["2", 1]]);
});

test("kept permits of a client that falls silent come back within its watchdogTimeout, leased ones with their lease [§5 permits]", async (place) => {
  const { b, permits, pass, counts } = place;
  await permits().trySetPermits(4);
  for (let i = 0; i < 3; i++) await permits(1).acquire();
  const leased = await permits(1).acquire({ lease: 60_000 });
  const waiting = watch(permits().acquire({ lease: 600_000 }));
  await b.cut();
  await pass(SETTINGS.watchdogTimeout - 1);
  expect(waiting.state).toBe("pending");
  await pass(200);
  expect([waiting.value, await permits().availablePermits()]).toEqual([ID, 2]);
  // Any client that knows the id may do this.
  await permits().release(leased);
  expect(await counts()).toEqual(["3", 1]);
  await b.mend();
});

for (const way of ["requests", "replies"] as const) {
  test(`a permit that is given back while the ${way} of its renewal are on their way is not lost, and stays free [§5 permits]`, async (place) => {
    const { a, permits, pass, counts, soon } = place;
    const [id = ""] = await take(place, 1, 2);
    a.listen("lost", "error");
    a.keep(way);
    await pass(3_100);
    expect(a.onTheirWay).toBe(1);
    await a.sendTwice();
    await soon(permits().release(id));
    await a.letGo();
    await pass(10_000);
    expect([a.told, await counts()]).toEqual([[], ["2", 0]]);
  });
}

test("permits of the names a and {a} are two numbers with one set of leases [§5 permits] [§7 wire]", async (place) => {
  const { a, permits, server } = place;
  const braced = a.client.getPermitExpirableSemaphore(`{${NAME}}`);
  await permits().trySetPermits(2);
  await braced.trySetPermits(3);
  await permits().acquire({ lease: 60_000 });
  expect([await permits().availablePermits(), await braced.availablePermits()]).toEqual([1, 3]);
  expect(await braced.acquiredPermits()).toBe(1);
  server.delete(braced.name);
});
