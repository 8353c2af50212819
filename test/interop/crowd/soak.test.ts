/**
 * Node and Java processes take the same locks of every kind in random ways, with random leases, and are killed at random;
 * what they do inside is checked as in the exclusion tests. HOLDFAST_SOAK_MINUTES makes it go on for so long.
 */
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { FindingKind } from "../../exclusion/checker.js";
import { keep } from "../../exclusion/fleet.js";
import type { WorkerOptions } from "../../support/index.js";
import { type Crew, describeMix, MixedFleet, QUIET } from "./mixed-fleet.js";

const MINUTES = Number(process.env.HOLDFAST_SOAK_MINUTES ?? 0);
const KINDS = ["lock", "fair", "fenced", "readwrite"];
const ROUND = MINUTES > 0 ? Math.min(100_000, MINUTES * 60_000) : 38_000;

// One version is enough: to the others the tests of each kind apply.
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
      const tasks = { coolTasks: 4, cool: 4, hotTasks: 4, hot: 1 };
      const mixed = await launch({ nodes: 4, jvms: 2, tasks, kinds: KINDS });
      for (;;) {
        await mixed.harass(ROUND);
        await pause(QUIET);
        const { counts, errors } = await mixed.stop();
        const { history, findings, eternal } = await mixed.judge();
        const { sections, deaths } = history;
        const mix = describeMix(history);
        const killed = (side: string) => [...deaths.keys()].filter((name) => name.startsWith(side)).length;
        const open = sections.filter(({ leftAt }) => leftAt === undefined).length;
        console.log(
          `interop: ${sections.length} checked acquisitions (${mix.text}); ${killed("p")} Node and ${killed("j")} Java ` +
            `processes killed (${open} stays ended so); ${findings.length} violations`,
        );
        if (findings.length > 0) await keep(history, findings);
        expect(findings.slice(0, 20)).toEqual([]);
        expect(errors.slice(0, 20)).toEqual([]);
        expect(eternal).toEqual([]);
        for (const kind of KINDS) {
          for (const side of ["Node", "Java"]) expect(mix.counts[`${side} ${kind}`]).toBeGreaterThan(100);
        }
        expect(mix.counts["changes of side"]).toBeGreaterThan(1_000);
        expect(mix.counts["renewed stays"]).toBeGreaterThan(0);
        expect(killed("p")).toBeGreaterThan(0);
        expect(killed("j")).toBeGreaterThan(0);
        for (const figure of ["nested", "downgraded", "java nested", "java downgraded"]) {
          expect(counts[figure] ?? 0, figure).toBeGreaterThan(0);
        }
        if (performance.now() >= end) break;
        await mixed.man();
      }
    },
    MINUTES * 60_000 + 300_000,
  );
});

/** The test of the test. */
describe.skipIf(MINUTES > 0)(`soak of what is wrong, Redisson ${built?.version}`, () => {
  interface Wrong {
    readonly title: string;
    readonly kind: string;
    readonly planted?: string;
    readonly worker?: WorkerOptions;
    readonly found: FindingKind;
  }
  const mutant = (name: string): WorkerOptions => ({
    execArgv: ["--import", new URL("mutant.mjs", import.meta.url).href],
    env: { HOLDFAST_MUTANT: name },
  });
  const wrongs: Wrong[] = [
    { title: "Java now and then locks another name", kind: "lock", planted: "strays", found: "lost update" },
    { title: "Java frees a lock that others hold", kind: "lock", planted: "forces", found: "overlap" },
    {
      title: "Node's readers do not look whether somebody writes",
      kind: "readwrite",
      worker: mutant("reader-beside-writer"),
      found: "overlap",
    },
    {
      title: "Node has a counter of tokens of its own",
      kind: "fenced",
      worker: mutant("own-counter"),
      found: "token",
    },
  ];

  test.each(wrongs)(
    "$title: it is found",
    async ({ kind, found, ...how }) => {
      const tasks = { coolTasks: 0, cool: 0, hotTasks: 8, hot: 2 };
      const mixed = await launch({ nodes: 1, jvms: 1, tasks, kinds: [kind], ...how });
      await pause(4_000);
      await mixed.stop();
      const { findings } = await mixed.judge();
      expect(findings.map((finding) => finding.kind)).toContain(found);
    },
    60_000,
  );
});
