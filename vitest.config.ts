import { availableParallelism } from "node:os";
import type { ViteUserConfig } from "vitest/config";

// The tests mostly wait, for timers and for servers, so a small machine takes more workers than it has cores.
const workers = Number(process.env.HOLDFAST_TEST_WORKERS ?? Math.max(4, availableParallelism()));

const config: ViteUserConfig = {
  test: {
    include: ["test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: workers,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    reporters: ["default", "./tools/plain-reporter.mjs"],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/scripts/generated.ts", "test/**"],
      reporter: ["text", "text-summary"],
    },
  },
};

export default config;
