/**
 * Module hooks that change the text of the built package while it is loaded: the real library with one mistake in it.
 * Each edit has to fit exactly once in its script, so that a change of the library cannot make a
 * mutant harmless without anybody noticing.
 *
 * @typedef {object} Edit
 * @property {string} [script] the one to edit; else the code around all of them
 * @property {string} from without the indentation that the build takes off
 * @property {string} to
 */
import { createHash } from "node:crypto";

const PACKAGE = "/dist/index.js";
/** A script's text, as the build leaves it, and its hashes, by which the server knows it: as it is, and behind a first line. */
const EDITION =
  /text: `([^`]*)`,(\s*)sha1: "[0-9a-f]{40}"(?:(,\s*flagged: \{\s*shebang: )("[^"]*")(,\s*sha1: )"[0-9a-f]{40}")?/g;

const hashOf = (text) => JSON.stringify(createHash("sha1").update(text).digest("hex"));

/** @type {Edit[]} */
let edits = [];

/** @param {Edit[]} data */
export function initialize(data) {
  edits = data;
}

export async function load(url, context, nextLoad) {
  const loaded = await nextLoad(url, context);
  if (!url.endsWith(PACKAGE)) return loaded;
  return { ...loaded, source: edits.reduce(apply, String(loaded.source)) };
}

/**
 * @param {string} source
 * @param {Edit} edit
 */
function apply(source, edit) {
  if (edit.script === undefined) return replaced(source, edit);
  const start = source.indexOf(`name: "${edit.script}"`);
  if (start < 0) throw new Error(`there is no script ${edit.script} any more`);
  const next = source.indexOf("defineScript(", start);
  const end = next < 0 ? source.length : next;
  let editions = 0;
  const mutated = source.slice(start, end).replace(EDITION, (_, text, space, flagged, shebang, hash) => {
    editions++;
    const wrong = replaced(text, edit);
    if (wrong.includes("\\")) throw new Error(`script ${edit.script} has escapes, and so another hash`);
    const edition = `text: \`${wrong}\`,${space}sha1: ${hashOf(wrong)}`;
    if (!flagged) return edition;
    return edition + flagged + shebang + hash + hashOf(JSON.parse(shebang) + wrong);
  });
  if (editions === 0) throw new Error(`script ${edit.script} does not look as it used to`);
  return source.slice(0, start) + mutated + source.slice(end);
}

/**
 * @param {string} text
 * @param {Edit} edit
 */
function replaced(text, { script = "the code", from, to }) {
  const parts = text.split(from);
  if (parts.length === 2) return parts.join(to);
  throw new Error(`to mutate ${script}: found ${parts.length - 1} times, not once: ${from}`);
}
