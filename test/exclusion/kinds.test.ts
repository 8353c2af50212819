/**
 * Like exclusion.test.ts, with fair, fenced and read-write locks: an exclusive holder is alone, readers share the lock
 * with readers only, the first call is served first, and tokens rise.
 */
import { afterEach, expect, test } from "vitest";
import { forFile } from "../support/index.js";
import type { History } from "./checker.js";
import { Fleet, type Part } from "./fleet.js";
import { tally } from "./order.js";
import { groupByLock } from "./sections.js";

const ACQUISITIONS = 40_000;
/** Long enough for a machine that is busy with other work. */
const CALM_TIMEOUT = 900_000;
const ROUND = 11_000;
const KINDS = ["fair", "fenced", "readwrite", "unranked"];
const POLL_CAP = 600;

const calm: Part = {
  processes: 4,
  config: {
    kinds: KINDS,
    coolTasks: 36,
    cool: 300,
    hotTasks: 12,
    hot: 2,
    manner: "calm",
    // A read hold inside a writer's hold has a quarter of this lease, and must not end before it is given back.
    lease: [40_000, 40_000],
    safe: 3_000,
    options: { watchdogTimeout: 30_000 },
  },
  limits: { lease: 40_000, margin: 5_000, patience: 3_000 },
};

const wild: Part = {
  processes: 3,
  config: {
    kinds: KINDS,
    coolTasks: 12,
    cool: 12,
    hotTasks: 16,
    hot: 2,
    manner: "wild",
    lease: [1_200, 1_800],
    safe: 600,
    options: { watchdogTimeout: 1_500, pollCap: POLL_CAP },
  },
  // A waiter that dies in a queue is skipped after three polls, by the next waiter that polls.
  limits: { lease: 1_800, margin: 3_000, patience: 1_000, absence: 4 * POLL_CAP },
};

/** Holders that ignore the loss of their hold: locks are taken by force, and only the tokens keep the counters right. */
const careless: Part = {
  processes: 3,
  config: {
    kinds: ["fenced"],
    coolTasks: 8,
    cool: 4,
    hotTasks: 8,
    hot: 1,
    manner: "careless",
    lease: [100, 100],
    safe: 0,
    options: { watchdogTimeout: 1_500, pollCap: POLL_CAP, commandTimeout: 1_000 },
  },
  limits: { lease: 1_500, margin: 3_000, patience: 3_000 },
};

const fleet = await forFile(Fleet.launch());
afterEach(() => fleet.reset());

/** The number of sections of each kind, and of those in which the kind's promises mattered. */
function describeSections({ sections }: History) {
  const kinds: Record<string, number> = {};
  let [together, behind] = [0, 0];
  for (const [lock, stays] of groupByLock(sections)) {
    const kind = lock.slice(0, lock.indexOf("-"));
    kinds[kind] = (kinds[kind] ?? 0) + stays.length;
    const found = tally(stays);
    together += found.together;
    behind += found.behind;
  }
  const list = KINDS.map((kind) => `${kinds[kind] ?? 0} ${kind}`).join(", ");
  return { kinds, together, behind, text: `${list}; ${together} readers beside others, ${behind} in line` };
}

test(
  `${ACQUISITIONS} acquisitions of other kinds exclude each other, and keep their order`,
  async () => {
    await fleet.man(calm);
    const begun = performance.now();
    await fleet.untilCounted({ sections: ACQUISITIONS }, CALM_TIMEOUT - 30_000);
    const seconds = (performance.now() - begun) / 1_000;
    const { counts, errors } = await fleet.stop();
    const { history, findings } = await fleet.judge(new Map(), calm.limits);
    const { kinds, together, behind, text } = describeSections(history);
    console.log(
      `kinds: ${history.sections.length} checked acquisitions (${text}) in ${seconds.toFixed(1)} s, ` +
        `${findings.length} violations`,
    );
    expect(findings.slice(0, 20)).toEqual([]);
    expect(errors).toEqual([]);
    expect(counts.lost ?? 0).toBe(0);
    expect(history.counters?.reduce((n, { writes }) => n + writes, 0)).toBe(counts.written);
    for (const kind of KINDS) expect(kinds[kind]).toBeGreaterThan(ACQUISITIONS / 10);
    expect(together).toBeGreaterThan(300);
    expect(behind).toBeGreaterThan(300);
    expect(counts.downgraded).toBeGreaterThan(100);
    expect(counts["upgrades refused"]).toBeGreaterThan(100);
  },
  CALM_TIMEOUT,
);

test("processes that are killed and paused at random hold nobody up for longer than they may", async () => {
  await fleet.man(wild);
  const { deaths, pauses } = await fleet.harass(wild, ROUND, 15, 300);
  await fleet.untilCounted({ sections: 1_000 });
  // For some time after a death all calls may have to wait. Only after that the checker can tell which ones are stuck.
  await new Promise((resolve) => setTimeout(resolve, 6_000));
  const { counts, errors } = await fleet.stop();
  const { history, findings } = await fleet.judge(deaths, wild.limits);
  const open = history.sections.filter(({ leftAt }) => leftAt === undefined).length;
  console.log(
    `kinds: ${history.sections.length} checked acquisitions (${describeSections(history).text}), ` +
      `${deaths.size} processes killed (${open} inside a section), ${pauses} paused, ` +
      `${counts.lost ?? 0} holds lost, ${findings.length} violations`,
  );
  expect(findings.slice(0, 20)).toEqual([]);
  expect(errors).toEqual([]);
  expect(open).toBeGreaterThan(0);
}, 300_000);

test("tokens rise over expiry, force, kills and a server that has forgotten everything", async () => {
  await fleet.man(careless);
  const before = await fleet.harass(careless, 2_000, 3);
  const [locks] = await fleet.site.masters();
  await locks?.restart();
  const after = await fleet.harass(careless, 2_000, 3);
  await fleet.untilCounted({ lost: 1, forced: 1, sections: 200 });
  const { counts, errors } = await fleet.stop();
  const deaths = new Map([...before.deaths, ...after.deaths]);
  const { history, findings } = await fleet.judge(deaths, careless.limits, () => true);
  const writes = history.counters?.reduce((n, counter) => n + counter.writes, 0) ?? 0;
  const count = history.sections.length;
  console.log(
    `kinds: ${count} tokens, ${counts.forced ?? 0} locks freed by force, ${counts.lost ?? 0} holds lost, ` +
      `${deaths.size} processes killed, ${count - writes} late writes refused, ${findings.length} violations`,
  );
  expect(findings.slice(0, 20)).toEqual([]);
  expect(errors).toEqual([]);
  expect(counts.lost).toBeGreaterThan(0);
  expect(counts.forced).toBeGreaterThan(0);
  expect(writes).toBeGreaterThan(0);
  expect(writes).toBeLessThan(count);
}, 60_000);
