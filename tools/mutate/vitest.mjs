// Takes the place of Vitest in a bundle of tests (bundle-runner.mjs): what those tests use of it and no more, so that a process that
// runs them is there in a moment. The matchers are Vitest's own.
import { format } from "node:util";
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);
export const { expect } = chai;

const tests = [];
const titles = [];

/** What `test.each` and `describe.each` make of a title and a row. */
function titleOf(title, row, index) {
  const values = Array.isArray(row) ? row : [row];
  const places = title.match(/%[sdifjo]/g)?.length ?? 0;
  return format(title.replaceAll("%#", String(index)), ...values.slice(0, places));
}

/** `define` for each row of a table, given to the function as arguments or, with `for`, as one. */
function withTables(define) {
  return Object.assign(define, {
    each: (rows) => (title, fn, timeout) => {
      for (const [i, row] of rows.entries())
        define(titleOf(title, row, i), () => fn(...(Array.isArray(row) ? row : [row])), timeout);
    },
    for: (rows) => (title, fn, timeout) => {
      for (const [i, row] of rows.entries()) define(titleOf(title, row, i), () => fn(row), timeout);
    },
  });
}

/** Rows of the contract that run on a real server as well: their titles say so, and they stay out. */
const REAL = / on redis-server: /;

const define = (title, fn) => {
  const name = [...titles, title].join(" > ");
  if (REAL.test(name)) return;
  const twins = tests.filter((other) => other.name === name).length;
  tests.push({ id: twins > 0 ? `${name} (${twins + 1})` : name, name, fn });
};

export const test = Object.assign(withTables(define), {
  /** A row that is ahead of the library shows nothing about it. */
  fails: () => {},
});

/** Nothing outlives a process. */
export const afterAll = () => {};
const finishing = [];
export const onTestFinished = (end) => void finishing.push(end);

export const describe = withTables((title, define) => {
  titles.push(title);
  define();
  titles.pop();
});

/** What ends a test that has not settled by itself: an error of nobody's, or that nothing is left to happen. */
let end = () => {};
for (const event of ["unhandledRejection", "uncaughtException"]) process.on(event, (error) => end(error));
process.on("beforeExit", () => end(new Error("it waits for what never happens")));

async function outcomeOf({ fn }) {
  const ended = new Promise((_, reject) => {
    end = reject;
  });
  try {
    await Promise.race([fn(), ended]);
    return undefined;
  } catch (error) {
    return String(error?.stack ?? error);
  } finally {
    for (const finish of finishing.splice(0).reverse()) await finish();
  }
}

/** Runs the tests of these ids, or all, one after the other until one fails; `state` is what Stryker's mutants look at. */
export async function runTests({ ids, activeMutant, hitLimit }, state) {
  const wanted = ids && new Set(ids);
  const results = [];
  Object.assign(state, { activeMutant, hitLimit, hitCount: hitLimit === undefined ? undefined : 0 });
  for (const each of tests) {
    if (wanted && !wanted.has(each.id)) continue;
    const begun = performance.now();
    if (activeMutant === undefined) state.currentTestId = each.id;
    const failure = await outcomeOf(each);
    state.currentTestId = undefined;
    results.push({ id: each.id, name: each.name, timeSpentMs: performance.now() - begun, failure });
    if (failure && activeMutant !== undefined) break;
  }
  return { results, coverage: state.mutantCoverage, hitCount: state.hitCount };
}
