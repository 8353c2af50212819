// `npm run fault -- F12 B3`: injects the faults that are named, and shows the bugs, by the tests that docs/faults.md and
// docs/evidence.md name for them, and by no others.
//
//   npm run fault              all 46 faults: some ten minutes
//   npm run fault -- F28 F40   these
//   npm run fault -- B1        a bug that was found once
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { bugRows, faultRows, patternOf } from "./fault/table.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));

const wanted = process.argv.slice(2).map((id) => id.toUpperCase());
const faults = faultRows();
const rows = [...faults, ...bugRows().map(({ id, bug, tests }) => ({ id, fault: bug, tests }))];
const unknown = wanted.filter((id) => !rows.some((row) => row.id === id));
if (unknown.length > 0)
  throw new Error(`neither docs/faults.md nor docs/evidence.md has ${unknown.join(", ")}`);

const failed = [];
for (const { id, fault, tests } of wanted.length === 0
  ? faults
  : rows.filter((row) => wanted.includes(row.id))) {
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
