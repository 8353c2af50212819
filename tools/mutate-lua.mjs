// Tests the tests of the Lua scripts: changes each script in every small way that this file knows, one at a time, and
// runs the tests of that script, which should notice. Slow, so a command of its own. `--list` runs nothing: it prints the
// changes, and the equivalents that are none of them any more.
// Usage: node tools/mutate-lua.mjs [--only lock | --only lock/acquire] [--list]
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import luaparse from "luaparse";
import { createVitest } from "vitest/node";
import { reasonFor, staleIn } from "./mutate-lua/equivalents.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const TESTS = join(ROOT, "test/lua");
/** Of all mutants that are not equivalent, this share is to be killed. */
const GOAL = 0.95;

const BINARY = {
  "==": ["~="],
  "~=": ["=="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "+": ["-"],
  "-": ["+"],
  and: ["or"],
  or: ["and"],
};

/** Strings that are neither data nor the name of a command that something else would be missed from. */
const STRINGS = {
  0: ["1", ""],
  1: ["0"],
  PX: ["EX"],
  PEXPIRE: ["EXPIRE", "PERSIST"],
  PTTL: ["TTL"],
  EXISTS: ["TTL"],
  HEXISTS: ["HSTRLEN"],
  HLEN: ["EXISTS"],
  DEL: ["PTTL"],
};

/** @typedef {{ script: string, body: string, what: string }} Mutant */

/** All mutants of one script's body. @returns {Mutant[]} */
function mutate(script, body) {
  const mutants = new Map();
  const add = ([from, to], text) => {
    const changed = body.slice(0, from) + text + body.slice(to);
    mutants.set(changed, { script, body: changed, what: describe(body, changed, from) });
  };
  const source = ({ range }) => body.slice(...range);
  const chunk = luaparse.parse(body, { ranges: true, luaVersion: "5.1" });
  visit(chunk.body, (node) => {
    const { type, range } = node;
    if (type === "BinaryExpression" || type === "LogicalExpression") {
      for (const operator of BINARY[node.operator] ?? []) {
        add(range, `${source(node.left)} ${operator} ${source(node.right)}`);
      }
    }
    if (type === "LogicalExpression") {
      add(range, source(node.left));
      add(range, source(node.right));
    }
    if (type === "UnaryExpression") add(range, source(node.argument));
    if (type === "NumericLiteral") {
      add(range, String(node.value + 1));
      if (node.value > 0) add(range, String(node.value - 1));
    }
    if (type === "StringLiteral") {
      for (const text of STRINGS[node.raw.slice(1, -1)] ?? []) add(range, `'${text}'`);
    }
    if (type === "CallStatement" || type === "AssignmentStatement" || type === "ReturnStatement")
      add(range, "");
    if (type === "ReturnStatement" && node.arguments.length > 0) add(range, "return false");
    if (type === "CallExpression" && source(node.base) === "redis.call") add(node.base.range, "redis.pcall");
    if (type === "CallExpression" && source(node.base) === "redis.pcall") add(node.base.range, "redis.call");
    if (type === "IfStatement") {
      for (const clause of node.clauses) {
        if (!clause.condition) continue;
        add(clause.condition.range, "true");
        add(clause.condition.range, "false");
      }
    }
    // `f(a, b)` -> `f(b, a)`
    const isSymmetric = type === "CallExpression" && /^math\.(max|min)$/.test(source(node.base));
    if (type === "CallExpression" && !isSymmetric && node.arguments.length > 1) {
      const [first, second] = node.arguments.slice(-2);
      add([first.range[0], second.range[1]], `${source(second)}, ${source(first)}`);
    }
  });
  mutants.delete(body);
  return [...mutants.values()].filter(({ body: changed }) => compiles(changed));
}

function visit(node, see) {
  if (Array.isArray(node)) {
    for (const child of node) visit(child, see);
  } else if (node !== null && typeof node === "object") {
    if (typeof node.type === "string") see(node);
    for (const [name, child] of Object.entries(node)) if (name !== "range") visit(child, see);
  }
}

function compiles(body) {
  try {
    luaparse.parse(body, { luaVersion: "5.1" });
    return true;
  } catch {
    return false;
  }
}

function titleOf({ script, what }) {
  return `${script}: ${what}`;
}

/** The line that was changed, before and after. */
function describe(before, after, at) {
  const lineOf = (text) => text.split("\n")[before.slice(0, at).split("\n").length - 1]?.trim() ?? "";
  return `${lineOf(before)} -> ${lineOf(after) || "(removed)"}`;
}

async function readScripts() {
  const entryPoints = [join(ROOT, "src/scripts/generated.ts")];
  const { outputFiles } = await build({
    entryPoints,
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
  });
  const code = Buffer.from(outputFiles[0].contents).toString("base64");
  const module = await import(`data:text/javascript;base64,${code}`);
  return Object.entries(module).map(([exported, source]) => ({ exported, ...source }));
}

function textOf(text) {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}

/** The files of tests that run scripts through the bench, where they can be replaced. */
const BENCHES = readdirSync(TESTS)
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => ({ file: join(TESTS, name), source: readFileSync(join(TESTS, name), "utf8") }))
  .filter(({ source }) => source.includes("./bench.js"));

/** The tests of one script: files of its own, and those that go over several or (`* as`) over all scripts with a lock. */
function testsOf({ exported, keys }, all) {
  const isNamed = (name, source) => new RegExp(`\\b${name}\\b`).test(source);
  const own = [];
  const shared = [];
  for (const { file, source } of BENCHES) {
    const goesOverAll = source.includes("import * as generated");
    const isAlone = !goesOverAll && all.filter((script) => isNamed(script.exported, source)).length === 1;
    const has = goesOverAll ? "lock" in keys || "locks" in keys : isNamed(exported, source);
    if (has) (isAlone ? own : shared).push(file);
  }
  return { own, shared };
}

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" }, list: { type: "boolean" } } });
  const { only } = values;
  const all = await readScripts();
  const scripts = all.filter(
    ({ name }) => only === undefined || name === only || name.startsWith(`${only}/`),
  );
  if (scripts.length === 0) throw new Error(`there is no script ${only}`);
  const queues = scripts.flatMap((script) => {
    const { name, modern } = script;
    const tests = testsOf(script, all);
    if (tests.own.length + tests.shared.length === 0) {
      console.log(`${name} is not tested on the bench\n`);
      return [];
    }
    const [, shebang = "", body = ""] = /^(#!lua[^\n]*\n)?([\s\S]*)$/.exec(modern.text) ?? [];
    const mutants = mutate(name, body);
    // Without its flags a script must not pass either.
    const lines = mutants.map((mutant) => ({ ...mutant, shebang }));
    if (shebang) lines.push({ script: name, body, shebang: "#!lua\n", what: `${shebang.trim()} -> #!lua` });
    return { name, ...tests, mutants: lines };
  });
  if (values.list) {
    const lines = queues.flatMap(({ mutants }) => mutants.map(titleOf));
    for (const line of lines) console.log(line);
    if (only === undefined) for (const line of staleIn(lines)) console.log(`STALE       ${line}`);
    return;
  }
  await run(queues);
}

async function run(queues) {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-mutants-"));
  const file = join(directory, "override.json");
  process.env.HOLDFAST_LUA_OVERRIDE = file;
  process.chdir(ROOT);
  const vitest = await createVitest("test", { watch: false, root: ROOT, reporters: [{}], silent: true });
  const specs = await vitest.globTestSpecifications();
  const survivors = [];
  const known = [];
  let killed = 0;
  /** Runs these files of these scripts, and returns the scripts of which a test has failed. */
  const findKilled = async (active, filesOf) => {
    const files = new Set(active.flatMap(filesOf));
    const chosen = specs.filter(({ moduleId }) => files.has(moduleId));
    if (chosen.length < files.size) throw new Error(`not all are tests of ${[...files].join(", ")}`);
    if (files.size === 0) return [];
    const { testModules } = await vitest.runTestSpecifications(chosen);
    if (testModules.length < files.size) throw new Error(`not all were run of ${[...files].join(", ")}`);
    return active.filter((queue) =>
      testModules.some((module) => filesOf(queue).includes(module.moduleId) && hasFailed(module, queue)),
    );
  };
  try {
    writeFileSync(file, "{}");
    const files = queues.flatMap(({ own, shared }) => [...own, ...shared]);
    await expectGreen(
      vitest,
      specs.filter(({ moduleId }) => files.includes(moduleId)),
    );
    // One mutant of each script at a time. Files that scripts share are slow: they run for those that the own ones let pass.
    for (let round = 0; queues.some(({ mutants }) => round < mutants.length); round++) {
      const active = queues.filter(({ mutants }) => round < mutants.length);
      const overrides = active.map(({ name, mutants }) => {
        const { shebang, body } = mutants[round];
        return [name, { modern: textOf(shebang + body), legacy: textOf(body) }];
      });
      writeFileSync(file, JSON.stringify(Object.fromEntries(overrides)));
      const noticed = await findKilled(active, ({ own }) => own);
      const others = active.filter((queue) => !noticed.includes(queue));
      noticed.push(...(await findKilled(others, ({ shared }) => shared)));
      for (const queue of active) {
        const line = titleOf(queue.mutants[round]);
        if (noticed.includes(queue)) killed++;
        else (reasonFor(line) ? known : survivors).push(line);
      }
      process.stderr.write(`\r${killed} killed, ${survivors.length} survived, ${known.length} equivalent `);
    }
  } finally {
    await vitest.close();
    rmSync(directory, { recursive: true });
  }
  report(killed, survivors, known);
}

/** In a file that scripts share, the titles of a script's tests begin with its name. */
function hasFailed(module, { name, own }) {
  if (module.ok()) return false;
  const failed = [...module.children.allTests("failed")];
  const isOf = ({ fullName }) => fullName.startsWith(`${name},`);
  return own.includes(module.moduleId) || failed.length === 0 || failed.some(isOf);
}

async function expectGreen(vitest, specs) {
  const { testModules } = await vitest.runTestSpecifications(specs);
  const failed = testModules.filter((module) => !module.ok()).map(({ moduleId }) => moduleId);
  if (failed.length > 0) throw new Error(`these tests fail without any mutation: ${failed.join(", ")}`);
}

function report(killed, survivors, known) {
  console.log("\n");
  for (const line of known) console.log(`equivalent  ${line}\n            ${reasonFor(line)}`);
  for (const line of survivors) console.log(`SURVIVED    ${line}`);
  const score = killed / (killed + survivors.length);
  console.log(
    `Lua mutants: ${killed} killed, ${survivors.length} survived, ${known.length} equivalent: ` +
      `${(100 * score).toFixed(1)} % killed (goal ${100 * GOAL} %)`,
  );
  process.exitCode = score >= GOAL ? 0 : 1;
}

await main();
