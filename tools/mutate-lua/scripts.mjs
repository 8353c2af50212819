// The texts of the scripts as tools/lua.mjs makes them, when one of the Lua files reads differently.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkScript, checkSnippet } from "../lua/code.mjs";
import { DEFINITION } from "../lua/functions.mjs";
import { parseHeader } from "../lua/header.mjs";

/** What `npm run lua` finds wrong with a file is no concern of this. */
const pass = () => {};

/** More rounds than any loop of a test takes: a mutant that loops for ever would block the server. */
const MOST_ROUNDS = 1_000_000;

/** @typedef {{ text: string, sha1: string }} ScriptText */
/** @typedef {Map<string, ScriptText>} Texts by the names of scripts */

/** All Lua files by name, such as `plain/take`; those of `shared` first, each behind what it includes. @returns {Map<string, string>} */
export function readSources(root) {
  const files = readdirSync(join(root, "lua"), { recursive: true }).map((file) => file.replaceAll("\\", "/"));
  const names = files.filter((file) => file.endsWith(".lua")).map((file) => file.slice(0, -".lua".length));
  const inOrder = [...names.filter(isShared).sort(), ...names.filter((name) => !isShared(name)).sort()];
  return new Map(inOrder.map((name) => [name, readFileSync(join(root, "lua", `${name}.lua`), "utf8")]));
}

export class Scripts {
  /** @type {Map<string, string>} */
  #sources;
  /** @type {Map<string, import("../lua/code.mjs").Snippet>} */
  #snippets = new Map();

  constructor(sources) {
    this.#sources = sources;
    for (const [name, source] of sources)
      if (isShared(name)) this.#snippets.set(name, snippet(name, source, this.#snippets));
  }

  /** The scripts in which a file stands, if it reads `changed`. @returns {Texts} */
  textsWith(file, changed) {
    const affected = new Set([file]);
    const snippets = new Map(this.#snippets);
    const texts = new Map();
    for (const [name, original] of this.#sources) {
      const includes = includesOf(original);
      if (name !== file && !includes.some((include) => affected.has(include))) continue;
      affected.add(name);
      const source = name === file ? changed : original;
      if (isShared(name)) snippets.set(name, snippet(name, source, snippets));
      else texts.set(name, script(source, snippets));
    }
    return texts;
  }
}

function isShared(name) {
  return name.startsWith("shared/");
}

function includesOf(source) {
  return [...source.matchAll(/^-- INCLUDE (.*)$/gm)].map(([, include]) => include);
}

function snippet(name, source, snippets) {
  const needs = includesOf(source).map((include) => snippets.get(include));
  return checkSnippet(name, source, needs, pass);
}

function script(source, snippets) {
  const header = parseHeader(source.split("\n"), pass);
  const included = includesOf(source).map((include) => snippets.get(include));
  const functions = new Map(
    [...snippets.values()].flatMap((each) =>
      each.functions.map(({ include, name, text }) => [`${include}/${name}`, text]),
    ),
  );
  const lines = checkScript(source, header, included, pass).split("\n");
  const body = lines.map((line) => (line.startsWith(DEFINITION) ? functions.get(line.slice(1)) : line));
  return scriptText(bounded(body.join("\n")));
}

function bounded(text) {
  const step = `steps = steps + 1 if steps > ${MOST_ROUNDS} then error('endless') end`;
  return `local steps = 0 ${text.replaceAll(/^(?:while|for) .* do$/gm, `$& ${step}`)}`;
}

function scriptText(text) {
  return { text, sha1: createHash("sha1").update(text).digest("hex") };
}
