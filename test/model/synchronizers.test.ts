/**
 * Random histories of semaphores and latches, as model.test.ts has of locks: with calls, time and mishaps, and
 * connections that are cut in the midst of a call.
 *
 * `HOLDFAST_MODEL_RUNS` sets how many histories each gets; a failure prints how to run its history again.
 */
import { describe, expect, test } from "vitest";
import { forFile, startRedis } from "../support/index.js";
import { kinds } from "./synchronizers/kinds.js";

const { HOLDFAST_MODEL_RUNS, HOLDFAST_MODEL_SEED, HOLDFAST_MODEL_PATH: path } = process.env;
const ENOUGH = 250;
const RUNS = Number(HOLDFAST_MODEL_RUNS ?? ENOUGH);
const seed = HOLDFAST_MODEL_SEED === undefined ? undefined : Number(HOLDFAST_MODEL_SEED);

/** What so many histories come across, or else they are not worth much. */
const USUAL = ["granted", "waited", "nothing", "aborted", "CLIENT_CLOSED", "loseReply", "loseRequest"];
const SPECIAL: Record<string, readonly string[]> = {
  semaphore: ["left"],
  permits: ["NOT_OWNER", "lost"],
  latch: ["opened"],
};

const server = await forFile(startRedis());

describe.concurrent("random histories", () => {
  test.each(kinds.map((kind, db) => ({ kind, db, title: kind.name })))(
    "$title",
    async ({ kind, db }) => {
      const report = await kind.check(server, { db, runs: RUNS, seed, path });
      if (report.failure) {
        const replay = `HOLDFAST_MODEL_SEED=${report.seed} HOLDFAST_MODEL_PATH=${report.failure.path}`;
        const again = `${replay} npx vitest run test/model/synchronizers.test.ts -t "${kind.name}"`;
        expect.fail(`${report.failure.text}\n\nTo run it again:\n${again}`);
      }
      if (report.runs < ENOUGH) return;
      const usual = [...USUAL, ...(SPECIAL[kind.name] ?? [])];
      expect(usual.filter((what) => !report.seen.has(what))).toEqual([]);
    },
    600_000,
  );
});
