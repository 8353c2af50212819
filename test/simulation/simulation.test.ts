/**
 * Simulated schedules of all kinds, the same in each run; `npm run simulate` plays others, as many as you like. A
 * failure is printed with its seed, and its shortest schedule.
 */
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { CALM_KINDS } from "./calm/steps.js";
import { bundle, simulate } from "./run.mjs";
import { KINDS } from "./schedule.js";

const SCHEDULES = Number(process.env.HOLDFAST_SCHEDULES ?? 600);

/** Milliseconds of a schedule on a busy machine; only a limit. */
const SLOW = 400;

/** What the oracle has to see of calm schedules, which prove little without it; and what takes thousands of them. */
const EVERYWHERE = ["granted", "waited", "nothing", "aborted", "sent again"];
const OF_LOCKS = [
  "nested",
  "WAIT_TIMEOUT",
  "NOT_OWNER",
  "LOCK_LOST",
  "renewed",
  "lost, expired",
  "lost, forced",
];
const [MANY, SELDOM] = [2_000, ["CLIENT_CLOSED"]];
const SEEN: Readonly<Record<string, readonly string[]>> = {
  "calm-lock": OF_LOCKS,
  "calm-fair": OF_LOCKS,
  "calm-fenced": OF_LOCKS,
  "calm-readwrite": [...OF_LOCKS, "UPGRADE_REFUSED"],
};

const file = await bundle();

test(
  `whatever happens in ${SCHEDULES} schedules, all that is promised is kept [B43]`,
  async () => {
    const { findings, played, granted, operations, seen } = await simulate(file, {
      schedules: SCHEDULES,
      seed: 1,
    });
    expect(findings).toEqual([]);
    expect(played).toBe(SCHEDULES);
    // At least some of the calls were granted.
    expect(granted).toBeGreaterThan(SCHEDULES);
    // The linearizable histories have all of these operations.
    expect(operations).toBeGreaterThan(SCHEDULES);
    const always = [...EVERYWHERE, ...(SCHEDULES < MANY ? [] : SELDOM)];
    const wanted = Object.entries(SEEN).flatMap(([kind, outcomes]) =>
      [...always, ...outcomes].map((each) => `${kind}: ${each}`),
    );
    expect(wanted.filter((each) => !seen.has(each))).toEqual([]);
  },
  4 * PATIENCE + SLOW * SCHEDULES,
);

test("a seed decides all that happens in a schedule, whatever was played before it", async () => {
  const count = KINDS.length + CALM_KINDS.length;
  const more = await simulate(file, { schedules: 2 * count, seed: 7 }, 1);
  const { hashes } = await simulate(file, { schedules: count, seed: 7 + count }, 1);
  expect(hashes).toEqual(more.hashes.slice(count));
  expect(new Set(more.hashes).size).toBe(2 * count);
});

test.each([
  { planted: "grants what is held", failure: /two holders/, steps: 2 },
  { planted: "a nested call shortens", failure: /remainTimeToLive/, steps: 2 },
])(
  "a schedule that fails by a mistake ($planted) is shrunk, and its shortest form fails likewise",
  async (row) => {
    const planted = [row.planted];
    const { findings } = await simulate(file, { planted, schedules: 3, seed: 1 }, 1);
    const { failure, shortest } = findings[0] ?? expect.fail("nothing was found");
    expect(failure).toMatch(row.failure);
    expect(shortest.steps).toHaveLength(row.steps);
    const { replayed } = await simulate(file, { planted, replay: shortest });
    expect(replayed).toMatchObject({ failure: expect.stringMatching(row.failure) });
    expect(replayed?.lines?.length).toBeGreaterThan(4);
  },
);
