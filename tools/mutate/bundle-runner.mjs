// This test runner for StrykerJS bundles the tests once, and runs those that come by a mutant in a process of its own.
// Such a process is there in a moment and keeps nothing of the mutant before. A limit on its computing time ends it
// when a mutant runs for ever, since on a busy machine any other time says little. It is for tests in one process and
// in virtual time, which fail as soon as nothing is left to happen. HOLDFAST_MUTATE_TESTS lists their files.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const VITEST = fileURLToPath(new URL("vitest.mjs", import.meta.url));
/** Seconds that a process may compute with a mutant: several times what the suite takes without one. */
const SECONDS = 30;

/** What the process runs: the tests, as the message that it gets tells. */
const entryOf = (files) => `
require("../../test/support/kept-holds.ts");
const { beginFile, runTests } = require(${JSON.stringify(VITEST)});
${files.map((file) => `beginFile(); require(${JSON.stringify(resolve(file))});`).join("\n")}
process.once("message", async (job) => {
  process.channel.unref();
  const outcome = await runTests(job, (globalThis.__stryker__ ??= {}));
  process.channel.ref();
  process.send(outcome, () => process.exit());
});
`;

class BundleRunner {
  #folder;
  #bundle;

  capabilities() {
    // Each run is a process of its own.
    return { reloadEnvironment: true };
  }

  async init() {
    this.#folder = mkdtempSync(join(tmpdir(), "holdfast-mutate-"));
    this.#bundle = join(this.#folder, "tests.cjs");
    await build({
      stdin: {
        contents: entryOf(JSON.parse(process.env.HOLDFAST_MUTATE_TESTS)),
        resolveDir: resolve("tools/mutate"),
        loader: "ts",
      },
      outfile: this.#bundle,
      bundle: true,
      platform: "node",
      format: "cjs",
      target: "node20",
      alias: { vitest: VITEST },
      ignoreAnnotations: true,
      logOverride: { "empty-import-meta": "silent" },
      logLevel: "warning",
    });
  }

  async dryRun() {
    const outcome = await this.#run({}, "unlimited");
    if (outcome.error) return { status: "error", errorMessage: outcome.error };
    // A row may need what the bundle has not, such as the name of its own file in a stack: it shows nothing here.
    const failed = outcome.results.filter(({ failure }) => failure);
    for (const { id, failure } of failed) {
      console.log(`left out: ${id}: ${failure.split("\n")[0]}`);
      delete outcome.coverage.perTest[id];
    }
    const tests = outcome.results
      .filter(({ failure }) => !failure)
      .map((result) => ({ ...result, status: 0 }));
    return { status: "complete", tests, mutantCoverage: outcome.coverage };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }) {
    const outcome = await this.#run({ ids: testFilter, activeMutant: activeMutant.id, hitLimit }, SECONDS);
    if (outcome.isLate || outcome.hitCount > hitLimit) return { status: "timeout" };
    // It has killed the process with itself.
    if (outcome.error) return { status: "killed", killedBy: [], failureMessage: outcome.error, nrOfTests: 0 };
    const { results } = outcome;
    const failed = results.find(({ failure }) => failure);
    if (!failed) return { status: "survived", nrOfTests: results.length };
    const { id, failure } = failed;
    return { status: "killed", killedBy: [id], failureMessage: failure, nrOfTests: results.length };
  }

  async dispose() {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }

  #run(job, seconds) {
    return new Promise((done, reject) => {
      const limited = `ulimit -t ${seconds}; exec "$0" "$1"`;
      const child = spawn("sh", ["-c", limited, process.execPath, this.#bundle], {
        stdio: ["ignore", "ignore", "pipe", "ipc"],
      });
      let [outcome, said] = [undefined, ""];
      child.stderr.on("data", (text) => {
        said = (said + text).slice(-2_000);
      });
      child.on("message", (message) => {
        outcome = message;
      });
      child.on("error", reject);
      child.on("exit", (code, signal) => {
        const isLate = signal === "SIGXCPU" || signal === "SIGKILL";
        done(outcome ?? { isLate, error: `the process ended early: ${signal ?? code}\n${said}` });
      });
      child.send(job);
    });
  }
}

export const strykerPlugins = [{ kind: "TestRunner", name: "bundle", factory: () => new BundleRunner() }];
