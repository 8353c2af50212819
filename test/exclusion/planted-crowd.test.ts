/**
 * The test of the test: a small crowd finds each single mistake in the library's semaphores or latch, and passes without
 * it. `pollCap` is long where a poll would replace a wake-up that does not come.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { PATIENCE, UNHURRIED } from "../support/index.js";
import { Crowd, type CrowdKind, type CrowdPart, crowdServers } from "./crowd.js";
import type { CrowdFindingKind } from "./crowd-checker.js";
import { playRounds } from "./latch-rounds.js";
import { startServers } from "./scene.js";

const MS = 1_000;
/** Chance, and the load of the machine, decide what happens in so short a time, so a plot is repeated for this long. */
const LONGEST = 200_000;
const ASLEEP = 60_000;
/** Milliseconds within which a call is served: half of the time for which a mutant makes a call wait. */
const SERVED = PATIENCE / 2;
/** The watchdog's time-out: long enough to be right on a machine that lets the watchdog run. */
const WATCHDOG = 2_000;

/** A value of `lossy` with which nothing is lost. */
const CALM = Number.MAX_SAFE_INTEGER;

interface Plot {
  readonly mutant: string;
  readonly kind: CrowdKind;
  readonly found: CrowdFindingKind | "rounds";
  readonly config?: object;
  /** Milliseconds that a call may wait while permits are free. Default SERVED. */
  readonly patience?: number;
  /** One script in this many loses its reply, or is lost. By default none is, and no connection is cut. */
  readonly lossy?: number;
}

const CONFIG = {
  semaphore: { tasks: 12, most: 3, stay: 3, fuse: 6 },
  permits: { tasks: 12, stay: 3, fuse: 6, lease: [1_000, 1_300] },
  latch: { tasks: 0 },
};

/** Leases so long that no waiter can profit from their end. */
const LONG = { lease: [30_000, 40_000], options: { ...UNHURRIED, watchdogTimeout: 90_000, pollCap: ASLEEP } };
const TAKEN = "permitTaken";

const plots: readonly Plot[] = [
  { mutant: "takes-again", kind: "semaphore", found: "sum", lossy: 16 },
  { mutant: "gives-again", kind: "semaphore", found: "sum", lossy: 16 },
  {
    mutant: "keeps-unwanted",
    kind: "semaphore",
    found: "sum",
    lossy: 60,
    config: { ways: ["abortedAcquire"] },
  },
  { mutant: "silent-release", kind: "semaphore", found: "stuck" },
  { mutant: "forgets-drain", kind: "semaphore", found: "sum", lossy: 4, config: { ways: ["drained"] } },
  { mutant: "any-number", kind: "semaphore", found: "overflow" },
  { mutant: "counts-one", kind: "permits", found: "sum", config: { short: [100, 100], ways: ["outlasted"] } },
  { mutant: "permit-taken-again", kind: "permits", found: "sum", lossy: 8, config: { ways: [TAKEN] } },
  { mutant: "lapsed-comes-back", kind: "permits", found: "sum", config: { ways: ["outlasted"] } },
  { mutant: "release-forgotten", kind: "permits", found: "refused", lossy: 8, config: { ways: [TAKEN] } },
  { mutant: "idle-watchdog", kind: "permits", found: "unkept", config: { ways: ["lingered"] } },
  { mutant: "hasty-clock", kind: "permits", found: "overflow" },
  { mutant: "silent-permit", kind: "permits", found: "stuck", config: { ...LONG, ways: [TAKEN] } },
  { mutant: "opens-early", kind: "latch", found: "rounds", lossy: 16 },
  { mutant: "counts-again", kind: "latch", found: "rounds", lossy: 16 },
  { mutant: "silent-opening", kind: "latch", found: "rounds" },
  { mutant: "forgets-setting", kind: "latch", found: "rounds", lossy: 6 },
];

const servers = await startServers();

function partOf(
  { mutant, kind, config, patience = SERVED, lossy = CALM }: Plot,
  planted: boolean,
  round: number,
): CrowdPart {
  const options = { ...UNHURRIED, watchdogTimeout: WATCHDOG, pollCap: ASLEEP };
  return {
    kind,
    prefix: `${kind}-${mutant}-${planted ? "planted" : "real"}-${round}`,
    processes: 1,
    locks: kind === "latch" ? 0 : 1,
    limits: {
      permits: 4,
      largest: 3,
      patience,
      lease: WATCHDOG,
      keeps: lossy === CALM,
      margin: 20,
    },
    lossy,
    config: { patience: SERVED + 1_000, options, ...CONFIG[kind], ...config },
    mutant: planted ? mutant : undefined,
  };
}

/** The kinds of the findings. */
async function play(plot: Plot, planted: boolean, round = 1): Promise<readonly string[]> {
  const crowd = await Crowd.gather(partOf(plot, planted, round), crowdServers(servers));
  try {
    const harm = { ms: MS, kills: 0, nap: 0, coma: 0 };
    const harassing = plot.lossy === undefined ? sleep(MS) : crowd.harass(harm);
    if (plot.kind === "latch") {
      const { findings } = await playRounds(crowd, { lanes: 4, ms: MS });
      await harassing;
      return findings.map(() => "rounds");
    }
    await harassing;
    const { errors } = await crowd.finish();
    const verdict = await crowd.judge();
    if (!planted) expect([...errors, ...verdict.errors]).toEqual([]);
    const { findings } = verdict;
    return findings.map(({ kind }) => kind);
  } finally {
    await crowd.end();
  }
}

describe.concurrent.each(plots)("$kind, $mutant", { timeout: 240_000 }, (plot) => {
  // One mistake may be found in several ways.
  test("is found", async () => {
    let found: readonly string[] = [];
    const end = performance.now() + LONGEST;
    for (let round = 1; !found.includes(plot.found) && performance.now() < end; round++) {
      found = await play(plot, true, round);
    }
    expect(found).toContain(plot.found);
  });
});

test("permits on their way back are waited for before they are counted", {
  timeout: 6 * PATIENCE,
}, async () => {
  const plot: Plot = {
    mutant: "none",
    kind: "semaphore",
    found: "sum",
    // A call that sleeps when the stall begins hears of no release. It waits all its time, and that proves nothing here.
    patience: PATIENCE,
    config: { options: { pollCap: ASLEEP } },
  };
  const crowd = await Crowd.gather(partOf(plot, false, 1), crowdServers(servers));
  try {
    await sleep(200);
    for (const proxy of crowd.proxies) proxy.stall();
    // All calls end without an answer, and the permits that they took, or may have taken, are not given back yet.
    await crowd.finish();
    const judged = crowd.judge();
    await Promise.race([judged, sleep(100)]);
    for (const proxy of crowd.proxies) proxy.restore();
    expect((await judged).findings).toEqual([]);
  } finally {
    await crowd.end();
  }
});

/** Four plots: the usual one, and one for each setting that only some of them have. */
const real: readonly Plot[] = plots.filter(({ mutant }) =>
  ["takes-again", "silent-release", "silent-permit", "opens-early"].includes(mutant),
);

test.concurrent.each(real)(
  "the real library passes as $mutant does not",
  { timeout: 120_000 },
  async (plot) => {
    expect(await play(plot, false)).toEqual([]);
  },
);
