// Reads the comment header of one Lua script: prose, KEYS, ARGV, REPLY, INCLUDE. Knows nothing of Lua code.

/** @typedef {(line: number, message: string) => never} Fail */
/** @typedef {{ name: string, type: string, meaning: string, variadic: boolean, line: number }} Entry of KEYS or ARGV */
/** @typedef {{ text: string, line: number }} Line */
/** @typedef {{ prose: string[], keys: Entry[], args: Entry[], replies: string[], reply: string, includes: Line[] }} Header */

const words = (text) => new Set(text.split(" "));

/** Globals that a script may use; a key or an argument must not hide one. */
export const GLOBALS = words(
  "redis tonumber tostring string table math ipairs pairs unpack type next select error pcall",
);
const KEYWORDS = words(
  "and break do else elseif end false for function if in local nil not or repeat return then true until while",
);
const KEY_TYPES = ["hash", "string", "list", "zset", "set", "channel"];
const ARG_TYPES = ["text", "int", "ms"];

const BLOCKS = ["KEYS", "ARGV", "REPLY"];
const ORDER = [...BLOCKS, "INCLUDE"];
const ENTRY_INDENT = 3;

/** @param {string[]} lines @param {Fail} fail @returns {Header} */
export function parseHeader(lines, fail) {
  const sections = collectSections(lines, fail);
  const entriesOf = (section, types) => sections[section].map((line) => parseEntry(line, types, fail));
  const header = {
    prose: sections.prose.map(({ text }) => text),
    keys: entriesOf("KEYS", KEY_TYPES),
    args: entriesOf("ARGV", ARG_TYPES),
    replies: sections.REPLY.map(({ text }) => text),
    reply: replyOf(sections.REPLY, fail),
    includes: sections.INCLUDE,
  };
  if (header.prose.every((text) => text === "")) fail(1, "the header must start with what the script does");
  if (header.keys.length === 0) fail(1, "the header names no key: KEYS is missing or empty");
  if (header.replies.length === 0) fail(1, "the header names no reply: REPLY is missing or empty");
  checkNames([...header.keys, ...header.args], fail);
  checkVariadic(header.keys, fail);
  checkVariadic(header.args, fail);
  if (header.keys.at(-2)?.variadic) fail(header.keys.at(-1).line, "only one variadic key is possible");
  return header;
}

/** @param {string[]} lines @param {Fail} fail @returns {Record<string, Line[]>} */
function collectSections(lines, fail) {
  const sections = { prose: [], KEYS: [], ARGV: [], REPLY: [], INCLUDE: [] };
  let current = "prose";
  for (const [index, source] of lines.entries()) {
    if (!source.startsWith("--")) break;
    const line = index + 1;
    const comment = source.slice(2).trimEnd();
    const text = comment.trimStart();
    const indent = comment.length - text.length;
    const heading = indent < ENTRY_INDENT ? headingOf(text) : undefined;
    const isBlock = BLOCKS.includes(heading ?? current);
    if (heading) {
      const repeated = heading === current && heading !== "INCLUDE";
      if (repeated || ORDER.indexOf(heading) < ORDER.indexOf(current)) {
        fail(line, `${heading} does not belong here; the order is ${ORDER.join(", ")}`);
      }
      current = heading;
      if (!isBlock) sections[heading].push({ text: text.slice(heading.length).trim(), line });
    } else if (current === "prose") {
      sections.prose.push({ text, line });
    } else if (text !== "") {
      if (!isBlock || indent < ENTRY_INDENT) fail(line, `'${text}' belongs to no section`);
      const entries = sections[current];
      if (indent === ENTRY_INDENT) entries.push({ text, line });
      else if (entries.length > 0) entries.at(-1).text += ` ${text}`;
      else fail(line, `the first line of ${current} must be indented by ${ENTRY_INDENT} spaces`);
    }
  }
  return sections;
}

/** KEYS, ARGV and REPLY stand alone on their line, so that prose may begin with one of these words. */
function headingOf(text) {
  const word = text.split(/\s/, 1)[0];
  if (BLOCKS.includes(word)) return text === word ? word : undefined;
  return ORDER.includes(word) ? word : undefined;
}

/** @returns {Entry} */
function parseEntry({ text, line }, types, fail) {
  const [word, type = "", ...meaning] = text.split(/\s+/);
  const variadic = word.endsWith("...");
  const name = variadic ? word.slice(0, -3) : word;
  if (!types.includes(type)) fail(line, `'${name}': unknown type '${type}'; known: ${types.join(", ")}`);
  return { name, type, meaning: meaning.join(" "), variadic, line };
}

/** Whether the replies are numbers, lists, or both. @param {Line[]} replies @param {Fail} fail */
function replyOf(replies, fail) {
  const forms = replies.map(({ text, line }) => {
    if (text.startsWith("{")) return "list";
    return /^(-?\d+|n)\b/.test(text)
      ? "number"
      : fail(line, `'${text}' begins with no number, n or list in braces`);
  });
  return [...new Set(forms)].sort().reverse().join(" or ");
}

function checkNames(entries, fail) {
  const seen = new Set();
  for (const { name, line } of entries) {
    if (!/^[a-z][a-zA-Z0-9]*$/.test(name)) fail(line, `'${name}' is not a camelCase name`);
    if (KEYWORDS.has(name)) fail(line, `'${name}' is a Lua keyword`);
    if (GLOBALS.has(name)) fail(line, `'${name}' would hide the global of that name`);
    if (seen.has(name)) fail(line, `'${name}' is named twice`);
    seen.add(name);
  }
}

function checkVariadic(entries, fail) {
  const first = entries.findIndex(({ variadic }) => variadic);
  const late = first < 0 ? undefined : entries.slice(first).find(({ variadic }) => !variadic);
  if (late) fail(late.line, `'${late.name}' follows a variadic entry, which must come last`);
}
