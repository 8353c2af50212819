// Plays simulations in threads, from a bundle of the library, its Lua and test/simulation.
import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";

export const KINDS = ["lock", "fair", "fenced", "readwrite", "semaphore", "permits", "multi", "red"];

const HERE = new URL(".", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, HERE));

/**
 * A mistake: a text that is found once is another one.
 *
 * @typedef {object} Edit
 * @property {string} [script] as its Lua file is named; without one, all that scripts share
 * @property {string} [file] of the client
 * @property {string} from
 * @property {string} to
 */

const SCRIPTS = "src/scripts/generated.ts";

/** Bundles what a thread runs, with these mistakes in it. */
export async function bundle(name = "right", edits = []) {
  const outfile = path(`../../out/simulation/${name.replaceAll(" ", "-")}.cjs`);
  const files = grouped(edits);
  await build({
    entryPoints: [path("simulation-worker.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    alias: { nanoid: path("nanoid.ts") },
    ignoreAnnotations: true,
    logOverride: { "empty-import-meta": "silent" },
    logLevel: "warning",
    plugins: [...files].map(([file, mistakes]) => planting(file, mistakes)),
  });
  return outfile;
}

function fileOf({ file = SCRIPTS }) {
  return file;
}

function grouped(edits) {
  const files = new Map();
  for (const edit of edits) files.set(fileOf(edit), [...(files.get(fileOf(edit)) ?? []), edit]);
  return files;
}

function planting(file, edits) {
  const place = path(`../../${file}`);
  return {
    name: file,
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, async (args) => {
        if (args.path !== place) return undefined;
        return { loader: "ts", contents: edits.reduce(planted, await readFile(place, "utf8")) };
      });
    },
  };
}

function planted(text, { script, from, to }) {
  // The text of a script ends with the call that defines it.
  const constant = script?.replace(/[/-](.)/g, (_, letter) => letter.toUpperCase());
  const begin = constant ? text.indexOf(`export const ${constant}:`) : 0;
  const end = constant ? text.indexOf("\n);\n", begin) : text.length;
  const parts = text.slice(begin, end).split(from);
  if (begin < 0 || parts.length !== 2) throw new Error(`found ${parts.length - 1} times, not once: ${from}`);
  return text.slice(0, begin) + parts.join(to) + text.slice(end);
}

/** Plays schedules in threads, and tells what failed. `job.isShort`: a thread ends with its first failure. */
export async function simulate(file, job, threads = availableParallelism()) {
  const findings = [];
  const total = { played: 0, calls: 0, granted: 0, hashes: [] };
  let replayed;
  const work = Array.from({ length: job.replay ? 1 : threads }, (_, thread) => {
    return new Promise((resolve, reject) => {
      const worker = new Worker(file, { workerData: { ...job, threads, thread } });
      worker.on("message", ({ finding, done, outcome }) => {
        if (finding) findings.push(finding);
        if (outcome) replayed = outcome;
        if (!done) return;
        total.played += done.played;
        total.calls += done.calls;
        total.granted += done.granted;
        total.hashes[thread] = done.hash;
      });
      worker.on("error", reject);
      worker.on("exit", resolve);
    });
  });
  await Promise.all(work);
  return { ...total, findings, replayed };
}
