/**
 * Crowds of processes on semaphores and latches, while replies are lost, connections are cut and processes are stopped
 * and killed. There are never more permits out than exist, none is lost or comes from nowhere, no call waits for free
 * permits, and a latch opens with the last count.
 */
import { describe, expect, test } from "vitest";
import { PATIENCE, UNHURRIED } from "../support/index.js";
import { Crowd, type CrowdPart, type CrowdVerdict, crowdServers, type Harm, keepCrowd } from "./crowd.js";
import { playRounds } from "./latch-rounds.js";
import { startServers } from "./scene.js";

/** The number of stays that are enough. */
const ENOUGH = 101;
const ROUND = 5_000;
const LIMIT = 15 * PATIENCE;
/** Milliseconds: a call that was not served by then has waited too long. */
const WAIT = PATIENCE + 2_000;
/** The poll comes later than any call waits, so a waiter that was not woken is found. */
const CALM = { ...UNHURRIED, pollCap: 3 * PATIENCE };

const semaphore: CrowdPart = {
  kind: "semaphore",
  processes: 3,
  locks: 6,
  limits: { permits: 4, largest: 3, patience: PATIENCE, lease: 0, margin: 20 },
  lossy: 150,
  config: { tasks: 24, most: 3, stay: 3, fuse: 30, patience: WAIT, options: CALM },
};

const permits: CrowdPart = {
  kind: "permits",
  processes: 3,
  locks: 6,
  limits: { permits: 4, largest: 1, patience: PATIENCE, lease: 2_000, margin: 20 },
  lossy: 100,
  config: {
    tasks: 24,
    stay: 3,
    fuse: 30,
    lease: [1_400, 1_900],
    patience: WAIT,
    options: { ...CALM, watchdogTimeout: 2_000 },
  },
};

const latch: CrowdPart = {
  kind: "latch",
  processes: 3,
  locks: 0,
  limits: { permits: 0, largest: 0, patience: PATIENCE, lease: 0, margin: 20 },
  lossy: 30,
  config: { tasks: 0, options: CALM },
};

const servers = await startServers();

async function gathered(part: CrowdPart, play: (crowd: Crowd) => Promise<void>): Promise<void> {
  const crowd = await Crowd.gather(part, crowdServers(servers));
  try {
    await play(crowd);
  } finally {
    await crowd.end();
  }
}

async function harassed(
  crowd: Crowd,
  harm: Harm,
): Promise<CrowdVerdict & { counts: Record<string, number> }> {
  await crowd.harass(harm);
  const { counts, errors } = await crowd.finish();
  const verdict = await crowd.judge();
  const { history, findings } = verdict;
  const acquired = history.stays.reduce((sum, stay) => sum + stay.permits, 0);
  console.log(
    `crowd: ${history.stays.length} checked acquisitions of ${acquired} permits (${crowd.part.kind}); ` +
      `${crowd.lost} replies or requests lost, ${crowd.cuts} connections cut, ${crowd.stops} processes stopped, ` +
      `${crowd.deaths.size} killed; ${counts.aborted ?? 0} calls aborted, ${counts.lapsed ?? 0} permits lapsed, ` +
      `${findings.length} violations`,
  );
  if (findings.length > 0) console.log(`crowd: the history is in ${await keepCrowd(verdict)}`);
  expect(findings.slice(0, 20)).toEqual([]);
  expect([...errors, ...verdict.errors]).toEqual([]);
  expect(crowd.lost).toBeGreaterThan(1);
  return { ...verdict, counts };
}

describe.concurrent("crowds", { timeout: LIMIT }, () => {
  test("a semaphore has its permits, no more and no less", () =>
    gathered(semaphore, async (crowd) => {
      const { history, most } = await harassed(crowd, {
        ms: ROUND,
        stays: ENOUGH,
        kills: 0,
        nap: 250,
        coma: 0,
      });
      expect(most).toBe(semaphore.limits.permits);
      expect(history.stays.length).toBeGreaterThan(ENOUGH - 1);
    }));

  test("permits of processes that were killed or stopped come back", () =>
    gathered(permits, async (crowd) => {
      const { history, counts } = await harassed(crowd, {
        ms: ROUND,
        stays: ENOUGH,
        kills: 4,
        nap: 250,
        coma: 2_600,
      });
      expect(history.stays.length).toBeGreaterThan(ENOUGH - 1);
      expect(history.stays.filter(({ leftAt }) => leftAt === undefined).length).toBeGreaterThan(0);
      expect(counts.lapsed).toBeGreaterThan(0);
    }));

  test("a latch opens with the last count, for all", () =>
    gathered(latch, async (crowd) => {
      const harassing = crowd.harass({ ms: ROUND, kills: 0, nap: 150, coma: 0 });
      const { latches, counts, awaited, findings } = await playRounds(crowd, {
        lanes: 6,
        ms: ROUND,
        losses: 2,
      });
      await harassing;
      const { errors } = await crowd.finish();
      console.log(
        `crowd: ${latches} latches, ${counts} counts, ${awaited} waits; ${crowd.lost} replies or requests lost, ` +
          `${crowd.cuts} connections cut, ${crowd.stops} processes stopped, ${findings.length} violations`,
      );
      expect(findings.slice(0, 20)).toEqual([]);
      expect(errors).toEqual([]);
      expect(crowd.lost).toBeGreaterThan(1);
      expect(latches).toBeGreaterThan(5);
    }));
});
