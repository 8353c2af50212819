// Tests the tests of the contract: StrykerJS changes the given TypeScript in small ways, one at a time. For each
// change, a process runs the rows in virtual time that come by the changed place (mutate/bundle-runner.mjs). It prints
// what nobody noticed, and the share of the changes that were noticed. It is a measure to look at, not a check.
// Usage: npm run mutate -- src/lock src/waiting/site.ts src/lock/end.ts:10-20 ...
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Stryker } from "@stryker-mutator/core";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const SUITE = "test/contract";
const places = process.argv.slice(2);
if (places.length === 0 || places.some((place) => !place.startsWith("src/")))
  throw new Error("name files, folders or lines of src: npm run mutate -- src/lock src/lock/end.ts:10-20");

process.chdir(ROOT);

/** The files of the suite that need no server until a row asks for one. */
function bundled() {
  return readdirSync(SUITE, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(SUITE, name))
    .filter((file) => /support\/place\//.test(readFileSync(file, "utf8")))
    .filter((file) => !/support\/(index|redis-)/.test(readFileSync(file, "utf8")));
}

/** The file, and the lines before and after, each in one line. */
function titleOf({ fileName, location: { start, end }, replacement }) {
  const lines = readFileSync(fileName, "utf8").split("\n");
  const before = lines.slice(start.line - 1, end.line).join("\n");
  const rest = (lines[end.line - 1] ?? "").slice(end.column - 1);
  const after = `${before.slice(0, start.column - 1)}${replacement}${rest}`;
  const inOneLine = (text) => text.trim().replaceAll(/\s+/g, " ").slice(0, 300);
  return `${relative(ROOT, fileName)}:${start.line}: ${inOneLine(before)} -> ${inOneLine(after)}`;
}

function report(mutants) {
  const counts = new Map();
  for (const mutant of mutants.filter(({ status }) => status !== "Ignored")) {
    const file = relative(ROOT, mutant.fileName);
    const isNoticed = mutant.status === "Killed" || mutant.status === "Timeout";
    if (!isNoticed) console.log(`${mutant.status.padEnd(10)} ${titleOf(mutant)}`);
    for (const name of [file, "all"]) {
      const { changes = 0, noticed = 0 } = counts.get(name) ?? {};
      counts.set(name, { changes: changes + 1, noticed: noticed + (isNoticed ? 1 : 0) });
    }
  }
  console.log();
  for (const [name, { changes, noticed }] of counts)
    console.log(`${name.padEnd(34)} ${noticed} of ${changes}: ${((100 * noticed) / changes).toFixed(1)} %`);
}

process.env.HOLDFAST_MUTATE_TESTS = JSON.stringify(bundled());
const start = performance.now();
const stryker = new Stryker({
  plugins: [fileURLToPath(new URL("mutate/bundle-runner.mjs", import.meta.url))],
  testRunner: "bundle",
  mutate: places.map((place) => (/\.ts(:|$)/.test(place) ? place : `${place}/**/*.ts`)),
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
});
report(await stryker.runMutationTest());
console.log(`${Math.round((performance.now() - start) / 1000)} s`);
