import { availableParallelism } from "node:os";
import type { ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { PATIENCE } from "./test/support/patience.js";

// The tests mostly wait, for timers and for servers, so a small machine takes more workers than it has cores.
const workers = Number(process.env.HOLDFAST_TEST_WORKERS ?? Math.max(7, availableParallelism()));

/** What takes longest, in each group the longest first; of the others the larger file is before the smaller one. */
const LONG_ONES = [
  "test/delivery/examples/examples.test.ts",
  "test/delivery/docs/blocks.test.ts",
  "test/delivery/demo/demo.test.ts",
  "test/delivery/package/consumers.test.ts",
  "test/delivery/docs/types.test.ts",
  "test/delivery/cost/cost.test.ts",
  "test/delivery/tools/bench.test.ts",
  "test/interop/sequences/sequences.test.ts",
  "test/interop/cases/situations.test.ts",
  "test/topology/cluster-failover.test.ts",
  "test/simulation/commands/commands.test.ts",
  "test/simulation/simulation.test.ts",
  "test/entries/testing-fidelity.test.ts",
  "test/faults/leaks/leaks.test.ts",
];

/** So that no group ends with a file that runs alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG_ONES.findIndex((file) => moduleId.endsWith(file));
      return at < 0 ? LONG_ONES.length : at;
    };
    // A process goes on with the next file only if that is of the same project.
    const project = (file: TestSpecification) => file.project.name;
    return sorted.sort((a, b) => rank(a) - rank(b) || project(a).localeCompare(project(b)));
  }
}

const testsIn = (...folders: string[]): string[] => folders.map((folder) => `test/${folder}/**/*.test.ts`);

/**
 * Many files in one process, one after the other: a process takes a second to load Vitest and the library, which is as
 * long as most of these files take for their tests.
 */
const TOGETHER = testsIn("contract", "kinds", "faults", "lua", "support", "entries");

/** What changes its process for good, or looks at it as a whole: a process for each file. */
const ALONE = [
  ...testsIn("faults/fakes", "faults/fuzz", "faults/leaks", "faults/not-guaranteed", "simulation"),
  ...testsIn("entries/inspector"),
  "test/entries/{nestjs,otel,otel-prometheus,testing,testing-fakes,testing-fidelity,web-locks-signal}.test.ts",
];

/** Several processes each, as fast as they can: they come last, so that nothing that waits has to wait for them. */
const FLEET = testsIn("fleet");

/** A minute on one topology, by the day; and what the fleet has to find. */
const FLEET_OF_THE_DAY = ["test/fleet/{topology,planted,soak}.test.ts"];

/** What comes with the library: its pages, examples, tools and package, and what it costs to use. */
const DELIVERY = testsIn("delivery");

/** Many servers each, and failovers that take as long as the servers make of it: most of it is waiting. */
const TOPOLOGIES = [
  ...testsIn("topology"),
  "test/delivery/examples/sentinel.test.ts",
  "test/faults/not-guaranteed/masters.test.ts",
];

/** Beside a JVM for each Redisson, which all files share, and those that a test kills; most of it is waiting as well. */
const INTEROP = testsIn("interop");

/** A crowd of both sides. */
const MIXED_CROWD = ["test/interop/crowd/soak.test.ts"];

/** For what does much: it only bounds, too. */
const LONG = 15 * PATIENCE;

/** `npm test` runs the projects `promises`, `promises-alone` and `fleet`, `npm run test:all` every one. */
const config: ViteUserConfig = {
  test: {
    pool: "forks",
    maxWorkers: workers,
    // They only bound; what a test waits for has its own limit, and says what is missing.
    testTimeout: 4 * PATIENCE,
    hookTimeout: 6 * PATIENCE,
    setupFiles: "test/support/kept-holds.ts",
    reporters: ["default", "./tools/plain-reporter.mjs"],
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "promises",
          include: TOGETHER,
          exclude: [...ALONE, ...TOPOLOGIES],
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "promises-alone",
          include: ALONE,
          exclude: TOPOLOGIES,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "delivery",
          include: DELIVERY,
          exclude: TOPOLOGIES,
          isolate: false /* the compiler alone takes seconds to load */,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "interop",
          include: INTEROP,
          exclude: MIXED_CROWD,
          globalSetup: "test/interop/shared.ts",
          isolate: false /* no file changes what another one imports */,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "interop-crowd",
          include: MIXED_CROWD,
          globalSetup: "test/interop/build.ts",
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "topologies",
          include: TOPOLOGIES,
          isolate: false,
          testTimeout: LONG,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "fleet",
          include: FLEET,
          exclude: FLEET_OF_THE_DAY,
          testTimeout: LONG,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "fleet-of-the-day",
          include: FLEET_OF_THE_DAY,
          testTimeout: LONG,
          sequence: { groupOrder: 3 },
        },
      },
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/scripts/generated.ts", "test/**"],
      reporter: ["text", "text-summary"],
    },
  },
};

export default config;
