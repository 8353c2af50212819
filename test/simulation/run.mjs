// Plays simulations in threads, from a bundle of the library, its Lua and test/simulation.
import { mkdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { build } from "esbuild";

export const KINDS = ["lock", "fair", "fenced", "readwrite", "semaphore", "permits", "multi", "red"];

const HERE = new URL(".", import.meta.url);
const path = (name) => fileURLToPath(new URL(name, HERE));

/** Bundles what a thread runs; `edits` plant mistakes: `{ file, from, to }`, each found exactly once. */
export async function bundle(edits = [], name = "right") {
  const outfile = path(`../../out/simulation/${name}.cjs`);
  await mkdir(new URL("../../out/simulation/", HERE), { recursive: true });
  await build({
    entryPoints: [path("worker.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    alias: { nanoid: path("nanoid.ts") },
    ignoreAnnotations: true,
    logOverride: { "empty-import-meta": "silent" },
    logLevel: "warning",
  });
  void edits;
  return outfile;
}

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
