// Measures the worth of each rule in the groups' order. Processes contend for a RedLock or for MultiLocks in virtual
// time, with the library as it is, and without one of the rules.
// Usage: node bench/contention/contention.mjs [--seeds 3] [--kind red|multi] [--only <part of a rule's name>]
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { jain, median, sum } from "../lib/stats.mjs";

const GOOD = { least: 0.1, most: 0.2, late: 0, latest: 0 };
const MIXED = { least: 0.1, most: 1, late: 0.01, latest: 20 };
const FAR = { least: 5, most: 10, late: 0, latest: 0 };
const each = (processes, workers) => Array.from({ length: processes }, () => workers);

const LOADS = {
  "2 processes": { workers: each(2, 1), hold: 1, weather: GOOD, drops: 0 },
  "8 processes": { workers: each(8, 1), hold: 1, weather: GOOD, drops: 0 },
  "8 processes, 10 ms": { workers: each(8, 1), hold: 10, weather: GOOD, drops: 0 },
  "12 processes": { workers: each(12, 1), hold: 1, weather: GOOD, drops: 0 },
  "4 x 8": { workers: each(4, 8), hold: 1, weather: GOOD, drops: 0 },
  "16, 8, 2, 1": { workers: [16, 8, 2, 1], hold: 1, weather: GOOD, drops: 0 },
  "2 processes, far": { workers: each(2, 1), hold: 10, weather: FAR, drops: 0 },
  "8 processes, far": { workers: each(8, 1), hold: 10, weather: FAR, drops: 0 },
  "8 processes, delays": { workers: each(8, 1), hold: 1, weather: MIXED, drops: 0 },
  "8 processes, losses": { workers: each(8, 1), hold: 1, weather: MIXED, drops: 300 },
};

const MAJORITY = "src/groups/majority.ts";
const ALL = "src/groups/all.ts";

/**
 * What is taken out of a rule: a text of a file, and its replacement.
 *
 * @type {Record<string, Record<string, { file: string, from: string, to: string }[]>>}
 */
const RULES = {
  red: {
    "as it is": [],
    "a hint from one master is one": [
      { file: MAJORITY, from: "told.add(member).size !== quorum", to: "told.add(member).size < 1" },
    ],
    "no pause after a split vote": [
      { file: MAJORITY, from: "const pause = inFavour > 0", to: "const pause = inFavour < 0" },
    ],
    "four rounds": [{ file: MAJORITY, from: "const MOST_ROUNDS = 8", to: "const MOST_ROUNDS = 4" }],
  },
  multi: {
    "as it is": [],
    "no pause after lost rounds": [
      { file: ALL, from: "if (!this.#awaited) return", to: "if (this.wait > 0) return" },
    ],
    "all at once although others wait here": [
      { file: ALL, from: "this.#round(this.wait > 0 ?", to: "this.#round(this.wait < 0 ?" },
    ],
  },
};

const TIME = 2_000;

const BUNDLES = mkdtempSync(join(tmpdir(), "holdfast-contention-"));
process.on("exit", () => rmSync(BUNDLES, { recursive: true, force: true }));

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** Bundles the program of a process, with these edits. */
async function bundle(name, edits) {
  const outfile = join(BUNDLES, `${name}.cjs`);
  const edited = (text, { from, to }) => {
    if (text.split(from).length !== 2) throw new Error(`not found once: ${from}`);
    return text.replace(from, () => to);
  };
  const plugin = {
    name: "edits",
    setup: ({ onLoad }) =>
      onLoad({ filter: /\.ts$/ }, async (args) => {
        const mine = edits.filter(({ file }) => args.path === path(`../../${file}`));
        if (mine.length === 0) return undefined;
        return { loader: "ts", contents: mine.reduce(edited, await readFile(args.path, "utf8")) };
      }),
  };
  await build({
    entryPoints: [path("contention-worker.mjs")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    alias: { nanoid: path("../../test/simulation/nanoid.ts") },
    ignoreAnnotations: true,
    define: { "import.meta.url": "here" },
    banner: {
      js: `const here = ${JSON.stringify(new URL("../../test/simulation/planting.ts", import.meta.url).href)};`,
    },
    logLevel: "warning",
    plugins: [plugin],
  });
  return outfile;
}

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "3" },
    kind: { type: "string" },
    only: { type: "string", default: "" },
  },
});

/** The figures of a load, or the error that ended it. */
function measure(file, load) {
  return new Promise((resolve) => {
    const child = fork(file, [JSON.stringify(load)], {
      execArgv: [],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    });
    let said = "";
    child.stderr.on("data", (data) => {
      said += data;
    });
    child.on("message", resolve);
    child.on("exit", () => resolve({ failure: said.match(/Error: .*/)?.[0] ?? "ended early" }));
  });
}

async function row(file, kind, load) {
  const runs = [];
  for (let seed = 1; seed <= Number(values.seeds); seed++)
    runs.push(await measure(file, { kind, ...load, time: TIME, seed }));
  const failure = runs.find((run) => run.failure)?.failure;
  if (failure) return failure;
  const of = (figure) => median(runs.map(figure));
  const longest = ({ waits }) => Math.max(...waits);
  return [
    of(({ holds }) => (1_000 * sum(holds)) / TIME)
      .toFixed(0)
      .padStart(6),
    of(longest).toFixed(0).padStart(8),
    of((run) => longest(run) / median(run.waits))
      .toFixed(1)
      .padStart(8),
    of(({ holds }) => jain(holds))
      .toFixed(2)
      .padStart(6),
    of(({ holds, commands }) => commands / sum(holds))
      .toFixed(1)
      .padStart(9),
  ].join(" ");
}

async function inParallel(tasks, width) {
  const queue = [...tasks];
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let task = queue.shift(); task; task = queue.shift()) await task();
    }),
  );
}

for (const [kind, rules] of Object.entries(RULES)) {
  if (values.kind && values.kind !== kind) continue;
  const lines = [];
  const tasks = Object.entries(rules)
    .filter(([rule]) => rule === "as it is" || rule.includes(values.only))
    .map(([rule, edits], place) => async () => {
      const file = await bundle(`${kind}-${place}`, edits);
      const rows = [];
      for (const [name, load] of Object.entries(LOADS))
        rows.push(`  ${name.padEnd(22)}${await row(file, kind, load)}`);
      lines[place] = [rule, ...rows].join("\n");
      console.error(`${kind}: ${rule}`);
    });
  await inParallel(tasks, availableParallelism());
  console.log(`${kind}\n  load                  holds/s  longest  /median  Jain  commands`);
  console.log(lines.join("\n"));
}
