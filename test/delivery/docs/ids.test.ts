/** The ids in titles of tests, and the rows that they stand for: of docs/faults.md, docs/evidence.md and the contract. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type IdRow, KINDS, usesOf, wrongIds } from "../../../tools/fault/ids.mjs";
import { SENTENCES } from "../../contract/sentences.js";
import { ROOT } from "./pages.js";

const HARMS = ["exclusion", "data", "signal", "wake-up", "answer", "leak", "cost", "process"];

/** The mistakes in a row of docs/faults.md. */
function wrongFault({ id, cells }: IdRow): string[] {
  const [fault, holder, waiters, ...more] = cells;
  return fault && holder && waiters && more.length === 0 ? [] : [`${id}: not three filled cells`];
}

/** The mistakes in a row of docs/evidence.md. */
function wrongBug({ id, cells }: IdRow): string[] {
  const [harm = "", bug, ...more] = cells;
  const wrong = [
    [!bug || more.length > 0, "not two filled cells"],
    [!HARMS.includes(harm), `harm is ${harm}`],
  ] as const;
  return wrong.flatMap(([isWrong, what]) => (isWrong ? `${id}: ${what}` : []));
}

const numbered = (letter: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${letter}${i + 1}`);

test("the rows of faults and bugs are numbered without a gap and have what each column asks for", () => {
  const [faults, bugs] = [KINDS.fault.rows(), KINDS.bug.rows()];
  expect(faults.map(({ id }) => id)).toEqual(numbered("F", 46));
  expect(bugs.map(({ id }) => id)).toEqual(numbered("B", bugs.length));
  expect(bugs.length).toBeGreaterThanOrEqual(270);
  expect([...faults.flatMap(wrongFault), ...bugs.flatMap(wrongBug)]).toEqual([]);
});

test.each(["fault", "bug", "sentence"] as const)(
  "each %s has a test, and each id in a title has a row",
  (kind) => {
    expect(wrongIds(KINDS[kind].rows(), usesOf(KINDS[kind]))).toEqual([]);
  },
);

test("the sentences that the ids are read from are all that rows may name", () => {
  expect(KINDS.sentence.rows().map(({ id }) => id)).toEqual(Object.keys(SENTENCES));
});

test("docs/guarantees.md names no fault and no bug that has no row", () => {
  const page = readFileSync(join(ROOT, "docs/guarantees.md"), "utf8");
  const named = page.match(/(?<=[|,] |to )[FB]\d+(?=,| \|| to )/g) ?? [];
  const known = [...KINDS.fault.rows(), ...KINDS.bug.rows()].map(({ id }) => id);
  expect(named.length).toBeGreaterThan(30);
  expect(named.filter((id) => !known.includes(id))).toEqual([]);
});
