// The table of docs/faults.md that compares holdfast with its peers, as data.
import { readFileSync } from "node:fs";

export const PAGE = new URL("../../docs/faults.md", import.meta.url);
const OPEN = "<!-- peers -->";
const CLOSE = "<!-- /peers -->";

const cellsOf = (line) =>
  line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());

export function peerTable(text = readFileSync(PAGE, "utf8")) {
  const between = text.slice(text.indexOf(OPEN), text.indexOf(CLOSE));
  const [heading = [], , ...rows] = between
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map(cellsOf);
  const [, ...columns] = heading
    .slice(0, -1)
    .map((cell) => ({ id: cell.split(" ")[0] ?? "", version: cell.split(" ")[1] ?? "" }));
  const byFault = rows.map(([fault = "", ...cells]) => ({
    id: (cells.at(-1) ?? "").replaceAll("`", ""),
    fault,
    cells: cells.slice(0, -1),
  }));
  const cell = (fault, peer) =>
    byFault.find(({ id }) => id === fault)?.cells[columns.findIndex(({ id }) => id === peer)];
  return { columns, rows: byFault, cell };
}

/** What `peerTable` reads, of rows `{ id, fault }`, columns `{ id, version }`, and `cell(fault, peer)`. */
export function writtenTable({ rows, columns, cell }) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const heading = ["", ...columns.map(({ id, version }) => `${id} ${version}`.trim()), "run by"];
  return [
    line(heading),
    line(heading.map(() => "---")),
    ...rows.map(({ id, fault }) =>
      line([fault, ...columns.map((column) => cell(id, column.id)), `\`${id}\``]),
    ),
  ].join("\n");
}

/** The page with this table in the place of its own. */
export function withTable(text, table) {
  const [from, to] = [text.indexOf(OPEN), text.indexOf(CLOSE)];
  if (from < 0 || to < from) throw new Error(`docs/faults.md has no ${OPEN} with its end`);
  return `${text.slice(0, from + OPEN.length)}\n\n${table}\n\n${text.slice(to)}`;
}
