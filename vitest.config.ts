import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { ViteUserConfig } from "vitest/config";
import { PATIENCE } from "./test/support/patience.js";

// The tests mostly wait, for timers and for servers, so a small machine takes more workers than it has cores.
const workers = Number(process.env.HOLDFAST_TEST_WORKERS ?? Math.max(5, availableParallelism()));

/** Several processes each, as fast as they can: they come last, so that nothing that waits has to wait for them. */
const CROWDS = [
  "test/exclusion/**/*.test.ts",
  "test/groups/*-exclusion.test.ts",
  "test/simulation/*.test.ts",
  "test/soak/**/*.test.ts",
];

/** Many servers each, and failovers that take as long as the servers make of it. */
const TOPOLOGIES = [
  "test/topology/**/*.test.ts",
  "test/examples/sentinel.test.ts",
  "test/not-guaranteed/masters.test.ts",
];

/** Servers and processes of their own, and with `npm run faults:peers` JVMs. */
const PEERS = ["test/peers/**/*.test.ts"];

/** Beside JVMs, which take a core each while they start. */
const INTEROP = ["test/interop/**/*.test.ts"];

/** A crowd beside JVMs. */
const MIXED_CROWD = ["test/interop/crowd/soak.test.ts"];

/** The oldest Redis that is supported, where `tools/redis-floor.mjs` has put it. */
const FLOOR = fileURLToPath(new URL("node_modules/.cache/holdfast-redis-6.2/redis-server", import.meta.url));
/** Run once more, on the oldest server and by the user who has the least rights. */
const CONTRACT = ["test/contract/**/*.test.ts"];
const FLOOR_ABSENT = ["test/floor/absent.test.ts"];

/** For what does much: it only bounds, too. */
const LONG = 15 * PATIENCE;

const config: ViteUserConfig = {
  test: {
    pool: "forks",
    maxWorkers: workers,
    // They only bound; what a test waits for has its own limit, and says what is missing.
    testTimeout: 4 * PATIENCE,
    hookTimeout: 6 * PATIENCE,
    setupFiles: "test/support/kept-holds.ts",
    reporters: ["default", "./tools/plain-reporter.mjs"],
    projects: [
      {
        extends: true,
        test: {
          name: "promises",
          include: ["test/**/*.test.ts"],
          exclude: [...TOPOLOGIES, ...CROWDS, ...PEERS, ...INTEROP, ...FLOOR_ABSENT],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "least",
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
          globalSetup: "test/interop/build.ts",
          sequence: { groupOrder: 3 },
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
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          name: "interop-crowd",
          include: MIXED_CROWD,
          globalSetup: "test/interop/build.ts",
          sequence: { groupOrder: 4 },
        },
      },
      {
        extends: true,
        test: { name: "topologies", include: TOPOLOGIES, testTimeout: LONG, sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: { name: "crowds", include: CROWDS, testTimeout: LONG, sequence: { groupOrder: 2 } },
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
