// Vitest adds this to its default reporter. The very last line of a run is `N passed, N failed[, N skipped]`, which
// people and machines can read alike. Above it stands why each skipped test was skipped. A worker that dies, a file
// that does not load, a hook that throws or an unhandled rejection is a failure too. Vitest does not count these as
// tests. A test that was never finished is a failure, too. With HOLDFAST_TEST_SECONDS, as `npm run check` sets it, so
// is a file that took longer than it may (check/test-budgets.mjs).
import { writeSync } from "node:fs";
import { secondsOf } from "./check/test-budgets.mjs";

const WITHOUT_REASON = "no reason given";

/** Tests by how they ended, with the errors that belong to no test counted as failed. */
function count(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    counts.failed += module.errors().length;
    for (const suite of module.children.allSuites()) counts.failed += suite.errors().length;
    for (const test of module.children.allTests()) {
      const { state } = test.result();
      counts[state === "pending" ? "failed" : state] += 1;
    }
  }
  return counts;
}

/** One line for each reason, with its tests counted: a run of a few tests by name skips hundreds of others. */
function listSkipped(modules) {
  const reasons = new Map();
  for (const module of modules) {
    for (const test of module.children.allTests("skipped")) {
      const reason = test.result().note ?? WITHOUT_REASON;
      reasons.set(reason, [...(reasons.get(reason) ?? []), `${module.relativeModuleId}: ${test.fullName}`]);
    }
  }
  return [...reasons].flatMap(([reason, tests]) => {
    if (reason === WITHOUT_REASON) return [`skipped: ${tests.length} tests, ${WITHOUT_REASON}`];
    return tests.map((test) => `skipped: ${test} (${reason})`);
  });
}

/** The files that took longer than they may; `asked` is "check", or seconds for every file. */
function listSlow(modules, asked) {
  if (asked === undefined) return [];
  return modules.flatMap((module) => {
    const took = module.diagnostic().duration / 1_000;
    const most = asked === "check" ? secondsOf(module.relativeModuleId) : Number(asked);
    return took <= most
      ? []
      : [`too long: ${module.relativeModuleId} took ${took.toFixed(1)} s; at most ${most}`];
  });
}

function summarize({ passed, failed, skipped }) {
  const line = `${passed} passed, ${failed} failed`;
  return skipped > 0 ? `${line}, ${skipped} skipped` : line;
}

export default class PlainReporter {
  #counts = { passed: 0, failed: 0, skipped: 0 };
  #notes = [];

  onInit() {
    // On exit, since other reporters and the coverage table print after the end of the run.
    process.once("exit", (code) => {
      const counts = this.#counts;
      // A run that breaks off, or that finds no test file, must not look green.
      if (code !== 0 && counts.failed === 0) counts.failed = 1;
      const lines = [...this.#notes, summarize(counts)];
      writeSync(1, `${lines.join("\n")}\n`);
    });
  }

  onTestRunEnd(modules, unhandledErrors) {
    this.#counts = count(modules, unhandledErrors);
    const slow = listSlow(modules, process.env.HOLDFAST_TEST_SECONDS);
    this.#counts.failed += slow.length;
    if (slow.length > 0) process.exitCode = 1;
    this.#notes = [...listSkipped(modules), ...slow];
  }
}
