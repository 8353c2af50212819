/** Tests give the keys and arguments of a script by the names that the header of its Lua file has. */
import { readFileSync } from "node:fs";
import type { AnyScript, Argument, ScriptCall } from "../../src/scripts/script.js";
import { type Entry, type Header, parseHeader } from "../../tools/lua/header.mjs";

/** Of a variadic entry: a list. */
export type Named = Readonly<Record<string, Argument | readonly Argument[]>>;

const headers = new Map<string, Header>();

export function headerOf({ name }: AnyScript): Header {
  let header = headers.get(name);
  if (!header) {
    // Tests run in the project's root; a bundle of them has no other place.
    const lua = readFileSync(`lua/${name}.lua`, "utf8");
    header = parseHeader(lua.split("\n"), (line, message) => {
      throw new Error(`${name}:${line}: ${message}`);
    });
    headers.set(name, header);
  }
  return header;
}

/** @throws for a name that the header does not have, or that is missing */
export function callOf(script: AnyScript, keys: Named, args: Named): ScriptCall {
  const header = headerOf(script);
  return {
    script,
    keys: listed(header.keys, keys, script) as string[],
    args: listed(header.args, args, script),
  };
}

function listed(entries: readonly Entry[], named: Named, { name: script }: AnyScript): Argument[] {
  const wrong = [
    ...entries.filter(({ name }) => named[name] === undefined).map(({ name }) => `${name} is missing`),
    ...Object.keys(named)
      .filter((name) => !entries.some((entry) => entry.name === name))
      .map((name) => `there is no ${name}`),
  ];
  if (wrong.length > 0) throw new Error(`${script}: ${wrong.join(", ")}`);
  const one = entries.filter(({ variadic }) => !variadic).map(({ name }) => named[name] as Argument);
  const lists = entries.filter(({ variadic }) => variadic).map(({ name }) => named[name] as Argument[]);
  // Parallel lists travel interleaved: a1, b1, a2, b2, …
  return [...one, ...(lists[0] ?? []).flatMap((_, row) => lists.map((list) => list[row] as Argument))];
}
