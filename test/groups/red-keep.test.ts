/**
 * A hold without a lease: the watchdog keeps it while a majority of the masters answers; else it is lost, and all
 * agree.
 */
import { expect, test } from "vitest";
import type { Hold, LockLostError } from "../../src/index.js";
import { failure, nextEvent, recordEvents } from "../contract/helpers.js";
import { type RedisServer, SLACK, until } from "../support/index.js";
import { expectNothingLeft, heldOn, LONG, Party, SOON, takeAll, ttlsOf, useMasters } from "./red-helpers.js";

const masters = await useMasters(3);

function member(hold: { members: readonly Hold[] }, i: number): Hold {
  return hold.members[i] as Hold;
}

async function each(numbers: readonly number[], what: (server: RedisServer) => unknown): Promise<void> {
  await Promise.all(numbers.map((i) => what(masters[i] as RedisServer)));
}

test("all members are renewed, and a hold with a lease is not", async () => {
  await using party = await Party.of(masters, { client: { watchdogTimeout: 9_000 } });
  const hold = await takeAll(party);
  const granted = await ttlsOf(party);
  for (const client of party.clients) await nextEvent(client, "renewed");
  expect(hold.isHeld).toBe(true);
  expect(hold.remaining).toBeGreaterThan(1_000);
  expect(Math.min(...granted)).toBeGreaterThan(1_500);
  expect(Math.min(...(await ttlsOf(party)))).toBeGreaterThan(1_500);
  await hold.unlock();
  const events = recordEvents(party.client(0));
  const leased = await takeAll(party, 2_000);
  await until("its lease is over", () => leased.signal.aborted);
  expect(events.map(({ name }) => name)).not.toContain("renewed");
  expect(await failure(leased.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await expectNothingLeft(party);
});

for (const way of ["killed", "stopped"] as const) {
  test(`a hold outlives a minority that is ${way}, and is given back in time`, async () => {
    const client = { watchdogTimeout: 4_500, commandTimeout: SLACK };
    await using party = await Party.of(masters, { client });
    const hold = await takeAll(party);
    const lost = nextEvent(party.client(1), "lost");
    await each([1], (server) => (way === "killed" ? server.kill() : server.pause()));
    expect(await lost).toMatchObject({ kind: "lock", lockName: party.name, reason: "unreachable" });
    expect(member(hold, 1).isHeld).toBe(false);
    await nextEvent(party.client(0), "renewed");
    expect(hold.isHeld).toBe(true);
    expect(hold.signal.aborted).toBe(false);
    hold.assertHeld();
    const begun = performance.now();
    await hold.unlock();
    expect(performance.now() - begun).toBeLessThan(0.9 * SLACK);
    await until("the others are free", async () => {
      const left = await Promise.all([0, 2].map((i) => masters[i]?.call("EXISTS", party.name)));
      return left.join() === "0,0";
    });
  });
}

test("with a majority killed it is lost when that majority's deadline has passed, not before and not much later", async () => {
  const client = { watchdogTimeout: 6_000, commandTimeout: 1_000 };
  await using party = await Party.of(masters, { client });
  const hold = await takeAll(party);
  await each([0, 2], (server) => server.kill());
  const deadline = performance.now() + Math.max(member(hold, 0).remaining, member(hold, 2).remaining);
  let lostAt = 0;
  let heldBefore = true;
  hold.signal.addEventListener("abort", () => {
    lostAt = performance.now();
  });
  const lost = nextEvent(party.client(0), "lost");
  const red = new Promise<unknown>((resolve) =>
    party.client(1).on("lost", (event) => event.kind === "red" && resolve(event)),
  );
  await lost; // the loss of a member
  while (performance.now() < deadline - 30 && heldBefore) {
    heldBefore = hold.isHeld;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(heldBefore).toBe(true);
  await until("the signal says so", () => lostAt > 0);
  expect(lostAt).toBeGreaterThanOrEqual(deadline - 5);
  expect(lostAt).toBeLessThan(deadline + SLACK);
  expect(await red).toMatchObject({
    kind: "red",
    lockName: party.lock.name,
    ownerId: hold.ownerId,
    reason: "unreachable",
  });
  expect(hold.isHeld).toBe(false);
  expect(() => hold.assertHeld()).toThrow(hold.signal.reason);
  // The member that is left is given back, because it would be kept for nothing.
  await until("the last one is free", async () => (await masters[1]?.call("EXISTS", party.name)) === 0);
  const error = (await failure(hold.unlock())) as LockLostError;
  expect(error).toBe(hold.signal.reason);
  expect(error).toMatchObject({ code: "LOCK_LOST", reason: "unreachable", lockName: party.lock.name });
  expect(error.errors).toHaveLength(2);
  await each([0, 2], (server) => server.restart());
  await expectNothingLeft(party);
});

test("with a majority restarted empty it is lost at the next renewal, long before its deadline", async () => {
  await using party = await Party.of(masters, { client: { watchdogTimeout: 15_000 } });
  const hold = await takeAll(party);
  await each([1, 2], (server) => server.restart());
  await until("they are back", () => party.redises.every(({ status }) => status === "ready"));
  const { remaining } = hold;
  const begun = performance.now();
  expect(remaining).toBeGreaterThan(4_000);
  await until("it is lost", () => hold.signal.aborted, { timeout: SOON });
  expect(performance.now() - begun).toBeLessThan(remaining);
  expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  await expectNothingLeft(party);
});

test("a minority that has forgotten the hold takes nothing from it; its own part is gone for good", async () => {
  await using party = await Party.of(masters, { client: { watchdogTimeout: 9_000 } });
  const hold = await takeAll(party);
  await masters[2]?.call("DEL", party.name);
  await until("that is noticed", () => !member(hold, 2).isHeld);
  expect(hold.isHeld).toBe(true);
  // A master has a hundredth of the lease for its answer.
  await until("the masters answer that it is locked", () => party.lock.isLocked());
  expect(await heldOn(party)).toEqual([0, 1]);
  await masters[1]?.call("DEL", party.name);
  await until("it is lost", () => hold.signal.aborted);
  await expectNothingLeft(party);
});

test("the deadline is that of the best majority, whichever members it is made of", async () => {
  await using party = await Party.of(masters);
  const hold = await takeAll(party, LONG);
  await member(hold, 0).extend(10_000);
  expect(hold.remaining).toBeGreaterThan(20_000);
  await member(hold, 2).extend(20_000);
  expect(hold.remaining).toBeLessThanOrEqual(20_000);
  expect(hold.remaining).toBeGreaterThan(10_000);
  expect(await party.lock.remainTimeToLive()).toBeLessThanOrEqual(20_000);
  expect(await party.lock.remainTimeToLive()).toBeGreaterThan(10_000);
  await hold.unlock();
});

test("forced away by another process, it is lost at the next renewal and says by whom it is held", async () => {
  await using party = await Party.of(masters, { client: { watchdogTimeout: 9_000 } });
  await using other = await Party.of(masters, { name: party.name });
  const hold = await takeAll(party);
  expect(await other.lock.forceUnlock()).toBe(true);
  expect(await other.lock.forceUnlock()).toBe(false);
  const next = await other.lock.lock();
  await until("it is lost", () => hold.signal.aborted);
  expect(["taken", "forced"]).toContain((hold.signal.reason as LockLostError).reason);
  expect(next.isHeld).toBe(true);
  expect(await heldOn(party)).toEqual([0, 1, 2]);
  await next.unlock();
  await expectNothingLeft(party);
});
