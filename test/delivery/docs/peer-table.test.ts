/**
 * The table of docs/faults.md that compares holdfast with its peers: nothing is missing, and each row names what
 * it can be run by.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { peerTable } from "../../../tools/fault/peer-table.mjs";
import { FAULTS } from "../../faults/peers/faults.js";
import { PEERS } from "../../faults/peers/peers.js";
import { ROOT } from "./pages.js";

const PAGE = readFileSync(join(ROOT, "docs/faults.md"), "utf8");

/** The cells that are missing in the table of a page, and those for which nothing can be run. */
function wrongWith(page: string): string[] {
  const { columns, rows, cell } = peerTable(page);
  const missing = FAULTS.flatMap(({ id }) =>
    PEERS.filter((peer) => !cell(id, peer.id) || cell(id, peer.id)?.startsWith("not run")).map(
      (peer) => `no outcome: ${peer.id} ${id}`,
    ),
  );
  const isPeer = (id: string): boolean => PEERS.some((peer) => peer.id === id);
  const isFault = (row: { id: string; fault: string }): boolean =>
    FAULTS.some(({ id, fault }) => id === row.id && fault === row.fault);
  return [
    ...missing,
    ...columns.filter(({ id, version }) => !isPeer(id) || version === "").map(({ id }) => `column ${id}`),
    ...rows.filter((row) => !isFault(row)).map(({ id }) => `row ${id}`),
  ];
}

test("each peer has met each fault, and each row names a fault that can be run", () => {
  expect(wrongWith(PAGE)).toEqual([]);
});
