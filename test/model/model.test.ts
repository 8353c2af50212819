/**
 * Random histories of calls, time and mishaps on real locks, compared with a model of the contract.
 *
 * `HOLDFAST_MODEL_RUNS` sets how many histories each kind gets; a failure prints how to run its history again.
 */
import { describe, expect, test } from "vitest";
import { forFile, startRedis } from "../support/index.js";
import { checkKind } from "./check.js";
import { kinds } from "./kinds.js";

const { HOLDFAST_MODEL_RUNS, HOLDFAST_MODEL_SEED, HOLDFAST_MODEL_PATH: path } = process.env;
const ENOUGH = 410;
const RUNS = Number(HOLDFAST_MODEL_RUNS ?? ENOUGH);
const seed = HOLDFAST_MODEL_SEED === undefined ? undefined : Number(HOLDFAST_MODEL_SEED);

/** What so many histories come across, or else they are not worth much. */
const USUAL = [
  "granted",
  "nested",
  "waited",
  "null",
  "aborted",
  "WAIT_TIMEOUT",
  "CLIENT_CLOSED",
  "NOT_OWNER",
  "LOCK_LOST",
  "renewed",
  "lost, expired",
  "lost, forced",
  "lost, closed",
];

const server = await forFile(startRedis());

describe.concurrent("random histories", () => {
  test.each(kinds.map((kind, db) => ({ kind, db, title: kind.name })))(
    "$title",
    async ({ kind, db }) => {
      const report = await checkKind({ kind, runs: RUNS, connect: () => server.connect({ db }), seed, path });
      if (report.failure) {
        const replay = `HOLDFAST_MODEL_SEED=${report.seed} HOLDFAST_MODEL_PATH=${report.failure.path}`;
        const again = `${replay} npx vitest run test/model/model.test.ts -t "${kind.name}"`;
        expect.fail(`${report.failure.text}\n\nTo run it again:\n${again}`);
      }
      if (report.runs < ENOUGH) return;
      const usual = kind.rules.sides.length > 1 ? [...USUAL, "UPGRADE_REFUSED"] : USUAL;
      expect(usual.filter((what) => !report.seen.has(what))).toEqual([]);
    },
    600_000,
  );
});
