/**
 * The same faults on holdfast and on its peers. Holdfast always runs, and must do what the table of docs/faults.md
 * says. The other peers run by `npm run faults:peers`, which names a file for the outcomes: no outcome of theirs fails
 * a test.
 */
import { writeFileSync } from "node:fs";
import { afterAll, describe, expect, inject, test } from "vitest";
import { peerTable } from "../../../tools/fault/peer-table.mjs";
import { FAULTS, outcomeOf } from "./faults.js";
import { PEERS, prepared } from "./peers.js";

const out = process.env.HOLDFAST_PEERS;
const [newest] = inject("redisson");
const documented = peerTable();
const outcomes = new Map<string, string>();
const columns = (out === undefined ? PEERS.slice(0, 1) : PEERS).map((info) => prepared(info, newest));

afterAll(() => {
  if (out === undefined) return;
  const rows = FAULTS.map(({ id, fault }) => ({ id, fault }));
  const versions = columns.map(({ id, version }) => ({ id, version }));
  writeFileSync(out, JSON.stringify({ columns: versions, rows, outcomes: [...outcomes] }));
});

describe.each(columns.map((peer) => [peer.id, peer] as const))("%s", (_id, peer) => {
  test.concurrent.each(FAULTS.map((fault) => [fault.id, fault] as const))("%s", async (_fault, fault) => {
    const outcome = peer.missing === undefined ? await outcomeOf(fault, peer) : `not run: ${peer.missing}`;
    outcomes.set(`${peer.id} ${fault.id}`, outcome);
    if (peer.id === "holdfast") expect(outcome).toBe(documented.cell(fault.id, "holdfast"));
  });
});
