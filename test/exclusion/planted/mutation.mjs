/**
 * Module hooks that change the text of the built package while it is loaded: the real library with one mistake in it.
 * Each edit must match as often as it says in its script, so that a change of the library cannot make a mutant harmless
 * unnoticed.
 *
 * @typedef {object} Edit
 * @property {string} [script] the script to edit; without it, the code around all scripts
 * @property {string} from without the indentation, which the build removes
 * @property {string} to
 * @property {number} [times] how often `from` stands there; default once
 */
const PACKAGE = "/dist/index.js";

/** @type {Edit[]} */
let edits = [];

/** @param {Edit[]} data */
export function initialize(data) {
  edits = data;
}

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!url.endsWith(PACKAGE)) return loaded;
  const source = edits.filter(({ script }) => script === undefined).reduce(replaced, String(loaded.source));
  return { ...loaded, source: source + editing() };
}

/** Code for the end of the package, which edits the scripts after they were put together. */
function editing() {
  const inScripts = edits.filter(({ script }) => script !== undefined);
  const rows = inScripts.map((edit) => `[${constantOf(edit.script)}, ${JSON.stringify(edit)}]`);
  return `
import { createHash as hashOfMutant } from "node:crypto";
const textOfMutant = (text) => ({ text, sha1: hashOfMutant("sha1").update(text).digest("hex") });
const replacedInMutant = ${replaced};
for (const [script, edit] of [${rows.join(", ")}]) {
  if (script.name !== edit.script) throw new Error("another script has the name of " + edit.script);
  const { modern, legacy } = script;
  script.modern = textOfMutant(replacedInMutant(modern.text, edit));
  script.legacy = textOfMutant(replacedInMutant(legacy.text, edit));
}
`;
}

/** The name of a script's constant: `fair/acquire` becomes `fairAcquire`. */
function constantOf(script) {
  return script.replaceAll(/[/-](.)/g, (_, letter) => letter.toUpperCase());
}

/**
 * @param {string} text
 * @param {Edit} edit
 */
function replaced(text, { script = "the code", from, to, times = 1 }) {
  const parts = text.split(from);
  if (parts.length === times + 1) return parts.join(to);
  throw new Error(`to mutate ${script}: found ${parts.length - 1} times, not ${times}: ${from}`);
}
