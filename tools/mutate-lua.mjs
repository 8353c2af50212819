// Tests the tests of the Lua scripts: changes each script in every small way that this file knows, one at a time, and
// runs the tests of that script, which should notice. Slow, so a command of its own.
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
import { reasonFor } from "./mutate-lua/equivalents.mjs";

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

/** The tests that run a script through the bench, where it can be replaced. No file may test two scripts. */
function testsOf(exported) {
  const found = readdirSync(TESTS).filter((name) => {
    const source = name.endsWith(".test.ts") ? readFileSync(join(TESTS, name), "utf8") : "";
    return source.includes("./bench.js") && new RegExp(`\\b${exported}\\b`).test(source);
  });
  if (found.length === 0) throw new Error(`${exported} has no tests`);
  return found.map((name) => join(TESTS, name));
}

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" }, list: { type: "boolean" } } });
  const { only } = values;
  const scripts = (await readScripts()).filter(
    ({ name }) => only === undefined || name === only || name.startsWith(`${only}/`),
  );
  if (scripts.length === 0) throw new Error(`there is no script ${only}`);
  const queues = scripts.map(({ exported, name, modern }) => {
    const [, shebang = "", body = ""] = /^(#!lua[^\n]*\n)?([\s\S]*)$/.exec(modern.text) ?? [];
    const mutants = mutate(name, body);
    // Without its flags a script must not pass either.
    const lines = mutants.map((mutant) => ({ ...mutant, shebang }));
    if (shebang) lines.push({ script: name, body, shebang: "#!lua\n", what: `${shebang.trim()} -> #!lua` });
    return { exported, name, tests: testsOf(exported), mutants: lines };
  });
  if (values.list) {
    for (const { mutants } of queues)
      for (const { script, what } of mutants) console.log(`${script}: ${what}`);
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
  const specsOf = ({ tests }) => specs.filter(({ moduleId }) => tests.includes(moduleId));
  const survivors = [];
  const known = [];
  let killed = 0;
  try {
    writeFileSync(file, "{}");
    await expectGreen(vitest, queues.flatMap(specsOf));
    // One mutant of each script at a time: each has tests of its own.
    for (let round = 0; queues.some(({ mutants }) => round < mutants.length); round++) {
      const active = queues.filter(({ mutants }) => round < mutants.length);
      const overrides = active.map(({ name, mutants }) => {
        const { shebang, body } = mutants[round];
        return [name, { modern: textOf(shebang + body), legacy: textOf(body) }];
      });
      writeFileSync(file, JSON.stringify(Object.fromEntries(overrides)));
      const { testModules } = await vitest.runTestSpecifications(active.flatMap(specsOf));
      for (const { tests, mutants } of active) {
        const { script, what } = mutants[round];
        const line = `${script}: ${what}`;
        const modules = testModules.filter(({ moduleId }) => tests.includes(moduleId));
        if (modules.length < tests.length) throw new Error(`not all were run of ${tests.join(", ")}`);
        if (modules.some((module) => !module.ok())) killed++;
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
