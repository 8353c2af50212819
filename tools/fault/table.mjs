// The tables of docs/faults.md and docs/evidence.md, as data: what injects each fault, and what shows each bug. Its types, and
// what it exports, are told in table.d.mts.
import { readFileSync } from "node:fs";

const page = (name) => readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");

/** The rows whose first cell is this letter and a number. */
function rowsOf(text, letter) {
  return [...text.matchAll(new RegExp(`^\\| *(${letter}\\d+) *\\|(.*)\\|$`, "gm"))].map(
    ([, id = "", rest = ""]) => ({
      id,
      cells: rest.split("|").map((cell) => cell.trim()),
      tests: [...rest.matchAll(/`(test\/[^`]+)`: ([^;|]+)/g)].map(([, file = "", title = ""]) => ({
        file,
        title: title.trim(),
      })),
    }),
  );
}

export function faultRows(text = page("faults.md")) {
  return rowsOf(text, "F").map(({ id, cells, tests }) => {
    const [fault = "", holder = "", waiters = "", , command = "", since = ""] = cells;
    return { id, fault, holder, waiters, tests, command, since };
  });
}

export function bugRows(text = page("evidence.md")) {
  return rowsOf(text, "B").map(({ id, cells, tests }) => {
    const [harm = "", bug = "", foundBy = "", , mended = ""] = cells;
    return { id, harm, bug, foundBy, tests, mended };
  });
}

export function patternOf({ title }) {
  const parts = title.split("…").map((part) => part.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return parts.join(".*");
}
