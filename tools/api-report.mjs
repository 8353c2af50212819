// The API report: what each entry point declares, without its comments, one file each in docs/api-report/. A change of the public types
// shows in review as a change of these files. Reads dist/, so build first.
// Usage: node tools/api-report.mjs [--check]   writes the report; with --check it fails instead where that would change it
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
const REPORT = join(ROOT, "docs/api-report");
/** The declarations; those of the ES modules only lead to them. */
const ENTRY = ".d.cts";

const printer = ts.createPrinter({ removeComments: true, newLine: ts.NewLineKind.LineFeed });

function reportOf(file) {
  const text = readFileSync(join(DIST, file), "utf8");
  return printer.printFile(ts.createSourceFile(file, text, ts.ScriptTarget.Latest));
}

function main() {
  const isCheck = process.argv.includes("--check");
  const entries = readdirSync(DIST).filter((file) => file.endsWith(ENTRY));
  const stale = [];
  mkdirSync(REPORT, { recursive: true });
  for (const file of entries) {
    const path = join(REPORT, file.replace(ENTRY, ".txt"));
    const report = reportOf(file);
    if (existsSync(path) && readFileSync(path, "utf8") === report) continue;
    stale.push(path);
    if (!isCheck) writeFileSync(path, report);
  }
  if (!isCheck) return 0;
  for (const path of stale)
    console.log(`${path} is not what dist/ declares: npm run api-report, and look at the difference`);
  return stale.length > 0 ? 1 : 0;
}

process.exitCode = main();
