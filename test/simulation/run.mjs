// Plays simulations in processes, from a bundle of the library, its Lua and test/simulation.
import { fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

export const KINDS = ["lock", "fair", "fenced", "readwrite", "semaphore", "permits", "multi", "red"];

const HERE = new URL(".", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, HERE));

/** A folder of this process alone, because other processes may bundle at the same time. */
const BUNDLES = mkdtempSync(join(tmpdir(), "holdfast-simulation-"));
process.on("exit", () => rmSync(BUNDLES, { recursive: true, force: true }));

/**
 * A mistake: a text that must be found as often as it says, and its replacement.
 *
 * @typedef {object} Edit
 * @property {string} [script] the name of its Lua file; without a script, the part that all scripts share
 * @property {string} [file] a file of the client
 * @property {string} from
 * @property {string} to
 * @property {number} [times] how often `from` stands there; default once
 */

const SCRIPTS = "src/scripts/generated.ts";

/** Bundles the program of a process, with these mistakes in it. */
export async function bundle(name = "right", edits = [], entry = "simulation-worker.ts") {
  const outfile = join(BUNDLES, `${name.replaceAll(" ", "-")}.cjs`);
  const files = grouped(edits);
  await build({
    entryPoints: [path(entry)],
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

function planted(text, { script, from, to, times = 1 }) {
  // The text of a script ends with the call that defines it.
  const constant = script?.replace(/[/-](.)/g, (_, letter) => letter.toUpperCase());
  const begin = constant ? text.indexOf(`export const ${constant}:`) : 0;
  const end = constant ? text.indexOf("\n);\n", begin) : text.length;
  const parts = text.slice(begin, end).split(from);
  if (begin < 0 || parts.length !== times + 1)
    throw new Error(`found ${parts.length - 1} times, not ${times}: ${from}`);
  return text.slice(0, begin) + parts.join(to) + text.slice(end);
}

/** Plays schedules in processes, and returns the failures. `job.isShort`: a process ends with its first failure. */
export async function simulate(file, job, processes = availableParallelism()) {
  const findings = [];
  const total = { played: 0, calls: 0, granted: 0, operations: 0, states: 0, hashes: [] };
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
        total.played += done.played;
        total.calls += done.calls;
        total.granted += done.granted;
        total.operations += done.operations;
        total.states += done.states;
        total.hashes[part] = done.hash;
      });
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        if (isDone && code === 0) resolve();
        else reject(new Error(`a process that simulates ended early: ${signal ?? code}`));
      });
    });
  const parts = job.replay ? 1 : processes;
  await Promise.all(Array.from({ length: parts }, (_, part) => play(part, parts)));
  return { ...total, findings, replayed };
}
