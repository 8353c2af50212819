import { fileURLToPath } from "node:url";
import type { ViteUserConfig } from "vitest/config";
import { PATIENCE } from "../../test/support/patience.js";

// The tests that tools/mutate.mjs has Stryker run.
const config: ViteUserConfig = {
  root: fileURLToPath(new URL("../..", import.meta.url)),
  test: {
    include: JSON.parse(process.env.HOLDFAST_MUTATE_TESTS ?? "[]"),
    testTimeout: 4 * PATIENCE,
    hookTimeout: 6 * PATIENCE,
    setupFiles: "test/support/kept-holds.ts",
    // Stryker changes what is imported anew for each file: with modules that stay, nothing would ever be changed.
    isolate: true,
    // One after the other, so that it is known which of them comes by what.
    maxConcurrency: 1,
  },
};

export default config;
