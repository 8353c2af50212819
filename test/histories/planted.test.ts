/**
 * The test of the test: the search and the check of intervals find locks that are wrong in one way each, and pass the
 * right locks in the same games. Prints one table, which also has the planted bugs that other tests find.
 */
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, test } from "vitest";
import { type Mistake, mistakes, REDISSON, type Row } from "./virtual/mistakes.js";
import { playLock } from "./virtual/play.js";

/** The number of games within which a mistake must show; the rarest one takes about ninety. */
const GAMES = 400;
/** The number of games with the right lock, of each kind. */
const RIGHT = Number(process.env.HOLDFAST_HISTORIES_GAMES ?? 150);
const TIMEOUT = 300_000;

const rows = Object.entries(mistakes) as [Mistake, Row][];
const found = new Map<Mistake, string>();
let [histories, operations] = [0, 0];

describe("is found", () => {
  test.each(rows)(
    "%s",
    (mistake, { game }) => {
      for (let seed = 1; seed <= GAMES && !found.has(mistake); seed++) {
        const result = playLock(game, seed, mistake);
        histories++;
        operations += result.operations;
        // A search that was given up has found nothing.
        const kinds = result.findings.filter((finding) => finding !== "undecided");
        const names = new Set(kinds.map((finding) => finding.split(":")[0]));
        if (names.size > 0) found.set(mistake, `game ${seed}: ${[...names].join(", ")}`);
      }
      expect(found.get(mistake)).toBeDefined();
    },
    TIMEOUT,
  );
});

test.each(["lock", "fair", "read-write"] as const)(
  "the right lock passes: %s",
  (kind) => {
    for (let seed = 1; seed <= RIGHT; seed++) {
      const result = playLock(kind, seed);
      histories++;
      operations += result.operations;
      expect({ seed, findings: result.findings }).toEqual({ seed, findings: [] });
    }
  },
  TIMEOUT,
);

test("each defect of Redisson on the list is among them", () => {
  const there = new Set(rows.map(([, { redisson }]) => redisson));
  expect(Object.keys(REDISSON).filter((defect) => !there.has(defect as keyof typeof REDISSON))).toEqual([]);
});

/** Mistakes that other tests find on real servers: mutants of the library, and locks of other authors. */
const ELSEWHERE: readonly (readonly [file: string, row: RegExp])[] = [
  ["../exclusion/planted.test.ts", /^ {2}\["([\w-]+)", /gm],
  ["../exclusion/planted-kinds.test.ts", /^ {4}mutant: "([\w-]+)"/gm],
  ["../exclusion/planted-crowd.test.ts", /^ {2}\{? ?(?: {2})?mutant: "(?!none")([\w-]+)"/gm],
  ["../model/planted.ts", /^ {4}title: "(.+)"/gm],
  ["../model/synchronizers/mistakes.ts", /^ {4}title: "(.+)"/gm],
];

const elsewhere = ELSEWHERE.map(([file, row]) => {
  const text = readFileSync(new URL(file, import.meta.url), "utf8");
  return { file: file.replace("..", "test"), names: [...text.matchAll(row)].map(([, name]) => name) };
});

test("the tests of other planted bugs are where the table says", () => {
  for (const { file, names } of elsewhere)
    expect({ file, some: names.length > 4 }).toMatchObject({ some: true });
});

afterAll(() => {
  const lines = rows.map(([mistake, { title, game, redisson }]) => {
    const origin = redisson ? ` [Redisson: ${REDISSON[redisson]}]` : "";
    return `${mistake.padEnd(22)} ${game.padEnd(10)} ${title}${origin} | ${found.get(mistake) ?? "not found"}`;
  });
  const others = elsewhere.map(({ file, names }) => `${file}: ${names.join("; ")}`);
  const more = elsewhere.reduce((sum, { names }) => sum + names.length, 0);
  console.log(
    [
      ...lines,
      `histories: ${found.size} of ${rows.length} planted bugs found, in ${histories} histories of ${operations} operations`,
      `and ${more} that tests of their own find on real servers, not run here:`,
      ...others,
    ].join("\n"),
  );
});
