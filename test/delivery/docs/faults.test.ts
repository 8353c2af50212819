/** The tables of docs/faults.md and docs/evidence.md: a row for each fault and bug, and existing tests for each row. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  type BugRow,
  bugRows,
  type FaultRow,
  type FaultTest,
  faultRows,
  patternOf,
} from "../../../tools/fault/table.mjs";
import { ROOT } from "./pages.js";

const VERSION = (JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string }).version;

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");

/** True if each part of the title stands in quotes in the file, or is a key of the table that titles are made of. */
function isThere({ file, title }: FaultTest): boolean {
  if (!existsSync(join(ROOT, file)) || title === "") return false;
  const text = readFileSync(join(ROOT, file), "utf8");
  const parts = title.split("…").map((part) => escaped(part.trim()));
  return parts.every(
    (part) => new RegExp(`["'\`][^"\`\\n]*${part}`).test(text) || new RegExp(`^ *${part}:`, "m").test(text),
  );
}

/** The mistakes in a row; empty if there are none. */
function wrongWith({ id, fault, holder, waiters, tests, command, since }: FaultRow): string[] {
  const wrong: string[] = [];
  if ([fault, holder, waiters].includes("")) wrong.push(`${id}: an empty cell`);
  if (tests.length === 0) wrong.push(`${id}: no test`);
  for (const each of tests) if (!isThere(each)) wrong.push(`${id}: no test ${each.file}: ${each.title}`);
  if (command !== `\`npm run fault -- ${id}\``) wrong.push(`${id}: the command is ${command}`);
  const order = new Intl.Collator("en", { numeric: true });
  if (!/^\d+\.\d+\.\d+$/.test(since) || order.compare(since, VERSION) > 0)
    wrong.push(`${id}: since ${since}`);
  return wrong;
}

test("each fault has a row, each row has tests, and each of them exists", () => {
  const rows = faultRows();
  expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: 46 }, (_, i) => `F${i + 1}`));
  expect(rows.flatMap(wrongWith)).toEqual([]);
});

const HARMS = ["exclusion", "data", "signal", "wake-up", "answer", "leak", "cost", "process"];

/** Like wrongWith(), for a row of a bug. */
function wrongWithBug({ id, harm, bug, foundBy, tests, mended }: BugRow): string[] {
  const wrong: string[] = [];
  if (!HARMS.includes(harm)) wrong.push(`${id}: harm is ${harm}`);
  if ([bug, foundBy].includes("")) wrong.push(`${id}: an empty cell`);
  if (tests.length === 0) wrong.push(`${id}: no test`);
  for (const each of tests) if (!isThere(each)) wrong.push(`${id}: no test ${each.file}: ${each.title}`);
  if (!/^20\d\d-\d\d-\d\d$/.test(mended)) wrong.push(`${id}: mended ${mended}`);
  return wrong;
}

test("each bug that was found is shown by tests that exist", () => {
  const rows = bugRows();
  expect(rows.map(({ id }) => id)).toEqual(rows.map((_, i) => `B${i + 1}`));
  expect(rows.length).toBeGreaterThanOrEqual(40);
  expect(rows.flatMap(wrongWithBug)).toEqual([]);
});

test("a row without a test, and one whose test does not exist, are noticed", () => {
  const row = (id: string, tests: string) =>
    `| ${id} | a | b | c | ${tests} | \`npm run fault -- ${id}\` | 0.1.0 |\n`;
  const page = [
    row("F1", ""),
    row("F2", "`test/none.test.ts`: its links lead"),
    row("F3", "`test/docs/links.test.ts`: its links … lead nowhere at all"),
    row("F4", "`test/docs/links.test.ts`: its links … chapters that are there"),
  ].join("");
  expect(faultRows(page).flatMap(wrongWith)).toEqual([
    "F1: no test",
    "F2: no test test/none.test.ts: its links lead",
    "F3: no test test/docs/links.test.ts: its links … lead nowhere at all",
  ]);
  expect(patternOf({ file: "", title: "a (b) … c.d" })).toBe("a \\(b\\).*c\\.d");
});
