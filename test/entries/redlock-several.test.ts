/** The face of redlock for several resources at once on three masters, where each of them is a Redlock of its own. */
import { expect, test } from "vitest";
import type { Redlock } from "../../src/entries/redlock.js";
import { freshName } from "../faults/harness.js";
import { useMasters } from "../groups/red-helpers.js";
import { PATIENCE, until } from "../support/index.js";
import {
  countHeld,
  executionError,
  isAwaited,
  LONG,
  newRedlock,
  ONCE,
  PATIENT,
  untilAwaited,
} from "./redlock-helpers.js";

const masters = await useMasters(3);
const QUORUM = 2;

const untilHeld = (name: string) =>
  until(`${name} is held`, async () => (await countHeld(masters, name)) >= QUORUM);
const pass = (ms: number) => {
  const end = performance.now() + ms;
  return until(`${ms} ms are over`, () => performance.now() > end);
};

/** A call that has the first of two resources and waits for the second; `release` makes way for it. */
async function startWaiting(duration: number) {
  const [holder, caller] = [newRedlock(masters), newRedlock(masters, PATIENT)];
  const first = `a-${freshName()}`;
  const second = `b-${freshName()}`;
  const held = await holder.acquire([second], LONG);
  const acquired = caller.acquire([second, first], duration);
  await untilHeld(first);
  await untilAwaited(masters, second);
  return { first, second, acquired, release: () => held.release() };
}

test("a call waits for a resource while it keeps those whose names come before [B177]", async () => {
  const { first, second, acquired, release } = await startWaiting(LONG);
  await executionError(newRedlock(masters, ONCE).acquire([first], LONG));
  await release();
  const lock = await acquired;
  expect(lock.resources).toEqual([second, first]);
  await lock.release();
});

test("what a call had while it waited lasts for the whole duration, too [B177]", async () => {
  const duration = 2 * PATIENCE;
  const { first, second, acquired, release } = await startWaiting(duration);
  await pass(duration / 50);
  const before = Date.now();
  await release();
  const lock = await acquired;
  // Of one percent the drift is made; one more may be gone of what is not extended.
  expect(lock.expiration).toBeGreaterThan(before + duration * 0.98 - 10);
  expect(lock.expiration).toBeLessThanOrEqual(Date.now() + duration * 0.99);
  for (const name of [first, second]) expect(await countHeld(masters, name)).toBeGreaterThanOrEqual(QUORUM);
  await lock.release();
});

test("a resource that is lost meanwhile is taken anew, and the others are free until then [B177]", async () => {
  const { first, second, acquired, release } = await startWaiting(PATIENCE);
  await Promise.all(masters.map((server) => server.call("DEL", first)));
  const thief = await newRedlock(masters, PATIENT).acquire([first], LONG);
  await pass(PATIENCE / 50);
  await release();
  await untilAwaited(masters, first);
  const rival = newRedlock(masters, ONCE);
  const free = await until("the second is free", () => rival.acquire([second], LONG));
  await free.release();
  await thief.release();
  const lock = await acquired;
  for (const name of [first, second]) expect(await countHeld(masters, name)).toBeGreaterThanOrEqual(QUORUM);
  await lock.release();
});

test("a waiting call keeps them for the duration at most, so a call that wants no more gets its turn [B177]", async () => {
  const { first, second, acquired, release } = await startWaiting(400);
  const other = await newRedlock(masters, PATIENT).acquire([first], LONG);
  // Without the first one it is in nobody's way.
  await until("it waits for the second no more", async () => !(await isAwaited(masters, second)));
  await other.release();
  await release();
  await (await acquired).release().catch(() => {}); // It may have expired by now.
});

test("a crowd whose calls name resources in different orders, and have some in common, gets through", async () => {
  const [a, b, c] = [freshName(), freshName(), freshName()];
  const sets = [
    [a, b, c],
    [c, b, a],
    [b, c],
    [c, a],
  ];
  const inside = new Map<string, number>();
  const enter = async (names: readonly string[]) => {
    for (const name of names) {
      expect(inside.get(name) ?? 0).toBe(0);
      inside.set(name, 1);
    }
    await countHeld(masters, a);
    for (const name of names) inside.set(name, 0);
  };
  const parties: Redlock[] = [newRedlock(masters, PATIENT), newRedlock(masters, PATIENT)];
  const crowd = Array.from({ length: 40 }, async (_, n) => {
    const names = sets[n % sets.length] as string[];
    await parties[(n >> 2) % 2]?.using(names, LONG, () => enter(names));
  });
  await Promise.all(crowd);
});
