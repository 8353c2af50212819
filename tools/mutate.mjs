// Tests the tests of engine, watchdog and locks: StrykerJS changes the TypeScript in small ways, one at a time, and runs
// the tests that come by the changed place, which should notice. The tests in virtual time only, in a process for each change
// (mutate/bundle-runner.mjs).
// Usage: npm run mutate [-- src/engine src/locks/turns.ts src/locks/force.ts:20-30 ...]
import { readdirSync, readFileSync } from "node:fs";
import { relative } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Stryker } from "@stryker-mutator/core";
import { reasonFor } from "./mutate/equivalents.mjs";
import { readSurvivors } from "./mutate/survivors.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Of the mutants of each folder that are not equivalent, this share is to be noticed. */
const GOAL = 0.85;
const KILLED = ["Killed", "Timeout"];
const SURVIVORS = readSurvivors();

/** The tests of each folder. */
const FOLDERS = {
  "src/engine": testsIn("test/engine").filter((file) => !/handoff-(mutants|processes)/.test(file)),
  "src/watchdog": testsIn("test/watchdog"),
  "src/locks": [...testsIn("test/locks"), "tools/mutate/schedules.test.mjs"],
};

function testsIn(folder) {
  const files = readdirSync(new URL(`../${folder}`, import.meta.url));
  return files.filter((file) => file.endsWith(".test.ts")).map((file) => `${folder}/${file}`);
}

/** @typedef {{ fileName: string, mutatorName: string, replacement: string, status: string, location: { start: { line: number, column: number }, end: { line: number, column: number } } }} Mutant */

process.chdir(ROOT);

/** @param {string[]} files @param {string[]} tests @returns {Promise<Mutant[]>} */
async function mutate(files, tests) {
  process.env.HOLDFAST_MUTATE_TESTS = JSON.stringify(tests);
  return new Stryker({
    plugins: [fileURLToPath(new URL("mutate/bundle-runner.mjs", import.meta.url))],
    testRunner: "bundle",
    mutate: files.map((file) => (/\.ts(:|$)/.test(file) ? file : `${file}/**/*.ts`)),
    coverageAnalysis: "perTest",
    concurrency: 2,
    // What runs once at the import is the same for all tests.
    ignoreStatic: true,
    ignorePatterns: ["/bench", "/dist", "/docs", "/examples", "/interop", "/out", "/web"],
    tempDirName: "node_modules/.cache/stryker",
    reporters: ["progress-append-only"],
    // What bounds a mutant is the time that it computes.
    timeoutMS: 600_000,
    dryRunTimeoutMinutes: 30,
    disableTypeChecks: true,
    allowConsoleColors: false,
    logLevel: "warn",
  }).runMutationTest();
}

/** The file, and the lines before and after, each in one line. @param {Mutant} mutant */
function titleOf({ fileName, location: { start, end }, replacement }) {
  const lines = readFileSync(fileName, "utf8").split("\n");
  const before = lines.slice(start.line - 1, end.line).join("\n");
  const rest = (lines[end.line - 1] ?? "").slice(end.column - 1);
  const after = `${before.slice(0, start.column - 1)}${replacement}${rest}`;
  const inOneLine = (text) => text.trim().replaceAll(/\s+/g, " ");
  return `${relative(ROOT, fileName)}: ${inOneLine(before)} -> ${inOneLine(after)}`;
}

/** @param {Mutant[]} mutants @returns {boolean} whether enough were noticed */
function report(mutants) {
  const rows = new Map();
  const none = { mutants: 0, killed: 0, equivalent: 0, survived: 0 };
  const all = { ...none };
  for (const mutant of mutants.filter(({ status }) => status !== "Ignored")) {
    const file = relative(ROOT, mutant.fileName);
    if (!rows.has(file)) rows.set(file, { ...none });
    const title = titleOf(mutant);
    const reason = reasonFor(title);
    const outcome = KILLED.includes(mutant.status) ? "killed" : reason ? "equivalent" : "survived";
    for (const row of [rows.get(file), all]) {
      row.mutants++;
      row[outcome]++;
    }
    if (outcome === "equivalent") console.log(`equivalent  ${title}\n            ${reason}`);
    if (outcome === "survived") {
      console.log(`${mutant.status.padEnd(10)}  ${mutant.location.start.line}: ${title}`);
      console.log(`            ${SURVIVORS.get(title) ?? "no reason is known"}`);
    }
  }
  const score = ({ killed, survived }) => killed / (killed + survived || 1);
  const line = (name, values) =>
    [name.padEnd(34), ...values.map((value) => String(value).padStart(10))].join(" ");
  console.log(`\n${line("file", [...Object.keys(all), "score"])}`);
  for (const [file, row] of [...rows, ["all", all]]) {
    console.log(line(file, [...Object.values(row), `${(100 * score(row)).toFixed(1)} %`]));
  }
  return score(all) >= GOAL;
}

const { positionals } = parseArgs({ allowPositionals: true });
for (const [folder, tests] of Object.entries(FOLDERS)) {
  const files = positionals.length > 0 ? positionals.filter((path) => path.startsWith(folder)) : [folder];
  if (files.length === 0) continue;
  const start = performance.now();
  const isEnough = report(await mutate(files, tests));
  console.log(`${Math.round((performance.now() - start) / 1000)} s; goal: ${100 * GOAL} %\n`);
  if (!isEnough) process.exitCode = 1;
}
