// Takes the place of Vitest in a bundle of tests (bundle-runner.mjs). It has no more of Vitest than those tests use, so
// a process that runs them is there in a moment. The matchers are Vitest's own.
import { format } from "node:util";
import { chai, JestAsymmetricMatchers, JestChaiExpect, JestExtend } from "@vitest/expect";

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);
export const { expect } = chai;

const tests = [];
/** The file and the describes that are being read, each with what runs around its tests. */
let scopes = [];
const scopeOf = (title) => ({ title, before: [], after: [] });

/** What follows is in another file. */
export function beginFile() {
  scopes = [scopeOf("")];
}

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
  const name = [...scopes.slice(1).map((scope) => scope.title), title].join(" > ");
  if (REAL.test(name)) return;
  const twins = tests.filter((other) => other.name === name).length;
  tests.push({ id: twins > 0 ? `${name} (${twins + 1})` : name, name, fn, scopes });
};

export const test = Object.assign(withTables(define), {
  /** A row that is ahead of the library shows nothing about it. */
  fails: () => {},
});

/** Nothing outlives a process. */
export const afterAll = () => {};
export const beforeEach = (fn) => void scopes.at(-1).before.push(fn);
export const afterEach = (fn) => void scopes.at(-1).after.push(fn);
const finishing = [];
export const onTestFinished = (end) => void finishing.push(end);

export const describe = withTables((title, define) => {
  const outer = scopes;
  scopes = [...outer, scopeOf(title)];
  define();
  scopes = outer;
});

/** What ends a test that has not settled by itself: an error of nobody's, or that nothing is left to happen. */
let end = () => {};
for (const event of ["unhandledRejection", "uncaughtException"]) process.on(event, (error) => end(error));
process.on("beforeExit", () => {
  end(new Error("it waits for what never happens"));
  // The next test gets its turn, though nothing else is left in this process.
  setImmediate(() => {});
});

/** A test with what runs around it, and what it asked to be run behind it. */
async function runOne({ fn, scopes }) {
  try {
    for (const { before } of scopes) for (const hook of before) await hook();
    await fn();
  } finally {
    for (const finish of finishing.splice(0).reverse()) await finish();
    for (const { after } of [...scopes].reverse()) for (const hook of after) await hook();
  }
}

async function outcomeOf(each) {
  const ended = new Promise((_, reject) => {
    end = reject;
  });
  try {
    await Promise.race([runOne(each), ended]);
    return undefined;
  } catch (error) {
    return String(error?.stack ?? error);
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
