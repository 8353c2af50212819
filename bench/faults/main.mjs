// `npm run faults:peers` plays the same faults on holdfast and on the libraries next to it. It installs what
// bench/package.json pins, and builds the driver for Redisson where a JDK and Maven are. It prints the table of
// docs/faults.md, and fails if holdfast's own column is not as that page says. What the others do fails nothing.
//
//   npm run faults:peers                            all of them: some ten minutes
//   npm run faults:peers -- lost-take early-release these faults
//   npm run faults:peers -- --peer redlock5         one peer, any number of times
//   npm run faults:peers -- --write                 and takes what was run into docs/faults.md
import { readFileSync, writeFileSync } from "node:fs";
import { register } from "node:module";
import { parseArgs } from "node:util";
import { buildDriver, pinnedVersions } from "../../interop/build.mjs";
import { install } from "../lib/peers.mjs";
import { PAGE, peerTable, withTable, writtenTable } from "./table.mjs";

register("../../test/fleet/typescript.mjs", import.meta.url);
const { FAULTS, outcomeOf } = await import("./faults.ts");
const { PEERS, prepared } = await import("./peers.ts");

const AT_ONCE = 4;
const { values, positionals } = parseArgs({
  options: {
    peer: { type: "string", multiple: true, default: [] },
    write: { type: "boolean", default: false },
  },
  allowPositionals: true,
});

/** Those of the ids, or all if there is none. */
function chosen(list, ids) {
  const unknown = ids.filter((id) => !list.some((each) => each.id === id));
  const there = list.map(({ id }) => id).join(", ");
  if (unknown.length > 0) throw new Error(`there is no ${unknown.join(", ")}; there are ${there}`);
  return ids.length === 0 ? list : list.filter(({ id }) => ids.includes(id));
}

const rows = chosen(FAULTS, positionals);
install();
const redisson = buildDriver(pinnedVersions()[0]);
const columns = chosen(PEERS, values.peer).map((info) => prepared(info, redisson));

const documented = peerTable();
const found = new Map();
let isAsDocumented = true;

async function play(peer, fault) {
  const outcome = peer.missing ? `not run: ${peer.missing}` : await outcomeOf(fault, peer);
  const before = documented.cell(fault.id, peer.id);
  found.set(`${peer.id} ${fault.id}`, outcome);
  console.log(`${peer.id} ${fault.id}: ${outcome}${before === outcome ? "" : `; the page says "${before}"`}`);
  if (peer.id === "holdfast" && before !== outcome) isAsDocumented = false;
}

const cells = columns.flatMap((peer) => rows.map((fault) => [peer, fault]));
async function playAll() {
  for (let next = cells.shift(); next; next = cells.shift()) await play(...next);
}
await Promise.all(Array.from({ length: AT_ONCE }, playAll));

const cell = (fault, peer) => found.get(`${peer} ${fault}`);
console.log(`\n${writtenTable({ rows, columns, cell })}`);
if (values.write) {
  const all = {
    rows: FAULTS,
    columns: PEERS.map((info) => prepared(info, redisson)),
    cell: (fault, peer) => cell(fault, peer) ?? documented.cell(fault, peer) ?? "",
  };
  writeFileSync(PAGE, withTable(readFileSync(PAGE, "utf8"), writtenTable(all)));
}
// Without `process.exit` Node 20 may spin for ever while it cleans up its own handles.
process.exit(isAsDocumented ? 0 : 1);
