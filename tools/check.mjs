// `npm run check`: set-up, then every static check, then `npm run test:all`. All static checks run, so that one call
// shows all there is to repair; if one fails, the tests are not started. The last line of a green run is that of the tests.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { delimiter, join, relative, sep } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { overBudget } from "./check/test-budgets.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIN = join(ROOT, "node_modules", ".bin");
const LONGEST_FILE = 350;
const GENERATED = "src/scripts/generated.ts";

/**
 * A command that succeeds, or a function that returns what it found wrong as text ("" is good). What cannot be checked here prints
 * `skipped: <reason>`. In the order in which they run: the last ones read what the build has written, and pack the same file.
 */
const STATIC_CHECKS = [
  ["format and lint", "biome check --error-on-warnings --colors=off ."],
  // Two rules of oxlint need types, so it tells the errors of the compiler as well. A promise that nobody waits for is the
  // typical defect of a lock library: a release that is not awaited, a rejection that ends the process.
  ["types and promises", "npm run --silent lint"],
  ["import rules", "depcruise src --config .dependency-cruiser.cjs"],
  ["unused code", "knip --no-progress"],
  ["generated scripts", "node tools/lua.mjs --check"],
  ["the inspector's page", "node tools/inspector-page.mjs --check"],
  ["file lengths", findLongFiles],
  [
    "test budgets",
    () => overBudget(filesIn("test").filter(({ file }) => /\.m?ts$|\.mjs$/.test(file))).join("\n"),
  ],
  ["test projects", findHomelessTests],
  ["lock files", "node tools/lock-files.mjs"],
  ["advisories", "node tools/advisories.mjs"],
  ["build", "tsdown --logLevel warn"],
  ["api report", "node tools/api-report.mjs --check"],
  ["publint", "publint --strict"],
  ["attw", "attw --pack . --no-emoji --no-color"],
];

function run(command, stdio) {
  const [program, ...args] = command.split(" ");
  // The reporter judges how long each test file took.
  const env = { ...process.env, HOLDFAST_TEST_SECONDS: "check", PATH: BIN + delimiter + process.env.PATH };
  const child = spawn(program, args, { cwd: ROOT, env, stdio });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  }
  return new Promise((resolve) => {
    child.on("error", ({ message }) => {
      resolve({ ok: false, output: `${program} could not be started: ${message}` });
    });
    child.on("close", (code) => resolve({ ok: code === 0, output }));
  });
}

const linesOf = (file) => readFileSync(join(ROOT, file), "utf8").trimEnd().split("\n").length;

/** The files of a folder that git knows and that are there, each with its lines. */
function filesIn(folder) {
  const listed = execFileSync(
    "git",
    ["ls-files", "-z", "--cached", "--others", "--exclude-standard", folder],
    { cwd: ROOT },
  );
  return [...new Set(String(listed).split("\0"))]
    .filter((file) => file !== "" && existsSync(join(ROOT, file)))
    .map((file) => ({ file, lines: linesOf(file) }));
}

function findLongFiles() {
  return filesIn("src")
    .filter(({ file }) => file.endsWith(".ts") && file !== GENERATED)
    .filter(({ lines }) => lines > LONGEST_FILE)
    .map(({ file, lines }) => `${file} has ${lines} lines; at most ${LONGEST_FILE} can be read in one go`)
    .join("\n");
}

/** Test files that no project of Vitest takes: they would be green for ever. */
function findHomelessTests() {
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const args = [vitest, "list", "--filesOnly", "--json"];
  const listed = JSON.parse(String(execFileSync(process.execPath, args, { cwd: ROOT })));
  const taken = new Set(listed.map(({ file }) => relative(ROOT, file).replaceAll(sep, "/")));
  return filesIn("test")
    .filter(({ file }) => file.endsWith(".test.ts") && !taken.has(file))
    .map(({ file }) => `${file} belongs to no project of vitest.config.ts`)
    .join("\n");
}

async function runCheck([name, check]) {
  const start = performance.now();
  const { ok, output } = typeof check === "string" ? await run(check, "pipe") : report(check());
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const [skipped] = /^skipped: .*/.exec(output) ?? [];
  console.log(`${ok ? "ok    " : "FAILED"} ${name} (${seconds} s)${skipped ? `, ${skipped}` : ""}`);
  if (!ok) console.log(`\n${output.trim().replaceAll(/^/gm, "    ")}\n`);
  return ok ? [] : [name];
}

async function runChecks(checks) {
  const failures = [];
  for (const check of checks) failures.push(...(await runCheck(check)));
  return failures;
}

function report(findings) {
  return { ok: findings === "", output: findings };
}

async function main() {
  if (!(await run("node tools/setup.mjs", "inherit")).ok) return 1;
  const failures = await runChecks(STATIC_CHECKS);
  if (failures.length > 0) {
    console.log(`Static checks failed: ${failures.join(", ")}. The tests were not run.`);
    return 1;
  }
  return (await run("npm run test:all", "inherit")).ok ? 0 : 1;
}

process.exitCode = await main();
