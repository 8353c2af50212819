/** Mistakes of test/simulation/planted.lua, planted where the library of a fleet sends its scripts: others are sent instead. */
import { IN_SCRIPTS, scriptOf, withMistake } from "../simulation/planting.js";

/** A script, and what is sent instead. */
export interface Swap {
  readonly sha1: string;
  readonly text: string;
  readonly planted: { readonly sha1: string; readonly text: string };
}

/** The swaps that plant a mistake. */
export function swapsOf(name: string): Swap[] {
  const mistake = IN_SCRIPTS.find((each) => each.name === name);
  if (!mistake) throw new RangeError(`no mistake is called "${name}": see test/simulation/planted.lua`);
  return mistake.scripts
    .map(scriptOf)
    .map(({ sha1, text }) => ({ sha1, text, planted: withMistake(text, mistake.lua) }));
}
