// `npm run faults:peers` plays the same faults on holdfast and on the libraries next to it. It installs what
// bench/package.json pins, and builds the driver for Redisson where a JDK and Maven are. It prints the table of
// docs/faults.md, and fails if holdfast's own column is not as that page says. What the others do fails nothing.
//
//   npm run faults:peers                            all of them: some ten minutes
//   npm run faults:peers -- lost-take early-release these faults
//   npm run faults:peers -- --peer redlock5         one peer, any number of times
//   npm run faults:peers -- --write                 and takes what was run into docs/faults.md
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { install } from "../bench/lib/peers.mjs";
import { pinnedVersions } from "../interop/build.mjs";
import { PAGE, peerTable, withTable, writtenTable } from "./fault/peer-table.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const OUT = fileURLToPath(new URL("../out/peers.json", import.meta.url));

const { values, positionals: faults } = parseArgs({
  options: {
    peer: { type: "string", multiple: true, default: [] },
    write: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

function run() {
  mkdirSync(fileURLToPath(new URL("../out", import.meta.url)), { recursive: true });
  rmSync(OUT, { force: true });
  const one = (names) => (names.length === 0 ? ".*" : `(${names.join("|")})`);
  const { status } = spawnSync(
    process.execPath,
    [VITEST, "run", "--project", "peers", "-t", `^${one(values.peer)} ${one(faults)}$`],
    {
      cwd: ROOT,
      stdio: "inherit",
      env: { ...process.env, HOLDFAST_PEERS: OUT, HOLDFAST_REDISSON: pinnedVersions()[0] },
    },
  );
  return { status, ...JSON.parse(readFileSync(OUT, "utf8")) };
}

const documented = peerTable();

function check(ids, list) {
  const unknown = ids.filter((id) => !list.some((each) => each.id === id));
  const there = list.map(({ id }) => id).join(", ");
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(", ")}; there are ${there}`);
}

if (!values.write) {
  check(faults, documented.rows);
  check(values.peer, documented.columns);
}
install();
const { status, columns, rows, outcomes } = run();

const found = new Map(outcomes);
const cell = (fault, peer) => found.get(`${peer} ${fault}`);
const was = (fault, peer) => cell(fault, peer) ?? documented.cell(fault, peer) ?? "";
const isRun = {
  column: ({ id }) => rows.some((row) => cell(row.id, id) !== undefined),
  row: ({ id }) => columns.some((column) => cell(id, column.id) !== undefined),
};
const shown = { columns: columns.filter(isRun.column), rows: rows.filter(isRun.row) };
console.log(`\n${writtenTable({ ...shown, cell: (fault, peer) => cell(fault, peer) ?? "" })}`);
for (const [key, outcome] of outcomes) {
  const [peer, fault] = key.split(" ");
  const before = documented.cell(fault, peer);
  if (before !== outcome) console.log(`${key}: the page says "${before ?? ""}"`);
}
if (values.write)
  writeFileSync(PAGE, withTable(readFileSync(PAGE, "utf8"), writtenTable({ columns, rows, cell: was })));
process.exitCode = status ?? 1;
