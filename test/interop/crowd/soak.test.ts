/**
 * Node and Java processes take the same locks of every kind in random ways, with random leases, and are killed at
 * random. What they do inside is checked as in test/fleet. HOLDFAST_SOAK_MINUTES is how long it goes on.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { FindingKind } from "../../fleet/checker.js";
import type { Figures } from "../../fleet/fleet.js";
import { type Crew, MixedFleet, mixOf } from "./mixed-fleet.js";

const MINUTES = Number(process.env.HOLDFAST_SOAK_MINUTES ?? 0);
const KINDS = ["lock", "fair", "fenced", "readwrite"];
/** The most rounds that are played, because a busy machine plays little in one. */
const ROUNDS = 8;
/** What must have happened for the soak to prove anything. */
const ENOUGH: Readonly<Record<string, number>> = {
  ...Object.fromEntries(["Node", "Java"].flatMap((side) => KINDS.map((kind) => [`${side} ${kind}`, 25]))),
  ...{
    "changes of side": 200,
    "renewed stays": 1,
    nested: 1,
    downgraded: 1,
    "java nested": 1,
    "java downgraded": 1,
  },
};

const ROUND = MINUTES > 0 ? Math.min(100_000, MINUTES * 60_000) : 20_000;

// One version of Redisson is enough, because the tests of each kind cover the others.
const [built] = inject("redisson");

let fleet: MixedFleet | undefined;

async function launch(crew: Crew): Promise<MixedFleet> {
  if (!built) throw new Error("the global set-up did not say whether there is a Redisson");
  fleet = await MixedFleet.launch(built, crew);
  await fleet.man();
  return fleet;
}

beforeEach((context) => {
  if (built && "missing" in built) context.skip(built.missing);
});
afterEach(async () => {
  await fleet?.end();
  fleet = undefined;
});

describe(`soak, Redisson ${built?.version}`, () => {
  test(
    "processes of both sides that are killed at random leave no lock to two owners, or to none",
    async () => {
      const end = performance.now() + MINUTES * 60_000;
      // Each task on a hot fair lock is a place in its queue, and a Java waiter may have to sleep for all of them.
      const tasks = { coolTasks: 4, cool: 4, hotTasks: 2, hot: 1 };
      const mixed = await launch({ nodes: 4, jvms: 2, tasks, kinds: KINDS });
      const seen: Record<string, number> = {};
      const count = (figures: Figures["counts"]) => {
        for (const [name, figure] of Object.entries(figures)) seen[name] = (seen[name] ?? 0) + figure;
      };
      const missing = () => Object.entries(ENOUGH).filter(([name, least]) => (seen[name] ?? 0) < least);
      for (let round = 1; ; round++) {
        await mixed.harass(ROUND);
        // Resolves only if every call is served, also behind the last who were killed.
        const { counts, errors } = await mixed.stop();
        const { history, findings, eternal } = await mixed.judge();
        const { stays, deaths } = history;
        const mix = mixOf(history);
        const killed = (side: string) => [...deaths.keys()].filter((name) => name.startsWith(side)).length;
        const open = stays.filter(({ leftAt }) => leftAt === undefined).length;
        console.log(
          `interop: ${stays.length} checked acquisitions (${JSON.stringify(mix)}); ${killed("p")} Node and ${killed("j")} Java ` +
            `processes killed (${open} stays ended so); ${findings.length} violations`,
        );
        expect(findings.slice(0, 20)).toEqual([]);
        expect(errors.slice(0, 20)).toEqual([]);
        expect(eternal).toEqual([]);
        expect(killed("p")).toBeGreaterThan(0);
        expect(killed("j")).toBeGreaterThan(0);
        count(counts);
        count(mix);
        if (performance.now() >= end && (missing().length === 0 || round === ROUNDS)) break;
        await mixed.man();
      }
      expect(missing()).toEqual([]);
    },
    MINUTES * 60_000 + ROUNDS * 120_000,
  );
});

/** The test of the test. */
describe.skipIf(MINUTES > 0)(`soak of what is wrong, Redisson ${built?.version}`, () => {
  interface Wrong {
    readonly title: string;
    readonly kind: string;
    readonly planted?: string;
    readonly nodePlanted?: string;
    readonly found: FindingKind;
  }
  const wrongs: Wrong[] = [
    { title: "Java frees a lock that others hold", kind: "lock", planted: "forces", found: "overlap" },
    {
      title: "Node has a counter of tokens of its own",
      kind: "fenced",
      nodePlanted: "own counter",
      found: "token",
    },
  ];

  test.each(wrongs)(
    "$title: it is found",
    async ({ kind, found, ...how }) => {
      const tasks = { coolTasks: 0, cool: 0, hotTasks: 8, hot: 2 };
      const mixed = await launch({ nodes: 1, jvms: 1, tasks, kinds: [kind], ...how });
      const kinds = new Set<FindingKind>();
      // In so short a time it depends on chance, and on the load of the machine, whether a mistake shows.
      for (let round = 1; !kinds.has(found) && round <= ROUNDS; round++) {
        if (round > 1) await mixed.man();
        await pause(4_000);
        await mixed.stop();
        const { findings } = await mixed.judge();
        for (const finding of findings) kinds.add(finding.kind);
      }
      expect([...kinds]).toContain(found);
    },
    ROUNDS * 30_000,
  );
});
