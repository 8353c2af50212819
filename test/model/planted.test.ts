/** The test of the test: mistakes that are planted into the library are found by the model. */
import { expect, test } from "vitest";
import { forFile, startRedis } from "../support/index.js";
import { checkKind } from "./check.js";
import { kinds } from "./kinds.js";
import { mistakes } from "./planted.js";

const RUNS = 500;
/** The same histories each time, of which the rarest mistake takes some seventy. */
const SEED = 1;

const server = await forFile(startRedis());

test.each(mistakes)(
  "$title",
  async ({ kind: name, plant }) => {
    const kind = kinds.find((candidate) => candidate.name === name);
    if (!kind) throw new Error(`there is no ${name}`);
    const repair = plant();
    try {
      const connect = () => server.connect();
      const report = await checkKind({ kind, runs: RUNS, connect, seed: SEED, hurry: true });
      expect(report.failure).toBeDefined();
    } finally {
      repair();
    }
  },
  120_000,
);
