/** The test of the test: a short fleet finds the library with one mistake in it. fleet.test.ts passes it without. */
import { afterEach, expect, test } from "vitest";
import { forTest, PATIENCE } from "../support/index.js";
import { LIMITS, TERMS } from "./campaign.js";
import { check, type FindingKind } from "./checker.js";
import { type Crew, Fleet } from "./fleet.js";
import { searchAll } from "./linear.js";
import { swapsOf } from "./planted.js";
import { independent } from "./sites.js";

/** By the intervals of the checker; and by the search alone, where no clock but that of the calls is asked. */
const FOUND: Readonly<Record<string, { kind: string; by: FindingKind; order?: true; patient?: true }>> = {
  "frees others": { kind: "lock", by: "overlap" },
  "grants what is held": { kind: "lock", by: "overlap", order: true },
  "is silent": { kind: "lock", by: "stuck", patient: true },
  "reads next to a writer": { kind: "readwrite", by: "overlap", order: true },
  "tokens that stay": { kind: "fenced", by: "token", order: true },
  "a permit too many": { kind: "semaphore", by: "overlap", order: true },
};
/** Rounds within which a mistake must show; most show in the first. */
const MOST = 10;
const VISITS = 300;
/** Where only the poll wakes a waiter, it comes later than is allowed. */
const RARE = { watchdogTimeout: 60_000, pollCap: 6_000 };
const IMPATIENT = 3_000;

const kinds = new Set<string>();

afterEach(() => kinds.clear());

/** Adds what a round finds. */
async function play(fleet: Fleet, crew: Crew, timeout: number, patience: number): Promise<void> {
  await fleet.man([crew]);
  const { worker } = fleet.members[0] as (typeof fleet.members)[number];
  const isEnough = fleet.untilVisited(VISITS, timeout).catch(() => {
    // A broken lock may stand still, and that is what is to be found.
  });
  // What a process does after it stood still for longer than its leases is late.
  worker.pause();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  worker.resume();
  await isEnough;
  await fleet.stop();
  const history = await fleet.recall([crew], 100);
  for (const { kind } of check(history, { ...LIMITS, patience })) kinds.add(kind);
  for (const { linearizable } of searchAll(history, LIMITS.permits).values())
    if (linearizable === false) kinds.add("order");
  await fleet.clear();
}

function fleetOf(name: string, patient = false): Promise<Fleet> {
  const hasty = {
    options: { watchdogTimeout: 600, pollCap: 300 },
    lease: [300, 600],
    short: [80, 180],
    safe: 100,
    stay: 15,
  };
  const config = { ...TERMS.config, ...hasty, ...(patient ? { options: RARE } : {}) };
  return Fleet.launch(independent(1, false), { ...TERMS, names: 2, config, swaps: swapsOf(name) });
}

const crewOf = (kind: string): Crew => ({ processes: 2, kinds: [kind], tasks: 6, mortal: true });

test.each(Object.entries(FOUND))(
  "a fleet finds the mistake '%s'",
  { timeout: 6 * PATIENCE },
  async (name, { kind, by, order, patient }) => {
    const fleet = forTest(await fleetOf(name, patient));
    const wanted = order ? [by, "order"] : [by];
    for (let round = 0; round < MOST && !wanted.every((each) => kinds.has(each)); round++)
      await play(fleet, crewOf(kind), 2_000, IMPATIENT);
    expect([...kinds]).toEqual(expect.arrayContaining(wanted));
  },
);
