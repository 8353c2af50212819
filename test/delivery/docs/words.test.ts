/** One word, one meaning: no declaration has a name that the table of ARCHITECTURE.md has retired. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";
import { ROOT } from "./pages.js";

const MOST_WORDS = 20;
const GENERATED = "generated.ts";
/** Names that a value may have if it is a piece of text. */
const OF_TEXT = new Set(["line", "lines"]);

/** The cells of the table after this heading row, by row. */
function table(page: string, heading: RegExp): string[][] {
  const lines = page.split("\n");
  const start = lines.findIndex((line) => heading.test(line)) + 2;
  const end = lines.findIndex((line, i) => i >= start && !line.startsWith("|"));
  return lines.slice(start, end).map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const page = readFileSync(join(ROOT, "ARCHITECTURE.md"), "utf8");
const retired = new Set(table(page, /^\| not this/).flatMap(([words = ""]) => words.split(", ")));

/** The words of `fairQueueOf` or `next_token`, in lower case. */
function wordsOf(name: string): string[] {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}

/** Names of types, functions, members, parameters, variables and properties, each with its file. */
function declaredIn(file: string, text: string): string[] {
  const names: string[] = [];
  const visit = (node: ts.Node): void => {
    const isOne =
      ts.isClassLike(node) ||
      ts.isInterfaceDeclaration(node) ||
      ts.isTypeAliasDeclaration(node) ||
      ts.isFunctionDeclaration(node) ||
      ts.isClassElement(node) ||
      ts.isTypeElement(node) ||
      ts.isPropertyAssignment(node);
    const isValue = ts.isParameter(node) || ts.isVariableDeclaration(node) || ts.isBindingElement(node);
    const isPattern = isValue && !ts.isIdentifier(node.name);
    const name = (isOne || isValue) && !isPattern ? node.name?.getText() : undefined;
    if (name && !(isValue && OF_TEXT.has(name))) names.push(`${file}: ${name}`);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return names;
}

function filesOf(folder: string, extension: string): [string, string][] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(extension) && !file.endsWith(GENERATED))
    .map((file) => [join(folder, file), readFileSync(join(ROOT, folder, file), "utf8")]);
}

const isRetired = (declared: string): boolean =>
  wordsOf(declared.split(": ")[1] ?? "").some((word) => retired.has(word));

test("the glossary has at most twenty words", () => {
  const words = table(page, /^\| word /);
  expect(words.length).toBeGreaterThan(10);
  expect(words.length).toBeLessThanOrEqual(MOST_WORDS);
});

test("nothing that src declares has a retired name", () => {
  const declared = filesOf("src", ".ts").flatMap(([file, text]) => declaredIn(file, text));
  expect(declared.length).toBeGreaterThan(500);
  expect(declared.filter(isRetired)).toEqual([]);
});

test("no Lua function, key, argument or local has a retired name", () => {
  const declared = filesOf("lua", ".lua").flatMap(([file, text]) =>
    [...text.matchAll(/function (\w+)|^-- {3}(\w+)|local ([\w, ]+) =/gm)].flatMap(([, ...found]) =>
      found.filter(Boolean).map((names) => `${file}: ${names}`),
    ),
  );
  expect(declared.length).toBeGreaterThan(200);
  expect(declared.filter(isRetired)).toEqual([]);
});

test("a retired word is noticed, as a part of a name too", () => {
  const text =
    "class LocalHeir { streakOf(pace: number): void {} } interface Fine { owner: string } const LONG_PATIENCE = { heir: 1 };";
  expect(declaredIn("planted.ts", text).filter(isRetired)).toEqual([
    "planted.ts: LocalHeir",
    "planted.ts: streakOf",
    "planted.ts: pace",
    "planted.ts: LONG_PATIENCE",
    "planted.ts: heir",
  ]);
});
