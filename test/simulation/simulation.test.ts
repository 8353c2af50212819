/**
 * Simulated schedules of all kinds, the same in each run; `npm run simulate` plays others, as many as you like. A
 * failure is printed with its seed, and its shortest schedule.
 */
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { bundle, simulate } from "./run.mjs";
import { KINDS } from "./schedule.js";

const SCHEDULES = Number(process.env.HOLDFAST_SCHEDULES ?? 400);

/** Milliseconds of a schedule on a busy machine; only a limit. */
const SLOW = 400;

const file = await bundle();

test(
  `whatever happens in ${SCHEDULES} schedules, all that is promised is kept [B43]`,
  async () => {
    const { findings, played, granted, operations } = await simulate(file, {
      schedules: SCHEDULES,
      seed: 1,
    });
    expect(findings).toEqual([]);
    expect(played).toBe(SCHEDULES);
    // At least some of the calls were granted.
    expect(granted).toBeGreaterThan(SCHEDULES);
    // The linearizable histories have all of these operations.
    expect(operations).toBeGreaterThan(SCHEDULES);
  },
  4 * PATIENCE + SLOW * SCHEDULES,
);

test("a seed decides all that happens in a schedule, whatever was played before it", async () => {
  const more = await simulate(file, { schedules: 2 * KINDS.length, seed: 7 }, 1);
  const { hashes } = await simulate(file, { schedules: KINDS.length, seed: 7 + KINDS.length }, 1);
  expect(hashes).toEqual(more.hashes.slice(KINDS.length));
  expect(new Set(more.hashes).size).toBe(2 * KINDS.length);
});

test("a schedule that fails by a mistake is shrunk, and its shortest form fails likewise", async () => {
  const planted = ["grants what is held"];
  const { findings } = await simulate(file, { planted, schedules: 3, seed: 1 }, 1);
  const { failure, shortest } = findings[0] ?? expect.fail("nothing was found");
  expect(failure).toMatch(/two holders/);
  expect(shortest.steps).toHaveLength(2);
  const { replayed } = await simulate(file, { planted, replay: shortest });
  expect(replayed).toMatchObject({ failure: expect.stringMatching(/two holders/) });
  expect(replayed?.lines?.length).toBeGreaterThan(4);
});
