// Tests the tests of the Lua files: changes each file in every small way that mutants.mjs knows, one at a time, and runs
// the tests of the scripts in which it stands, which should notice. `--list` runs nothing: it prints the changes, and the
// equivalents that are none of them any more. `--equivalents` tries those as well.
// Usage: npm run mutate:lua [-- [--only lock | --only lock/acquire] [--list] [--equivalents]]
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createVitest } from "vitest/node";
import { reasonFor, staleIn } from "./mutate-lua/equivalents.mjs";
import { mutantsIn } from "./mutate-lua/mutants.mjs";
import { readSources } from "./mutate-lua/scripts.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Of the mutants of each file that are not equivalent, this share is to be noticed. */
const GOAL = 0.97;
/** Processes, each with its own server and its share of the mutants. */
const PARTS = Math.min(4, availableParallelism());

/** @typedef {import("./mutate-lua/mutants.mjs").Mutant} Mutant */

async function main() {
  const { values } = parseArgs({
    options: { only: { type: "string" }, list: { type: "boolean" }, equivalents: { type: "boolean" } },
  });
  const { only } = values;
  const mutants = mutantsIn(readSources(ROOT), only);
  if (mutants.length === 0) throw new Error(`there is nothing to change in ${only}`);
  if (values.list) {
    const titles = mutants.map(({ title }) => title);
    for (const title of titles) console.log(title);
    if (only === undefined) for (const title of staleIn(titles)) console.log(`STALE       ${title}`);
    return;
  }
  const start = performance.now();
  const tried = values.equivalents ? mutants : mutants.filter(({ title }) => !reasonFor(title));
  const noticed = await run(tried);
  const seconds = Math.round((performance.now() - start) / 1000);
  report(mutants, noticed);
  console.log(`${tried.length} tried in ${seconds} s; goal: ${100 * GOAL} % of each file`);
}

/** The numbers of those that a test has noticed. @param {Mutant[]} mutants @returns {Promise<Set<string>>} */
async function run(mutants) {
  const noticed = new Set();
  let tests = 0;
  const failed = [];
  const reporter = {
    onTestCaseResult(test) {
      tests++;
      if (test.result().state === "failed") failed.push(`${test.module.relativeModuleId}: ${test.fullName}`);
      for (const id of test.meta().noticed ?? []) noticed.add(id);
      if (process.stderr.isTTY) process.stderr.write(`\r${tests} tests, ${noticed.size} noticed `);
    },
  };
  const parts = Array.from({ length: PARTS }, (_, part) =>
    mutants.filter((_, index) => index % PARTS === part).map(({ id }) => id),
  );
  await Promise.all(parts.map((ids) => runPart(ids, reporter)));
  if (failed.length > 0) throw new Error(`these tests fail without any change:\n${failed.join("\n")}`);
  return noticed;
}

async function runPart(ids, reporter) {
  const vitest = await createVitest("test", {
    config: false,
    watch: false,
    root: ROOT,
    include: benches(),
    pool: "forks",
    // All files in one process, so that what one has noticed needs no other.
    isolate: false,
    maxWorkers: 1,
    sequence: { sequencer: AsGiven },
    runner: join(ROOT, "tools/mutate-lua/runner.mjs"),
    env: { HOLDFAST_MUTANTS: JSON.stringify({ root: ROOT, ids }) },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What a mutated script lets happen behind the end of its test.
    dangerouslyIgnoreUnhandledErrors: true,
    reporters: [reporter],
    silent: true,
    // Each run of a test listens for its end.
    execArgv: ["--no-warnings"],
  });
  const specs = await vitest.globTestSpecifications();
  const order = benches();
  const at = ({ moduleId }) => order.findIndex((file) => moduleId.endsWith(file));
  specs.sort((a, b) => at(a) - at(b));
  try {
    await vitest.runTestSpecifications(specs);
  } finally {
    await vitest.close();
  }
}

class AsGiven {
  sort(specs) {
    return specs;
  }
  shard(specs) {
    return specs;
  }
}

/** The files of tests that run scripts on the bench, those last that try much at random. */
function benches() {
  const files = readdirSync(join(ROOT, "test/lua"))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => ({ file: `test/lua/${name}`, source: readFileSync(join(ROOT, "test/lua", name), "utf8") }))
    .filter(({ source }) => /"\.\/bench\.js"/.test(source));
  const isRandom = ({ source }) => source.includes("fast-check");
  return [...files.filter((file) => !isRandom(file)), ...files.filter(isRandom)].map(({ file }) => file);
}

/** @param {Mutant[]} mutants @param {Set<string>} noticed */
function report(mutants, noticed) {
  const rows = new Map();
  const survivors = [];
  const reasons = new Map();
  for (const { file, title, id } of mutants) {
    const row = rows.get(file) ?? { mutants: 0, killed: 0, equivalent: 0, survived: 0 };
    rows.set(file, row);
    row.mutants++;
    const reason = reasonFor(title);
    if (noticed.has(id)) row.killed++;
    else if (reason) row.equivalent++;
    else row.survived++;
    if (reason && noticed.has(id)) console.log(`NOTICED     ${title}\n            ${reason}`);
    else if (reason) reasons.set(reason, [...(reasons.get(reason) ?? []), title]);
    else if (!noticed.has(id)) survivors.push(title);
  }
  for (const [reason, titles] of reasons) console.log(`${reason}:\n  ${titles.join("\n  ")}`);
  console.log("");
  for (const title of survivors) console.log(`SURVIVED    ${title}`);
  const all = { mutants: 0, killed: 0, equivalent: 0, survived: 0 };
  const columns = (name, row, ...more) =>
    [name.padEnd(24), ...Object.values(row).map((n) => String(n).padStart(10)), ...more].join(" ");
  console.log(
    `\n${["file".padEnd(24), ...Object.keys(all).map((name) => name.padStart(10))].join(" ")}      score`,
  );
  for (const [file, row] of [...rows, ["all", all]]) {
    if (row !== all) for (const name of Object.keys(all)) all[name] += row[name];
    const score = row.killed / (row.killed + row.survived || 1);
    if (row !== all && score < GOAL && row.survived > 0) process.exitCode = 1;
    console.log(columns(file, row, `${(100 * score).toFixed(1)} %`.padStart(10)));
  }
}

await main();
