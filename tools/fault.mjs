// `npm run fault -- F12`: injects the faults that are named, by the tests that docs/faults.md names for them, and by no others.
//
//   npm run fault              all 46: some ten minutes
//   npm run fault -- F28 F40   these
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { faultRows, patternOf } from "./fault/table.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));

const wanted = process.argv.slice(2).map((id) => id.toUpperCase());
const rows = faultRows();
const unknown = wanted.filter((id) => !rows.some((row) => row.id === id));
if (unknown.length > 0) throw new Error(`docs/faults.md has no ${unknown.join(", ")}`);

const failed = [];
for (const { id, fault, tests } of rows.filter((row) => wanted.length === 0 || wanted.includes(row.id))) {
  console.log(`\n${id}: ${fault}`);
  for (const test of tests) {
    const args = ["run", test.file, "-t", patternOf(test)];
    console.log(`  npx vitest ${args.map((arg) => (/[^\w./-]/.test(arg) ? `'${arg}'` : arg)).join(" ")}`);
    const { status } = spawnSync(process.execPath, [VITEST, ...args], { cwd: ROOT, stdio: "inherit" });
    if (status !== 0) failed.push(id);
  }
}
console.log(failed.length === 0 ? "\nall passed" : `\nfailed: ${[...new Set(failed)].join(", ")}`);
process.exitCode = failed.length === 0 ? 0 : 1;
