/** What several processes with policies of their own come to, whatever the load. */
import { expect } from "vitest";
import { type EngineClass, type Load, type Outcome, share } from "./processes.js";

/** Milliseconds. */
const LONGEST_TURN = 50;
const LONGEST_STAY = 1_000;
/** A command, its answer and a message, each on its longest way, and that once more for who came too early. */
const WAYS = 2 * 3 * 1.5;

export type Property = (EngineOf: EngineClass, load: Load) => Promise<void>;

/** 1: all have the same; one of n has all: 1/n. */
function jain(shares: readonly number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0);
  return sum ** 2 / (shares.length * shares.reduce((a, b) => a + b ** 2, 0));
}

/** The most runs of others between two of a process; for one that had none all there were. */
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

/** Two and more in each process, who hear of each other: they take turns, however many wait in each. */
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

/** One that waits alone in its process gets its share, too. */
export const isFairToAll: Property = async (EngineOf, load) => {
  expectEqualShares(await share(EngineOf, load));
};

/** Whatever is known of the others, hand-overs end, and whoever ends them is not the next one. */
export const endsItsStay: Property = async (EngineOf, load) => {
  expect(longestRun(await share(EngineOf, load)), "ms of the longest run").toBeLessThan(
    LONGEST_STAY + load.hold + WAYS * load.latency,
  );
};

/** A lock is not free for long while somebody waits, even if others are waited for who never come. */
export const neverSleeps: Property = async (EngineOf, load) => {
  const { longestFree } = await share(EngineOf, load);
  // Each of those who hear of an offer is waited for, the stranger among them, and after a release one more.
  const inVain = load.stranger || load.workers.length === 1;
  const backoff = inVain ? load.workers.length * LONGEST_TURN : 0;
  expect(longestFree, "ms for which the lock was free").toBeLessThan(backoff + WAYS * load.latency);
};
