/** The mistakes of planted.lua, each of which has to be found. */
import { readFileSync } from "node:fs";
import type { Manner, Mode } from "./history.js";
import type { Edit } from "./lock.js";

export interface Planted {
  readonly name: string;
  readonly manner: Manner;
}

const LIST = readFileSync(new URL("planted.lua", import.meta.url), "utf8");

/** The scripts with these names have something else in this place. */
function editing(scripts: string, from: string, to: string): Edit {
  const edited = new Map<string, string>();
  return (script, text) => {
    if (!scripts.split(" ").includes(script)) return text;
    const known = edited.get(script) ?? text.replaceAll(from, () => to);
    if (known === text) throw new Error(`${script} has no ${from}`);
    edited.set(script, known);
    return known;
  };
}

function parse(section: string): Planted {
  const [head = "", ...lines] = section.trimEnd().split("\n");
  const [name = "", mode, scripts] = head.split(" | ");
  const [from = "", to = ""] = lines.join("\n").split(/\n---\n?/);
  const mistake = scripts === undefined ? { mistake: name } : { edit: editing(scripts, from, to) };
  return { name, manner: { mode: mode as Mode, ...mistake } };
}

export const PLANTED: readonly Planted[] = LIST.split(/^-- /m).slice(1).map(parse);
