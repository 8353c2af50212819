// `npm run fault -- F12 B3`: runs the tests whose titles have one of these ids, and no others.
//
//   npm run fault                       all faults of docs/faults.md: some ten minutes
//   npm run fault -- F28 F40            these
//   npm run fault -- B1                 a bug of docs/evidence.md
//   npm run fault -- '§2 extend-later'  a sentence of the contract
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { KINDS, usesOf } from "./fault/ids.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));

const kinds = Object.values(KINDS);
const rows = new Map(kinds.flatMap((kind) => kind.rows().map((row) => [row.id, row])));
const asked = process.argv.slice(2).map((id) => (id.startsWith("§") ? id : id.toUpperCase()));
const wanted = asked.length > 0 ? asked : KINDS.fault.rows().map(({ id }) => id);
const uses = new Map(kinds.flatMap((kind) => [...usesOf(kind)]));
for (const id of wanted) {
  const row = rows.get(id);
  if (!row) throw new Error(`neither docs/faults.md, docs/evidence.md nor the contract has ${id}`);
  console.log(`${id}: ${row.cells.find((cell) => cell.includes(" ")) ?? row.cells[0]}`);
  if (!uses.has(id)) console.log("    no test: see its row");
}
// A title may stand in a table, which tests of the same folder use.
const placeOf = (file) => (file.endsWith(".test.ts") ? file : file.replace(/[^/]+$/, ""));
const files = [...new Set(wanted.flatMap((id) => uses.get(id) ?? []).map(placeOf))];
const pattern = `\\[(${wanted.join("|")})\\]`;
if (files.length === 0) process.exit();
console.log(`\nnpx vitest run ${files.join(" ")} -t '${pattern}'\n`);
const { status } = spawnSync(process.execPath, [VITEST, "run", ...files, "-t", pattern], {
  cwd: ROOT,
  stdio: "inherit",
});
process.exitCode = status ?? 1;
