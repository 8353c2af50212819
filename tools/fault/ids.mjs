// Titles end with ids of what tests show. `[F12]` is a fault of docs/faults.md, `[B42]` a bug of docs/evidence.md,
// `[§2 extend-later]` a sentence of test/contract/sentences.ts. ids.d.mts tells its types and exports.
import { existsSync, readdirSync, readFileSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const textOf = (path) => readFileSync(new URL(path, ROOT), "utf8");
const NO_LONGER = /no longer promised: \S/i;

/** The rows of a page whose first cell is this letter and a number. */
function rowsOf(page, letter) {
  const lines = page.matchAll(new RegExp(`^\\| *(${letter}\\d+) *\\|(.*)\\|$`, "gm"));
  return Array.from(lines, ([, id = "", rest = ""]) => ({
    id,
    cells: rest.split("|").map((cell) => cell.trim()),
    needsTest: !NO_LONGER.test(rest),
  }));
}

const sentencesOf = (text) =>
  Array.from(text.matchAll(/^ {2}"(§[^"]+)":\s*(?:"|')(.*?)(?:"|'),?$/gm), ([, id = "", sentence = ""]) => ({
    id,
    cells: [sentence],
    needsTest: true,
  }));

export const KINDS = {
  fault: { pattern: /F\d+/, rows: () => rowsOf(textOf("docs/faults.md"), "F") },
  bug: { pattern: /B\d+/, rows: () => rowsOf(textOf("docs/evidence.md"), "B") },
  sentence: { pattern: /§\d+ [\w-]+/, rows: () => sentencesOf(textOf("test/contract/sentences.ts")) },
};

/** The ids in titles of a text, so not in comments. */
function idsIn(text, { pattern }) {
  const code = text.replaceAll(/^\s*(\/\/|\/?\*).*$/gm, "");
  return [
    ...new Set(Array.from(code.matchAll(new RegExp(`\\[(${pattern.source})\\]`, "g")), ([, id]) => id)),
  ];
}

function testFiles() {
  return readdirSync(new URL("test", ROOT), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.m?ts$/.test(name) && !/(^|[\\/])node_modules[\\/]/.test(name))
    .map((name) => `test/${name.replaceAll("\\", "/")}`)
    .filter((file) => existsSync(new URL(file, ROOT)));
}

export function usesOf(kind) {
  const uses = new Map();
  for (const file of testFiles())
    for (const id of idsIn(textOf(file), kind)) uses.set(id, [...(uses.get(id) ?? []), file]);
  return uses;
}

export function wrongIds(rows, uses) {
  const known = new Set(rows.map(({ id }) => id));
  return [
    ...rows.filter(({ id, needsTest }) => needsTest && !uses.has(id)).map(({ id }) => `${id}: no test`),
    ...[...uses]
      .filter(([id]) => !known.has(id))
      .map(([id, files]) => `${id}: no row, but ${files.join(", ")}`),
  ];
}
