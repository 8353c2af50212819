/** Properties of several processes that each have a policy, under any load. */
import { expect } from "vitest";
import { type EngineClass, type Load, type Outcome, share } from "./processes.js";

/** Milliseconds. */
const LONGEST_TURN = 50;
const LONGEST_STAY = 1_000;
/** A command, its answer and a message, each at its longest latency; and all again for a call that came too early. */
const WAYS = 2 * 3 * 1.5;

export type Property = (EngineOf: EngineClass, load: Load) => Promise<void>;

/** Jain's fairness index: 1 if all have the same share, 1/n if one of n has everything. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b ** 2, 0));
}

/** The most runs of others between two runs of one process; for a process without a run, the number of all runs. */
function mostPassedOver({ runs, holds }: Outcome): number {
  const most = holds.map((_, process) => {
    const own = runs.flatMap((run, i) => (run.process === process ? [i] : []));
    return Math.max(...[...own, runs.length].map((at, i) => at - (own[i - 1] ?? -1) - 1));
  });
  return Math.max(...most);
}

function expectEqualShares({ holds }: Outcome): void {
  expect(jain(holds), "Jain's index over processes").toBeGreaterThanOrEqual(0.9);
}

function longestRun({ runs }: Outcome): number {
  return Math.max(...runs.map(({ from, to }) => to - from));
}

/** Processes with two or more workers that hear of each other take turns, however many calls wait in each. */
export const isFair: Property = async (EngineOf, load) => {
  const outcome = await share(EngineOf, load);
  expectEqualShares(outcome);
  expect(mostPassedOver(outcome), "runs of others between two of a process").toBeLessThan(
    4 * load.workers.length,
  );
  expect(longestRun(outcome), "ms of the longest run").toBeLessThan(
    LONGEST_TURN + 2 * load.hold + 2 * WAYS * load.latency,
  );
};

/** A process in which only one call waits gets its share, too. */
export const isFairToAll: Property = async (EngineOf, load) => {
  expectEqualShares(await share(EngineOf, load));
};

/** Hand-overs end, whatever a process knows of the others, and another process is the next to get the lock. */
export const endsItsStay: Property = async (EngineOf, load) => {
  expect(longestRun(await share(EngineOf, load)), "ms of the longest run").toBeLessThan(
    LONGEST_STAY + load.hold + WAYS * load.latency,
  );
};

/** The lock is not free for long while a call waits, even if the policy waits for takers that never come. */
export const neverSleeps: Property = async (EngineOf, load) => {
  const { longestFree } = await share(EngineOf, load);
  // The policy waits once for each listener of an offer, also for the stranger, and once more after a release.
  const inVain = load.stranger || load.workers.length === 1;
  const backoff = inVain ? load.workers.length * LONGEST_TURN : 0;
  expect(longestFree, "ms for which the lock was free").toBeLessThan(backoff + WAYS * load.latency);
};
