/** The test of the test: mistakes that are planted into semaphores and latches are found by the model. */
import { expect, test } from "vitest";
import { forFile, startRedis } from "../support/index.js";
import { kinds } from "./synchronizers/kinds.js";
import { mistakes } from "./synchronizers/mistakes.js";

const RUNS = 500;
/** The same histories each time. */
const SEED = 1;

const server = await forFile(startRedis());

test.each(mistakes)(
  "$kind: $title",
  async ({ kind: name, plant }) => {
    const kind = kinds.find((candidate) => candidate.name === name);
    if (!kind) throw new Error(`there is no ${name}`);
    const repair = plant();
    try {
      const report = await kind.check(server, { db: 0, runs: RUNS, seed: SEED, hurry: true });
      expect(report.failure).toBeDefined();
    } finally {
      repair();
    }
  },
  120_000,
);
