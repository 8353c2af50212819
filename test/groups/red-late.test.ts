/** A round that too few masters answered in time: the late answers end the sleep that follows it. */
import { expect, test } from "vitest";
import { script, soon, untilQuiet, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import {
  expectNothingLeft,
  LONG,
  NEVER,
  occupy,
  Party,
  parked,
  SOON,
  useMasters,
  vacate,
} from "./red-helpers.js";

const masters = await useMasters(3);

/** Options of a waiter that only an answer wakes. A master has three seconds for its answer. */
const PATIENT = { pollCap: NEVER, commandTimeout: 3_000 };

/** Sends messages of a release that did not happen, from these masters. */
async function mislead({ servers, name }: Party, on: readonly number[]): Promise<void> {
  for (const i of on) await servers[i]?.call("PUBLISH", `redisson_lock__channel:{${name}}`, "0");
}

/** Holds back the answers of these masters to a round, which then ends without a majority. */
async function roundInVain(party: Party, on: readonly number[]): Promise<void> {
  const undone = () => party.proxies.map((proxy) => proxy.count(script("undo", party.name)));
  const before = undone();
  for (const i of on) party.proxy(i).delayReplies(NEVER, script("acquire", party.name));
  // Messages from two masters are a majority, and call for one round.
  await mislead(party, [0, 1]);
  await until("the round is given up", () => on.every((i) => (undone()[i] ?? 0) > (before[i] ?? 0)), {
    timeout: SOON,
  });
}

test("a waiter whose round no majority answered in time tries again when the late answers come [B20]", async () => {
  await using party = await Party.of(masters, { client: PATIENT });
  await occupy(party, [0, 1, 2], LONG);
  const waiter = await parked(party, () => party.lock.lock({ lease: LONG }));
  const call = watch(waiter.done);
  await roundInVain(party, [0, 1]);
  expect(call.state).toBe("pending");
  await vacate(party, [0, 1, 2], false);
  party.proxy(0).restore();
  const hold = await soon(call);
  expect(hold.isHeld).toBe(true);
  party.proxy(1).restore();
  await hold.unlock();
  await expectNothingLeft(party);
});

test("a round asks a master that owes the answer to the round before only behind that answer", async () => {
  await using party = await Party.of(masters, { client: PATIENT });
  await occupy(party, [0, 1, 2], LONG);
  const waiter = await parked(party, () => party.lock.lock({ lease: LONG }));
  const call = watch(waiter.done);
  const asked = (i: number) => party.proxy(i).count(script("acquire", party.name));
  await roundInVain(party, [2]);
  // The two messages may have called for a round each.
  await untilQuiet(() => asked(0) + asked(2));
  const [before, owing] = [asked(0), asked(2)];
  await mislead(party, [0, 1]);
  await until("the next round is on its way", () => asked(0) > before, { timeout: SOON });
  expect(asked(2)).toBe(owing);
  party.proxy(2).restore();
  await vacate(party, [0, 1, 2], true);
  const hold = await soon(call);
  await hold.unlock();
  await expectNothingLeft(party);
});

test("late answers that say no let the waiter sleep on", async () => {
  await using party = await Party.of(masters, { client: PATIENT });
  await occupy(party, [0, 1, 2], LONG);
  const waiter = await parked(party, () => party.lock.lock({ lease: LONG }));
  const call = watch(waiter.done);
  await roundInVain(party, [0, 1]);
  // Master 2 is left out: it may still owe an answer of the round before, and is asked again only after that.
  const asked = () => party.asked.slice(0, 2);
  const before = asked();
  for (const i of [0, 1]) party.proxy(i).restore();
  await until("it has asked again", () => asked().every((count, i) => count > (before[i] ?? 0)));
  // The answers of both may call for a round each. After that no round follows, for as long as twenty round trips take.
  let last: readonly number[] = [];
  await until("it sleeps on", async () => {
    last = asked();
    for (let i = 0; i < 20; i++) await Promise.all(party.redises.map((redis) => redis.ping()));
    return asked().every((count, i) => count === last[i]);
  });
  for (const [i, count] of last.entries()) expect(count - (before[i] ?? 0)).toBeLessThanOrEqual(3);
  expect(call.state).toBe("pending");
  await vacate(party, [0, 1, 2]);
  await (await call.promise).unlock();
  await expectNothingLeft(party);
});
