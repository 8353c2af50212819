// `npm run check`: set-up, then every static check, then `npm test`. All static checks run, so that one call shows all
// there is to repair; if one fails, the tests are not started. The last line of a green run is that of `npm test`.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { delimiter, join, relative, sep } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIN = join(ROOT, "node_modules", ".bin");
const LONGEST_FILE = 250;
const GENERATED = "src/scripts/generated.ts";

/**
 * A command that succeeds, or a function that returns what it found wrong as text ("" is good). What cannot be checked here prints
 * `skipped: <reason>`.
 */
const STATIC_CHECKS = [
  ["format and lint", "biome check --error-on-warnings --colors=off ."],
  ["types", "tsc -p ."],
  ["promises", "eslint --max-warnings=0 ."],
  ["import rules", "depcruise src --config .dependency-cruiser.cjs"],
  ["unused code", "knip --no-progress"],
  ["generated scripts", "node tools/lua.mjs --check"],
  ["the inspector's page", "node tools/inspector-page.mjs --check"],
  ["file lengths", findLongFiles],
  ["lock files", "node tools/lock-files.mjs"],
  ["advisories", "node tools/advisories.mjs"],
  ["build", "tsdown --logLevel warn"],
  ["api report", "node tools/api-report.mjs --check"],
  ["publint", "publint --strict"],
  ["attw", "attw --pack . --no-emoji --no-color"],
];

function run(command, stdio) {
  const [program, ...args] = command.split(" ");
  const env = { ...process.env, PATH: BIN + delimiter + process.env.PATH };
  const { status, error, stdout, stderr } = spawnSync(program, args, {
    cwd: ROOT,
    env,
    stdio,
    encoding: "utf8",
  });
  if (error) return { ok: false, output: `${program} could not be started: ${error.message}` };
  return { ok: status === 0, output: `${stdout ?? ""}${stderr ?? ""}` };
}

function findLongFiles() {
  const files = readdirSync(join(ROOT, "src"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => relative(ROOT, join(entry.parentPath ?? entry.path, entry.name)).replaceAll(sep, "/"));
  return files
    .filter((file) => file !== GENERATED)
    .map((file) => ({ file, lines: readFileSync(join(ROOT, file), "utf8").trimEnd().split("\n").length }))
    .filter(({ lines }) => lines > LONGEST_FILE)
    .map(({ file, lines }) => `${file} has ${lines} lines; at most ${LONGEST_FILE} can be read in one go`)
    .join("\n");
}

function runCheck([name, check]) {
  const start = performance.now();
  const { ok, output } = typeof check === "string" ? run(check, "pipe") : report(check());
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  const [skipped] = /^skipped: .*/.exec(output) ?? [];
  console.log(`${ok ? "ok    " : "FAILED"} ${name} (${seconds} s)${skipped ? `, ${skipped}` : ""}`);
  if (!ok) console.log(`\n${output.trim().replaceAll(/^/gm, "    ")}\n`);
  return ok;
}

function report(findings) {
  return { ok: findings === "", output: findings };
}

function main() {
  if (!run("node tools/setup.mjs", "inherit").ok) return 1;
  const failures = STATIC_CHECKS.filter((check) => !runCheck(check)).map(([name]) => name);
  if (failures.length > 0) {
    console.log(`Static checks failed: ${failures.join(", ")}. The tests were not run.`);
    return 1;
  }
  return run("npm test", "inherit").ok ? 0 : 1;
}

process.exitCode = main();
