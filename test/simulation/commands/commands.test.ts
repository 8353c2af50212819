/**
 * Random histories deliver the scripts of locks one to three times, in any order, late, and with lost answers. The
 * clients that send them keep the rules (client.ts, groups.ts). `npm run simulate -- --commands 2000000` plays more. A
 * failure tells its seed and its last steps, and `--commands 1 --seed <seed>` plays it again.
 */
import { expect, test } from "vitest";
import { PATIENCE } from "../../support/index.js";
import { playCommands } from "../run.mjs";
import { play } from "./history.js";
import { PLANTED } from "./planted.js";

const HISTORIES = Number(process.env.HOLDFAST_HISTORIES ?? 20_000);

/** Milliseconds of a history on a busy machine; only a limit. */
const SLOW = 50;

/** What has to happen often enough. */
const FIGURES = [
  "grants",
  "nested",
  "passes",
  "lost",
  "forced",
  "deleted",
  "in doubt",
  "unlocked",
  "groups granted",
];

test(
  `in ${HISTORIES} histories of repeated, late and lost commands nobody holds what another holds, and nothing is left`,
  async () => {
    const { failures, figures } = await playCommands({ histories: HISTORIES, seed: 1 });
    expect(failures.join("\n\n")).toBe("");
    expect(figures.histories).toBe(HISTORIES);
    for (const what of FIGURES) expect(figures[what], what).toBeGreaterThan(HISTORIES / 40);
  },
  4 * PATIENCE + SLOW * HISTORIES,
);

/** Histories that may be played until a mistake shows. */
const BOUND = 2_000;
let found: Promise<Readonly<Record<string, number>>> | undefined;

test.each(PLANTED)(
  'the mistake "$name" shows within a bounded number of histories',
  async ({ name }) => {
    found ??= playCommands({ histories: BOUND, seed: 1, isPlanted: true }).then((report) => report.found);
    expect((await found)[name]).toBeGreaterThan(0);
  },
  20 * PATIENCE,
);

test("a seed decides all that happens in a history", () => {
  const [first, again] = [play(7, {}, true), play(7, {}, true)];
  expect(first.steps.length).toBeGreaterThan(100);
  expect(again).toEqual(first);
});
