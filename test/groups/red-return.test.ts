/** Giving back and extending by majority; and what run reports if part of that fails. */
import { expect, test } from "vitest";
import type { LockError, MultiHold } from "../../src/index.js";
import { failure, nextEvent } from "../contract/helpers.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  forget,
  heldOn,
  LONG,
  Party,
  takeAll,
  timed,
  ttlsOf,
  useMasters,
} from "./red-helpers.js";

const masters = await useMasters(3);

const IMPATIENT = { commandTimeout: 3_000 };

test("unlock resolves when a majority has confirmed; the rest is done when the stopped master goes on", async () => {
  await using party = await Party.of(masters, { client: { commandTimeout: 10_000 } });
  const hold = await party.lock.lock({ lease: LONG });
  masters[0]?.pause();
  const { took } = await timed(() => hold.unlock());
  expect(took).toBeLessThan(9_000);
  expect(hold.isHeld).toBe(false);
  masters[0]?.resume();
  await expectNothingLeft(party);
  await hold.unlock();
});

test("a failed unlock rejects with a LockError and all errors; calls beside it share that, later ones ask again", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  const hold = await takeAll(party, LONG);
  for (const i of [0, 1]) party.proxy(i).stall();
  const calls = [hold.unlock(), hold.unlock()];
  expect(hold.isHeld).toBe(false);
  const errors = (await Promise.all(calls.map((call) => failure(call)))) as LockError[];
  expect(errors[0]).toBe(errors[1]);
  expect(errors[0]).toMatchObject({ code: "UNAVAILABLE" });
  expect(errors[0]?.errors).toHaveLength(2);
  expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE" });
  expect(hold.signal.aborted).toBe(false);
  for (const i of [0, 1]) party.proxy(i).restore();
  await until("it is given back", () => hold.unlock().then(() => true));
  await expectNothingLeft(party);
});

test("an owner who is asked for after a failed unlock has nothing to give back", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.warmUp();
  const hold = await party.lock.lock({ lease: LONG });
  await until("all masters have it", async () => (await heldOn(party)).length === 3);
  for (const i of [0, 1]) party.proxy(i).stall();
  expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE" });
  for (const i of [0, 1]) party.proxy(i).restore();
  await expectNothingLeft(party);
  // A hold stands for its owner.
  const owner = { owner: hold as never };
  expect(await failure(party.lock.unlock(owner))).toMatchObject({ code: "NOT_OWNER" });
  await hold.unlock();
});

test("so it is with lock.unlock() in a scope, until nothing is left to give back", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  await party.client(0).scope(async () => {
    await takeAll(party, LONG);
    for (const i of [1, 2]) party.proxy(i).stall();
    expect(await failure(party.lock.unlock())).toMatchObject({ code: "UNAVAILABLE" });
    expect(await failure(party.lock.unlock())).toMatchObject({ code: "UNAVAILABLE" });
    for (const i of [1, 2]) party.proxy(i).restore();
    await expectNothingLeft(party);
    await until("nothing is left to give back", async () => {
      const error = (await party.lock.unlock().catch((reason: LockError) => reason)) as LockError | undefined;
      return error?.code === "NOT_OWNER";
    });
  });
});

test("a lock that a majority has forgotten is lost at its unlock, and stays so", async () => {
  await using party = await Party.of(masters);
  const hold = await party.lock.lock({ lease: LONG });
  await forget(party, hold, 0, 2);
  const error = (await failure(hold.unlock())) as LockError;
  expect(error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  expect(error.errors).toHaveLength(2);
  expect(hold.signal.aborted).toBe(true);
  await expectNothingLeft(party);
});

for (const [gone, silent] of [
  [0, 2],
  [2, 0],
] as const) {
  test(`one member lost (${gone}) and one silent (${silent}) is no loss while a majority is there`, async () => {
    await using party = await Party.of(masters, { client: IMPATIENT });
    const events: unknown[] = [];
    party.client(1).on("error", ({ cause }) => events.push(cause));
    const result = await party.lock.run(
      async (hold) => {
        await forget(party, hold, gone);
        await hold.extend(LONG);
        expect(hold.isHeld).toBe(true);
        party.proxy(silent).stall();
        expect(await failure(hold.extend(LONG))).toMatchObject({ code: "UNAVAILABLE" });
        hold.assertHeld();
        return "done";
      },
      { lease: LONG },
    );
    expect(result).toBe("done");
    expect(events).toEqual([expect.objectContaining({ code: "UNAVAILABLE" })]);
    party.proxy(silent).restore();
    await expectNothingLeft(party);
    const hold = await takeAll(party, LONG);
    await forget(party, hold, gone);
    party.proxy(silent).stall();
    expect(await failure(hold.unlock())).toMatchObject({ code: "UNAVAILABLE" });
    party.proxy(silent).restore();
    await expectNothingLeft(party);
  });
}

test("run: what fn throws wins; a loss rejects with what fn returned; a silent release is told as an event", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  const mine = new Error("mine");
  const throws = party.lock.run(async (hold) => {
    await forget(party, hold, 0, 1, 2);
    throw mine;
  });
  expect(await failure(throws)).toBe(mine);
  const lost = party.lock.run(async (hold) => {
    await forget(party, hold, 0, 1);
    return 42;
  });
  expect(await failure(lost)).toMatchObject({ code: "LOCK_LOST", result: 42, lockName: party.lock.name });
  const told = nextEvent(party.client(0), "error");
  const silent = await party.lock.run(() => {
    for (const i of [0, 1]) party.proxy(i).stall();
    return "result";
  });
  expect(silent).toBe("result");
  expect(await told).toMatchObject({ kind: "red", cause: { code: "UNAVAILABLE" } });
  for (const i of [0, 1]) party.proxy(i).restore();
  await expectNothingLeft(party);
  let held: MultiHold | undefined;
  await party.lock.run(async (hold) => {
    held = hold;
    await hold.unlock();
    expect(await heldOn(party)).not.toHaveLength(3);
  });
  expect(held?.isHeld).toBe(false);
});

test("extend moves the deadline of a majority, up and down, and fails without one", async () => {
  await using party = await Party.of(masters, { client: IMPATIENT });
  const hold = await takeAll(party, 60_000);
  await hold.extend(LONG);
  expect(hold.remaining).toBeGreaterThan(LONG / 2);
  await until("all have it", async () => Math.min(...(await ttlsOf(party))) > LONG / 2);
  party.proxy(1).stall();
  const { took } = await timed(() => hold.extend(2 * LONG));
  expect(took).toBeLessThan(2_900);
  expect(hold.remaining).toBeGreaterThan(LONG);
  await hold.extend(40_000);
  expect(hold.remaining).toBeLessThanOrEqual(40_000);
  party.proxy(2).stall();
  expect(await failure(hold.extend(LONG))).toMatchObject({ code: "UNAVAILABLE" });
  expect(hold.isHeld).toBe(true);
  for (const i of [1, 2]) party.proxy(i).restore();
  await until("they answer", () => hold.extend(30_000).then(() => true));
  await hold.unlock();
  expect(await failure(hold.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
  await expectNothingLeft(party);
});
