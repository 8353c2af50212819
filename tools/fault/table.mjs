// The table of docs/faults.md, as data: what injects each fault. Its types, and what it exports, are told in table.d.mts.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const PAGE = fileURLToPath(new URL("../../docs/faults.md", import.meta.url));

export function faultRows(text = readFileSync(PAGE, "utf8")) {
  return [...text.matchAll(/^\| *(F\d+) *\|(.*)\|$/gm)].map(([, id = "", rest = ""]) => {
    const [fault = "", holder = "", waiters = "", tests = "", command = "", since = ""] = rest
      .split("|")
      .map((cell) => cell.trim());
    const named = [...tests.matchAll(/`(test\/[^`]+)`: ([^;]+)/g)];
    const all = named.map(([, file = "", title = ""]) => ({ file, title: title.trim() }));
    return { id, fault, holder, waiters, tests: all, command, since };
  });
}

export function patternOf({ title }) {
  const parts = title.split("…").map((part) => part.trim().replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return parts.join(".*");
}
