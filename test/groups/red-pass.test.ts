/** A RedLock that is handed over inside one process: what that costs, when it counts, and how long it goes on. */
import { expect, test } from "vitest";
import type { MultiHold } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { script, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  heldOn,
  joined,
  LONG,
  NEVER,
  occupy,
  Party,
  parked,
  SOON,
  takeAll,
  useMasters,
  vacate,
} from "./red-helpers.js";

const masters = await useMasters(3);

const PASS = script("pass");
const PATIENT = { client: { pollCap: NEVER } };

/** A hold, and a call of the same process that waits for it and listens. */
async function holdAndWaiter(party: Party): Promise<{ hold: MultiHold; done: Promise<MultiHold> }> {
  const hold = await takeAll(party, LONG);
  const { done } = await parked(party, () => party.lock.lock({ lease: LONG }));
  return { hold, done };
}

test("giving back and taking are one command to each master", async () => {
  await using party = await Party.of(masters, PATIENT);
  const { hold, done } = await holdAndWaiter(party);
  for (const proxy of party.proxies) proxy.clear();
  await hold.unlock();
  const next = await joined(await done);
  expect(next.ownerId).not.toBe(hold.ownerId);
  for (const proxy of party.proxies) {
    expect(proxy.count(PASS)).toBe(1);
    expect(proxy.count(script("acquire"))).toBe(0);
    expect(proxy.count(script("release"))).toBe(0);
  }
  await next.unlock();
  await expectNothingLeft(party);
});

test("a hold that is given back behind another command of its own wakes the waiter [B181]", async () => {
  await using party = await Party.of(masters, PATIENT);
  await using others = await Party.of(masters, { ...PATIENT, name: party.name });
  const theirs = await takeAll(others, LONG);
  const { done } = await parked(party, () => party.lock.lock({ lease: LONG }));
  const behind = watch(party.lock.lock({ lease: LONG, wait: NEVER / 2 }));
  await theirs.unlock();
  const hold = await done;
  const extended = hold.extend(LONG);
  await hold.unlock();
  await extended;
  await (await behind.promise).unlock();
  await expectNothingLeft(party);
});

test("validity counts from when the hold before it was given back", async () => {
  await using party = await Party.of(masters, PATIENT);
  const { hold, done } = await holdAndWaiter(party);
  for (const proxy of party.proxies) proxy.delayReplies(250, PASS);
  await hold.unlock();
  const next = await done;
  expect(next.remaining).toBeLessThanOrEqual(0.99 * LONG - 2 - 245);
  for (const member of next.members) expect(member.remaining).toBeLessThanOrEqual(0.99 * LONG - 2 - 245);
  await next.unlock();
  await expectNothingLeft(party);
});

test("one master on which the hold was lost does no harm; with two nobody has it", async () => {
  await using party = await Party.of(masters, PATIENT);
  const { hold, done } = await holdAndWaiter(party);
  const behind = watch(party.lock.lock({ lease: LONG }));
  await occupyByForce(party, [0]);
  await hold.unlock();
  const next = await done;
  expect(next.members).toHaveLength(2);
  await occupyByForce(party, [1]);
  await expect(next.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  await until("its own vote is given back", async () => (await heldOn(party)).join() === "0,1");
  expect(behind.state).toBe("pending");
  await vacate(party, [0, 1]);
  await (await behind.promise).unlock();
  await expectNothingLeft(party);
});

test("a call that ends while the lock is on its way to it leaves nothing", async () => {
  await using party = await Party.of(masters, PATIENT);
  const hold = await takeAll(party, LONG);
  const ending = new AbortController();
  const { done } = await parked(party, () => party.lock.lock({ lease: LONG, signal: ending.signal }));
  const behind = watch(party.lock.lock({ lease: LONG }));
  for (const proxy of party.proxies) proxy.delayReplies(2_000, PASS);
  const given = hold.unlock();
  // A master that owes an answer at that moment takes no part in the hand-over, and is asked in the usual way.
  await until("a majority has it", () => party.proxies.filter((proxy) => proxy.count(PASS) > 0).length >= 2);
  ending.abort(new Error("over"));
  await expect(done).rejects.toThrow("over");
  await given;
  for (const proxy of party.proxies) proxy.restore();
  await (await behind.promise).unlock();
  await expectNothingLeft(party);
});

test("commands whose replies are lost, and that are sent again, grant it once", async () => {
  await using party = await Party.of(masters, PATIENT);
  const { hold, done } = await holdAndWaiter(party);
  const cuts = party.proxies.map((proxy) => proxy.cutReplyOf(PASS));
  await hold.unlock();
  const next = await done;
  expect(cuts.filter(({ hits }) => hits > 0).length).toBeGreaterThanOrEqual(2);
  expect(next.members.length).toBeGreaterThanOrEqual(2);
  const counts = await Promise.all(masters.map((server) => server.call("HGETALL", party.name)));
  const held = (counts as string[][]).filter((fields) => fields.length > 0);
  expect(held.length).toBeGreaterThanOrEqual(2);
  for (const fields of held) expect(fields).toEqual([expect.any(String), "1"]);
  await next.unlock();
  await expectNothingLeft(party);
});

test("masters that do not answer: the one who gives back is told so, and the waiter gets it when they are back", async () => {
  await using party = await Party.of(masters, { client: { pollCap: NEVER, commandTimeout: 3_000 } });
  const { hold, done } = await holdAndWaiter(party);
  for (const i of [0, 1]) party.proxy(i).stall();
  expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE" });
  for (const i of [0, 1]) party.proxy(i).restore();
  await (await done).unlock();
  await expectNothingLeft(party);
});

test("an inner hold that is given back hands nothing over", async () => {
  await using party = await Party.of(masters, PATIENT);
  await party.client(0).scope(async () => {
    const outer = await takeAll(party, LONG);
    const inner = await party.lock.lock({ lease: LONG });
    const { done } = await parked(party, () => party.client(0).scope(() => party.lock.lock({ lease: LONG })));
    const waiter = watch(done);
    await inner.unlock();
    for (const proxy of party.proxies) expect(proxy.count(PASS)).toBe(0);
    expect(outer.isHeld).toBe(true);
    expect(waiter.state).toBe("pending");
    await outer.unlock();
    await (await waiter.promise).unlock();
    // A master that had not yet confirmed the inner unlock is asked in the usual way.
    expect(party.proxies.filter((proxy) => proxy.count(PASS) === 1).length).toBeGreaterThanOrEqual(2);
  });
  await expectNothingLeft(party);
});

test("a process whose calls come without end lets another one in", async () => {
  await using party = await Party.of(masters, PATIENT);
  await using other = await Party.of(masters, { name: party.name, ...PATIENT });
  const ending = new AbortController();
  let rounds = 0;
  const loops = Array.from({ length: 6 }, async () => {
    while (!ending.signal.aborted) {
      const hold = await party.lock.lock({ lease: LONG });
      rounds++;
      await hold.unlock();
    }
  });
  await until("they go round", () => rounds > 20 && party.proxy(0).count(PASS) > 10);
  for (let i = 0; i < 3; i++) {
    const hold = await other.lock.lock({ lease: LONG, wait: SOON });
    const before = rounds;
    expect((await heldOn(party)).length).toBeGreaterThanOrEqual(2);
    await hold.unlock();
    await until("the others go on", () => rounds > before);
  }
  ending.abort();
  await Promise.all(loops);
  await expectNothingLeft(party);
});

/** Gives the lock on these masters to another owner, whoever had it before. */
async function occupyByForce(party: Party, on: readonly number[]): Promise<void> {
  for (const i of on) await masters[i]?.call("DEL", party.name);
  await occupy(party, on, LONG);
}
