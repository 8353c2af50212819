/**
 * Simulated schedules of all kinds, the same in each run; `npm run simulate` plays others, as many as you like. A
 * failure is printed with its seed, and its shortest schedule.
 */
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { PLANTED } from "./planted.mjs";
import { bundle, KINDS, simulate } from "./run.mjs";

const SCHEDULES = Number(process.env.HOLDFAST_SCHEDULES ?? 4_000);

/** Milliseconds of a schedule on a busy machine; only a limit. */
const SLOW = 200;

const right = await bundle();

test(
  `${SCHEDULES} schedules: whatever happens, all that is promised is kept [B43]`,
  async () => {
    const { findings, played, granted, operations } = await simulate(right, {
      schedules: SCHEDULES,
      seed: 1,
    });
    expect(findings).toEqual([]);
    expect(played).toBe(SCHEDULES);
    // At least some of the calls were granted.
    expect(granted).toBeGreaterThan(SCHEDULES);
    // The linearizable histories have all of these operations.
    expect(operations).toBeGreaterThan(granted);
  },
  4 * PATIENCE + SLOW * SCHEDULES,
);

test.each(KINDS)("%s: a seed decides all that happens, whatever was played before it", async (kind) => {
  const one = await simulate(right, { kind, schedules: 20, seed: 7 }, 1);
  const other = await simulate(right, { kind, schedules: 10, seed: 17 }, 1);
  expect(one.hashes).toEqual(other.hashes);
  const another = await simulate(right, { kind, schedules: 1, seed: 27 }, 1);
  expect(another.hashes).not.toEqual(one.hashes);
});

test.each(Object.keys(PLANTED))("a mistake is found: %s", async (name) => {
  const { kind, seed, edits } = PLANTED[name] ?? expect.fail(name);
  const { findings } = await simulate(
    await bundle(name, edits),
    { kind, seed, schedules: 3, isShort: true },
    1,
  );
  expect(findings).toHaveLength(1);
});

const told = Object.entries(PLANTED).filter(([, { tellsByHistory }]) => tellsByHistory);

test.each(told)("a mistake is found by its histories alone: %s", async (name, { kind, seed, edits }) => {
  const job = { kind, seed, schedules: 3, isShort: true, onlyHistory: true };
  const { findings } = await simulate(await bundle(`${name}-told`, edits), job, 1);
  expect(findings).toMatchObject([{ failure: expect.stringMatching(/is not linearizable/) }]);
});

test("a failing schedule is shrunk, and its shortest form fails likewise", async () => {
  const { kind, seed, edits } = PLANTED["grants what is held"] ?? expect.fail();
  const wrong = await bundle("shrunk", edits);
  const { findings } = await simulate(wrong, { kind, seed, schedules: 1 }, 1);
  const { failure, shortest } = findings[0] ?? expect.fail("nothing was found");
  expect(failure).toMatch(/two holders/);
  expect(shortest.steps).toHaveLength(2);
  const { replayed } = await simulate(wrong, { replay: shortest });
  expect(replayed).toMatchObject({ failure: expect.stringMatching(/two holders/) });
  expect(replayed?.lines?.length).toBeGreaterThan(4);
});
