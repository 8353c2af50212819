// Tests the tests of the Lua files. It changes each file in every small way that mutants.mjs knows, one at a time, and
// runs the tests of the scripts that contain it. This measure by hand prints the unnoticed changes, of which some make
// no difference, and each file's share of the noticed ones. `--list` prints the changes and runs nothing.
// Usage: npm run mutate:lua [-- [--only plain | --only plain/take] [--list]]
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { createVitest } from "vitest/node";
import { mutantsIn } from "./mutate-lua/mutants.mjs";
import { readSources } from "./mutate-lua/scripts.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Processes, each with its own server and its share of the mutants. */
const PARTS = Math.min(4, availableParallelism());

/** @typedef {import("./mutate-lua/mutants.mjs").Mutant} Mutant */

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" }, list: { type: "boolean" } } });
  const { only } = values;
  const mutants = mutantsIn(readSources(ROOT), only);
  if (mutants.length === 0) throw new Error(`there is nothing to change in ${only}`);
  if (values.list) {
    for (const { title } of mutants) console.log(title);
    return;
  }
  const start = performance.now();
  report(mutants, await run(mutants));
  console.log(`${mutants.length} tried in ${Math.round((performance.now() - start) / 1000)} s`);
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
  for (const { file, title, id } of mutants) {
    if (!noticed.has(id)) console.log(`SURVIVED    ${title}`);
    for (const name of [file, "all"]) {
      const row = rows.get(name) ?? { mutants: 0, noticed: 0 };
      rows.set(name, row);
      row.mutants++;
      if (noticed.has(id)) row.noticed++;
    }
  }
  const columns = (name, ...values) =>
    [name.padEnd(24), ...values.map((value) => value.padStart(10))].join(" ");
  console.log(`\n${columns("file", "mutants", "noticed", "score")}`);
  const all = rows.get("all");
  rows.delete("all");
  for (const [file, row] of [...rows, ["all", all]]) {
    const score = `${((100 * row.noticed) / row.mutants).toFixed(1)} %`;
    console.log(columns(file, String(row.mutants), String(row.noticed), score));
  }
}

await main();
