/** Tests give the keys and arguments of a script by the names that the header of its Lua file has. */
import { readFileSync } from "node:fs";
import type { AnyScript, Argument, ScriptCall } from "../../src/scripts/script.js";
import { type Entry, type Header, parseHeader } from "../../tools/lua/header.mjs";

/** Of a variadic entry: a list. */
export type Named = Readonly<Record<string, Argument | readonly Argument[]>>;

const headers = new Map<string, Header>();

export function headerOf({ name }: AnyScript): Header {
  const known = headers.get(name);
  if (known) return known;
  // Tests run in the project's root; a bundle of them has no other place.
  const lua = readFileSync(`lua/${name}.lua`, "utf8");
  const header = parseHeader(lua.split("\n"), (line, message) => {
    throw new Error(`${name}:${line}: ${message}`);
  });
  headers.set(name, header);
  return header;
}

/** Takes of all that is given what the script names. @throws for what is missing */
export function callOf(script: AnyScript, all: Named): ScriptCall {
  const listed = (entries: readonly Entry[]) => {
    const missing = entries.find(({ name }) => all[name] === undefined);
    if (missing) throw new Error(`${script.name}: ${missing.name} is missing`);
    const one = entries.filter(({ variadic }) => !variadic).map(({ name }) => all[name] as Argument);
    const lists = entries.filter(({ variadic }) => variadic).map(({ name }) => all[name] as Argument[]);
    // Parallel lists travel interleaved: a1, b1, a2, b2, …
    return [...one, ...(lists[0] ?? []).flatMap((_, row) => lists.map((list) => list[row] as Argument))];
  };
  const { keys, args } = headerOf(script);
  return { script, keys: listed(keys) as string[], args: listed(args) };
}
