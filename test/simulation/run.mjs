// Plays simulations in processes, from a bundle of the library, its Lua and test/simulation.
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** A folder of this process alone, because other processes may bundle at the same time. */
const BUNDLES = mkdtempSync(join(tmpdir(), "holdfast-simulation-"));
process.on("exit", () => rmSync(BUNDLES, { recursive: true, force: true }));

const path = (name) => fileURLToPath(new URL(name, import.meta.url));

/** The interpreter of Lua deletes what it takes off its stack, and V8 is slow with arrays that have holes. */
const withoutHoles = {
  name: "without-holes",
  setup({ onLoad }) {
    onLoad({ filter: /fengari.src.[a-z]+\.js$/ }, async ({ path: file }) => {
      const text = await readFile(file, "utf8");
      return { contents: text.replaceAll(/delete (L\.stack\[[^\]]+\])/g, "$1 = undefined") };
    });
  },
};

/** Bundles the program of a process; returns its file. */
export async function bundle(program = "simulation-worker.ts") {
  const outfile = join(BUNDLES, `${program.replace("/", "-")}.cjs`);
  await build({
    entryPoints: [path(program)],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    alias: { nanoid: path("nanoid.ts") },
    plugins: [withoutHoles],
    ignoreAnnotations: true,
    // A bundle has no place of its own: what is read from beside a file is in the program's folder.
    define: { "import.meta.url": JSON.stringify(new URL(program, import.meta.url).href) },
    logLevel: "warning",
  });
  return outfile;
}

/** Plays schedules in processes, and returns the failures. `job.isShort`: a process ends with its first failure. */
export async function simulate(file, job, processes = availableParallelism()) {
  const findings = [];
  const total = { played: 0, calls: 0, granted: 0, operations: 0, states: 0 };
  const hashes = [];
  let replayed;
  const play = (part, parts) =>
    new Promise((resolve, reject) => {
      let isDone = false;
      const child = fork(file, [JSON.stringify({ ...job, parts, part })], { execArgv: [] });
      child.on("message", ({ finding, done, outcome }) => {
        if (finding) findings.push(finding);
        if (outcome) replayed = outcome;
        isDone ||= done !== undefined || outcome !== undefined;
        if (!done) return;
        for (const sum of Object.keys(total)) total[sum] += done[sum];
        hashes.push(...done.hashes);
      });
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        if (isDone && code === 0) resolve();
        else reject(new Error(`a process that simulates ended early: ${signal ?? code}`));
      });
    });
  const parts = job.replay ? 1 : processes;
  await Promise.all(Array.from({ length: parts }, (_, part) => play(part, parts)));
  return { ...total, hashes, findings, replayed };
}

/** Plays histories of commands in processes, or looks for the mistakes that are planted there: see commands/worker.ts. */
export async function playCommands(job, processes = availableParallelism()) {
  const file = await bundle("commands/worker.ts");
  const play = (part) =>
    new Promise((resolve, reject) => {
      const child = fork(file, [JSON.stringify({ ...job, parts: processes, part })], { execArgv: [] });
      child.on("message", resolve);
      child.on("error", reject);
      child.on("exit", (code, signal) => reject(new Error(`a process ended early: ${signal ?? code}`)));
    });
  const total = { failures: [], found: {}, figures: {} };
  for (const { failures, found, figures } of await Promise.all(
    Array.from({ length: processes }, (_, part) => play(part)),
  )) {
    total.failures.push(...failures);
    Object.assign(total.found, found);
    for (const [what, count] of Object.entries(figures))
      total.figures[what] = (total.figures[what] ?? 0) + count;
  }
  return total;
}
