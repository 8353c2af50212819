/**
 * Several processes, each with many tasks, read and write back counters under plain locks on one Redis. The second test
 * also kills and pauses processes at random moments. kinds.test.ts does the same with the other kinds.
 */
import { afterEach, expect, test } from "vitest";
import { forFile } from "../support/index.js";
import { Fleet, type Part } from "./fleet.js";

const ACQUISITIONS = 40_000;
/** Long enough for a machine that is busy with other work. */
const CALM_TIMEOUT = 900_000;
const ROUND = 12_000;

const calm: Part = {
  processes: 4,
  config: {
    kinds: ["lock"],
    coolTasks: 48,
    cool: 1_200,
    hotTasks: 6,
    hot: 6,
    manner: "calm",
    lease: [10_000, 10_000],
    safe: 3_000,
    options: { watchdogTimeout: 30_000 },
  },
  limits: { lease: 30_000, margin: 5_000, patience: 3_000 },
};

const wild: Part = {
  processes: 3,
  config: {
    kinds: ["lock"],
    coolTasks: 12,
    cool: 40,
    hotTasks: 12,
    hot: 3,
    manner: "wild",
    lease: [1_200, 1_800],
    safe: 600,
    options: { watchdogTimeout: 1_500, pollCap: 1_000 },
  },
  limits: { lease: 1_800, margin: 3_000, patience: 1_000 },
};

const fleet = await forFile(Fleet.launch());
afterEach(() => fleet.reset());

test(
  `${ACQUISITIONS} acquisitions by ${calm.processes} processes exclude each other`,
  async () => {
    await fleet.man(calm);
    const begun = performance.now();
    await fleet.untilCounted({ sections: ACQUISITIONS }, CALM_TIMEOUT - 30_000);
    const seconds = (performance.now() - begun) / 1_000;
    const { counts, errors } = await fleet.stop();
    const { history, findings } = await fleet.judge(new Map(), calm.limits);
    const count = history.sections.length;
    console.log(
      `exclusion: ${count} checked acquisitions (${counts.hot} crowded) by ${calm.processes} processes in ` +
        `${seconds.toFixed(1)} s, ${findings.length} violations`,
    );
    expect(findings).toEqual([]);
    expect(errors).toEqual([]);
    expect(counts.lost ?? 0).toBe(0);
    expect(count).toBeGreaterThanOrEqual(ACQUISITIONS);
    expect(history.counters?.reduce((n, { writes }) => n + writes, 0)).toBe(counts.written);
    expect(counts.hot).toBeGreaterThan(1_000);
  },
  CALM_TIMEOUT,
);

test("processes that are killed and paused at random leave no lock to two owners, or to none", async () => {
  await fleet.man(wild);
  const { deaths, pauses } = await fleet.harass(wild, ROUND, 20);
  await fleet.untilCounted({ sections: 1_000 });
  const { counts, errors } = await fleet.stop();
  const { history, findings } = await fleet.judge(deaths, wild.limits);
  const open = history.sections.filter(({ leftAt }) => leftAt === undefined).length;
  console.log(
    `exclusion: ${history.sections.length} checked acquisitions, ${deaths.size} processes killed (${open} inside a ` +
      `section), ${pauses} paused, ${counts.lost ?? 0} holds lost, ${findings.length} violations`,
  );
  expect(findings).toEqual([]);
  expect(errors).toEqual([]);
  expect(open).toBeGreaterThan(0);
}, 300_000);
