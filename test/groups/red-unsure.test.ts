/**
 * Queries of a RedLock while a master is silent: if its answer could decide, the query rejects with QUORUM, never "no".
 */
import { expect, test } from "vitest";
import { failure } from "../contract/helpers.js";
import { until } from "../support/index.js";
import { heldOn, LONG, occupy, Party, SOON, takeAll, useMasters, vacate } from "./red-helpers.js";

const masters = await useMasters(3);

/** With this time-out a master has three seconds for its answer. */
const IMPATIENT = { commandTimeout: 3_000 };

type Ask = Pick<Party["lock"], "isLocked" | "isHeldByCurrentOwner" | "getHoldCount" | "remainTimeToLive">;
const QUESTIONS = ["isLocked", "isHeldByCurrentOwner", "getHoldCount", "remainTimeToLive"] as const;

/** The result of each query: its answer, or the code of its error. */
async function answersOf(lock: Ask, owner: { readonly owner: never }): Promise<Record<string, unknown>> {
  const answers = QUESTIONS.map(async (question) => {
    const answer = lock[question](owner).catch((error: { code?: string }) => error.code ?? error);
    return [question, await answer];
  });
  return Object.fromEntries(await Promise.all(answers));
}

const UNSURE = Object.fromEntries(QUESTIONS.map((question) => [question, "QUORUM"]));

test("held by two of three with one of those silent, nothing is said until it answers again [B6]", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  await occupy(party, [2], LONG);
  const hold = await until("it is taken", () => party.lock.tryLock(0, LONG), { timeout: SOON });
  await vacate(party, [2]);
  const owner = { owner: hold as never };
  party.proxy(1).stall();
  // Twice, because the second time the master is known to be silent.
  for (let i = 0; i < 2; i++) expect(await answersOf(party.lock, owner)).toEqual(UNSURE);
  expect(hold?.isHeld).toBe(true);
  const error = await failure(party.lock.isLocked());
  expect(error).toMatchObject({ code: "QUORUM", lockName: party.lock.name, votes: 1 });
  expect(error).toMatchObject({ errors: [expect.objectContaining({ code: "UNAVAILABLE" })] });
  party.proxy(1).restore();
  await party.redises[1]?.ping();
  expect(await answersOf(party.lock, owner)).toEqual({
    isLocked: true,
    isHeldByCurrentOwner: true,
    getHoldCount: 1,
    remainTimeToLive: expect.any(Number),
  });
  expect(await party.lock.remainTimeToLive()).toBeGreaterThan(0);
  await hold?.unlock();
});

test("where the others agree, the silent one is not missed", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  const hold = await takeAll(party, LONG);
  const owner = { owner: hold as never };
  party.proxy(1).stall();
  expect(await answersOf(party.lock, owner)).toEqual({
    isLocked: true,
    isHeldByCurrentOwner: true,
    getHoldCount: 1,
    remainTimeToLive: expect.any(Number),
  });
  await hold.unlock();
  await until("the others are free", async () => (await heldOn(party)).join() === "1");
  const free = { isLocked: false, isHeldByCurrentOwner: false, getHoldCount: 0, remainTimeToLive: -2 };
  expect(await answersOf(party.lock, owner)).toEqual(free);
  party.proxy(1).restore();
});

test("a hold count that the silent one could raise is not told; that it is held is", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  const hold = await takeAll(party, LONG);
  const owner = { owner: hold as never };
  await masters[0]?.call("HINCRBY", party.name, hold.members[0]?.ownerId ?? "", 1);
  expect(await party.lock.getHoldCount(owner)).toBe(1);
  party.proxy(1).stall();
  expect(await failure(party.lock.getHoldCount(owner))).toMatchObject({ code: "QUORUM" });
  expect(await party.lock.isHeldByCurrentOwner(owner)).toBe(true);
  expect(await party.lock.isLocked()).toBe(true);
  party.proxy(1).restore();
  await party.lock.forceUnlock();
});

test("an owner without a hold is told so without a command, even if all masters are silent", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  for (const proxy of party.proxies) proxy.stall();
  expect(await party.lock.isHeldByCurrentOwner()).toBe(false);
  expect(await party.lock.getHoldCount()).toBe(0);
  for (const proxy of party.proxies) proxy.restore();
});
