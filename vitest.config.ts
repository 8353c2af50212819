import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { ViteUserConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { PATIENCE } from "./test/support/patience.js";

// The tests mostly wait, for timers and for servers, so a small machine takes more workers than it has cores.
const workers = Number(process.env.HOLDFAST_TEST_WORKERS ?? Math.max(7, availableParallelism()));

/** What takes longest, in each group the longest first; of the others the larger file is before the smaller one. */
const LONG_ONES = [
  "test/cost/cost.test.ts",
  "test/docs/blocks.test.ts",
  "test/package/consumers.test.ts",
  "test/model/model.test.ts",
  "test/model/synchronizers.test.ts",
  "test/docs/types.test.ts",
  "test/tools/path.test.ts",
  "test/cli/looking.test.ts",
  "test/model/synchronizers-planted.test.ts",
  "test/package/bundles.test.ts",
  "test/inspection/list-large.test.ts",
  "test/examples/waiting.test.ts",
  "test/examples/everyday.test.ts",
  "test/interop/sequences/sequences.test.ts",
  "test/topology/cluster-failover.test.ts",
  "test/simulation/simulation.test.ts",
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

/**
 * Many files in one process, one after the other: a process takes a second to load Vitest and the library, which is as
 * long as most of these files take for their tests.
 */
const SHARED =
  "cli|contract|engine|faults|groups|inspection|kinds|legacy|locks|lua|replicas|support|synchronizers|watchdog";

/** Several processes each, as fast as they can: they come last, so that nothing that waits has to wait for them. */
const CROWDS = ["test/exclusion/**/*.test.ts", "test/groups/*-exclusion.test.ts"];

/** Thousands of schedules, mixed faults, and the planted bugs that crowds have to find, as fast as they can. */
const RANDOM = ["test/simulation/*.test.ts", "test/soak/**/*.test.ts", "test/exclusion/planted*.test.ts"];

/** What comes with the library: its pages, examples, tools and package, and what it costs to use. */
const DELIVERY = ["test/delivery/**/*.test.ts"];

/** Many servers each, and failovers that take as long as the servers make of it: most of it is waiting. */
const TOPOLOGIES = [
  "test/topology/**/*.test.ts",
  "test/examples/sentinel.test.ts",
  "test/not-guaranteed/masters.test.ts",
];

/** Servers and processes of their own, and with `npm run faults:peers` JVMs. */
const PEERS = ["test/peers/**/*.test.ts"];

/** Beside a JVM for each Redisson, which all files share, and those that a test kills; most of it is waiting as well. */
const INTEROP = ["test/interop/**/*.test.ts"];

/** A crowd of both sides. */
const MIXED_CROWD = ["test/interop/crowd/soak.test.ts"];

/** The oldest Redis that is supported, where `tools/redis-floor.mjs` has put it. */
const FLOOR = fileURLToPath(new URL("node_modules/.cache/holdfast-redis-6.2/redis-server", import.meta.url));
/** Run once more, on the oldest server and by the user who has the least rights, but for what no server has a part in. */
const CONTRACT = ["test/contract/!(bad-input*|client-process|texts).test.ts"];
const FLOOR_ABSENT = ["test/floor/absent.test.ts"];

/** For what does much: it only bounds, too. */
const LONG = 15 * PATIENCE;

/** `npm test` runs the projects `promises`, `promises-alone` and `crowds`, `npm run test:all` every one. */
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
          include: [`test/(${SHARED})/**/*.test.ts`],
          exclude: CROWDS,
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "promises-alone",
          include: [`test/!(${SHARED})/**/*.test.ts`],
          exclude: [...DELIVERY, ...TOPOLOGIES, ...CROWDS, ...RANDOM, ...PEERS, ...INTEROP, ...FLOOR_ABSENT],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "delivery", include: DELIVERY, exclude: TOPOLOGIES, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: "least",
          isolate: false,
          include: existsSync(FLOOR) ? CONTRACT : [...CONTRACT, ...FLOOR_ABSENT],
          env: {
            HOLDFAST_TEST_USER: "least",
            ...(existsSync(FLOOR) ? { HOLDFAST_REDIS_SERVER: FLOOR } : {}),
          },
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
          isolate: false, // no file changes what another one imports, and loading it anew costs a second
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "peers",
          include: PEERS,
          globalSetup: "test/interop/build.ts",
          testTimeout: LONG,
          maxConcurrency: 4,
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
        test: { name: "topologies", include: TOPOLOGIES, testTimeout: LONG, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: "crowds",
          include: CROWDS,
          exclude: RANDOM,
          testTimeout: LONG,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: { name: "random", include: RANDOM, testTimeout: LONG, sequence: { groupOrder: 2 } },
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
