// Builds src/scripts/generated.ts from lua/<kind>/<verb>.lua and lua/shared/*.lua; with --check it only compares.
// Usage: node tools/lua.mjs [--check] [--root DIR]
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { checkScript, checkSnippet } from "./lua/code.mjs";
import { parseHeader } from "./lua/header.mjs";
import { generate } from "./lua/typescript.mjs";

/** @typedef {import("./lua/typescript.mjs").Script} Script */
/** @typedef {import("./lua/code.mjs").Snippet} Snippet */

const OUTPUT = "src/scripts/generated.ts";
const KEBAB_CASE = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** A mistake in a Lua file, at a line that an editor can jump to. */
class LuaMistake extends Error {}

main();

function main() {
  const { values } = parseArgs({ options: { check: { type: "boolean" }, root: { type: "string" } } });
  const root = values.root ?? join(dirname(fileURLToPath(import.meta.url)), "..");
  const mistakes = [];
  const { scripts, snippets } = readFiles(root, mistakes);
  const generated = generate(scripts, snippets);
  if (values.check && mistakes.length === 0) mistakes.push(...findStale(root, generated));
  for (const mistake of mistakes) console.error(mistake);
  if (mistakes.length > 0) process.exitCode = 1;
  else if (!values.check) write(join(root, OUTPUT), generated);
}

/** Reads and checks every file; one mistake a file is reported. @returns {{ scripts: Script[], snippets: Snippet[] }} */
function readFiles(root, mistakes) {
  const snippets = new Map();
  const scripts = [];
  const attempt = (name, use) => {
    const file = `lua/${name}.lua`;
    const fail = (line, message) => {
      throw new LuaMistake(`${file}:${line}: ${message}`);
    };
    try {
      use(readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n"), fail);
    } catch (error) {
      if (!(error instanceof LuaMistake)) throw error;
      mistakes.push(error.message);
    }
  };
  for (const name of list(root, "shared")) {
    attempt(name, (source, fail) => {
      const includes = source.split("\n").flatMap((text, index) => {
        const [, include] = /^-- INCLUDE (.*)$/.exec(text) ?? [];
        return include ? [{ text: include, line: index + 1 }] : [];
      });
      snippets.set(name, checkSnippet(name, source, findSnippets(includes, snippets, fail), fail));
    });
  }
  for (const name of listKinds(root).flatMap((kind) => list(root, kind))) {
    attempt(name, (source, fail) => scripts.push(readScript(name, source, snippets, fail)));
  }
  return { scripts, snippets: [...snippets.values()] };
}

/** @returns {Script} */
function readScript(name, source, snippets, fail) {
  const isKebabCase = name.split("/").every((part) => KEBAB_CASE.test(part));
  if (!isKebabCase) fail(1, "folder and file names are kebab-case");
  const header = parseHeader(source.split("\n"), fail);
  const included = findSnippets(header.includes, snippets, fail);
  const body = checkScript(source, header, included, fail);
  return { ...header, name, body };
}

/** A snippet may include others, whose names come before its own, so that there are no circles. */
function findSnippets(includes, snippets, fail) {
  return includes.map(({ text, line }, index) => {
    const isRepeated = includes.findIndex((other) => other.text === text) < index;
    if (isRepeated) fail(line, `'${text}' is included twice`);
    return snippets.get(text) ?? fail(line, `lua/${text}.lua does not exist or has a mistake`);
  });
}

function listKinds(root) {
  const entries = existsSync(join(root, "lua"))
    ? readdirSync(join(root, "lua"), { withFileTypes: true })
    : [];
  const kinds = entries.filter((entry) => entry.isDirectory() && entry.name !== "shared");
  return kinds.map(({ name }) => name).sort();
}

function list(root, folder) {
  if (!existsSync(join(root, "lua", folder))) return [];
  const files = readdirSync(join(root, "lua", folder)).filter((file) => file.endsWith(".lua"));
  return files.sort().map((file) => `${folder}/${file.slice(0, -".lua".length)}`);
}

function findStale(root, generated) {
  const file = join(root, OUTPUT);
  const committed = existsSync(file) ? readFileSync(file, "utf8").replaceAll("\r\n", "\n") : "";
  if (committed === generated) return [];
  const expected = generated.split("\n");
  const index = committed.split("\n").findIndex((line, at) => line !== expected[at]);
  return [`${OUTPUT}:${Math.max(index, 0) + 1}: is stale; run \`npm run lua\``];
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
