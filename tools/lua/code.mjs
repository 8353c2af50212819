// Checks the Lua code of a script or a shared snippet (against its header), and strips it for sending.
import luaparse from "luaparse";
import { blockOf, callsIn, edited, inlineCalls, inlineOf, placeDefinitions } from "./functions.mjs";
import { GLOBALS } from "./header.mjs";
import { walk } from "./tree.mjs";

/** @typedef {import("./header.mjs").Header} Header */
/** @typedef {import("./header.mjs").Fail} Fail */
/** @typedef {import("./functions.mjs").SharedFunction} SharedFunction */
/** @typedef {{ include: string, functions: SharedFunction[] }} Snippet */

/** @param {string} source @param {Header} header @param {Snippet[]} snippets @param {Fail} fail @returns {string} the code to send */
export function checkScript(source, header, snippets, fail) {
  const chunk = parse(source, fail);
  const { body } = chunk;
  const fixedArgs = header.args.filter(({ variadic }) => !variadic);
  const isVariadic = fixedArgs.length < header.args.length;
  const shared = byName(snippets.flatMap(({ functions }) => functions));
  checkFunctions(body, shared, fail);
  const inputs = [...header.keys, ...fixedArgs];
  const names = [...shared.keys(), ...inputs.map(({ name }) => name), ...(isVariadic ? ["ARGV"] : [])];
  const used = checkVariables(body, names, fail);

  for (const { name, line } of inputs) {
    if (!used.has(name)) fail(line, `'${name}' is declared but never used`);
  }
  if (isVariadic && !used.has("ARGV")) fail(header.args.at(-1).line, "ARGV is variadic but never read");
  for (const [index, { include, functions }] of snippets.entries()) {
    const line = header.includes[index].line;
    if (!functions.some(({ name }) => used.has(name))) fail(line, `nothing of '${include}' is used`);
  }
  if (!returns(body)) fail(chunk.loc.end.line, "the script has no return");
  const { edits, inlined } = inlineCalls(body, source, shared);
  const code = strip(edited(source, [...edits, ...placeDefinitions(body, shared, inlined)]));
  return `${bindings(header)}${code}`;
}

/** @param {string} include @param {string} source @param {Snippet[]} needs @param {Fail} fail @returns {Snippet} */
export function checkSnippet(include, source, needs, fail) {
  const { body } = parse(source, fail);
  for (const { type, isLocal, loc } of body) {
    const isLocalFunction = type === "FunctionDeclaration" && isLocal;
    if (!isLocalFunction) fail(loc.start.line, "a snippet holds local functions only");
  }
  const shared = byName(needs.flatMap(({ functions }) => functions));
  checkFunctions(body, shared, fail);
  checkVariables(body, [...shared.keys()], fail);
  for (const declaration of body) {
    const { name } = declaration.identifier;
    const { edits, inlined } = inlineCalls([declaration], source, shared);
    const text = strip(edited(source, edits, ...declaration.range));
    const calls = callsIn(declaration.body, shared, inlined);
    const inline = inlineOf(declaration, source);
    const callsShared = [...walk(declaration.body)].some((node) => shared.has(node.name));
    const block = callsShared ? undefined : blockOf(declaration, source);
    shared.set(name, { name, include, text, calls, inline, block });
  }
  return { include, functions: [...shared.values()].filter((each) => each.include === include) };
}

/** @param {SharedFunction[]} functions */
function byName(functions) {
  return new Map(functions.map((each) => [each.name, each]));
}

/** Fails at a parameter that is not used, and at a name that hides a shared function. */
function checkFunctions(body, shared, fail) {
  for (const node of walk(body)) {
    const { type, parameters, variables, variable, loc } = node;
    const declared = [...(parameters ?? []), ...(variables ?? []), ...(variable ? [variable] : [])];
    const isAssignment = type === "AssignmentStatement";
    const hiding = isAssignment ? undefined : declared.find(({ name }) => shared.has(name));
    if (hiding) fail(loc.start.line, `'${hiding.name}' would hide the shared function of that name`);
    if (type !== "FunctionDeclaration") continue;
    const used = new Set([...walk(node.body)].map(({ name }) => name));
    const idle = parameters.find(({ type, name }) => type === "Identifier" && !used.has(name));
    if (idle) fail(loc.start.line, `the parameter '${idle.name}' is never used`);
  }
}

/** Parses, and rejects what `strip` would damage: comments beside code, and strings over several lines. */
function parse(source, fail) {
  const lines = source.split("\n");
  let chunk;
  try {
    chunk = luaparse.parse(source, { luaVersion: "5.1", scope: true, locations: true, ranges: true });
  } catch (error) {
    return fail(error.line ?? 1, error.message);
  }
  for (const { raw, loc } of chunk.comments) {
    const { line, column } = loc.start;
    if (/^--\[=*\[/.test(raw)) fail(line, "a block comment; use lines that start with --");
    const code = lines[line - 1].slice(0, column).trim();
    if (code !== "") fail(line, "a trailing comment; give it a line of its own");
  }
  for (const { type, raw, loc } of walk(chunk.body)) {
    const isLong = type === "StringLiteral" && (raw.startsWith("[") || loc.start.line !== loc.end.line);
    if (isLong) fail(loc.start.line, "a multi-line string");
  }
  return chunk;
}

/** The names of the header as locals. A variadic key is bound to all of KEYS; variadic arguments are bound to nothing. */
function bindings({ keys, args }) {
  const values = [
    keys.map(({ name, variadic }, index) => [name, variadic ? "KEYS" : `KEYS[${index + 1}]`]),
    args.flatMap(({ name, variadic }, index) => (variadic ? [] : [[name, `ARGV[${index + 1}]`]])),
  ].filter((bound) => bound.length > 0);
  return values.map((bound) => `local ${columnOf(bound, 0)} = ${columnOf(bound, 1)}\n`).join("");
}

function columnOf(rows, at) {
  return rows.map((row) => row[at]).join(", ");
}

/** Fails at an unknown global; returns the names that are used. */
function checkVariables(body, names, fail) {
  const known = new Set([...GLOBALS, ...names]);
  const used = new Set();
  for (const { type, name, isLocal, loc } of walk(body)) {
    if (type !== "Identifier") continue;
    const isInput = name === "KEYS" || name === "ARGV";
    const mistake = isInput ? `${name}: say the names of the header` : `'${name}' is an unknown global`;
    if (!isLocal && !known.has(name)) fail(loc.start.line, mistake);
    used.add(name);
  }
  return used;
}

/** Whether the body itself returns, not only a function in it. */
function returns(body) {
  const outer = walk(body, (node) => node.type !== "FunctionDeclaration");
  return [...outer].some(({ type }) => type === "ReturnStatement");
}

/** A line that is an `end` alone goes behind the one before it: what is generated is still to be read. */
function strip(source) {
  const lines = source.split("\n").map((line) => line.trim());
  const code = lines.filter((line) => line !== "" && !line.startsWith("--")).join("\n");
  return code.replaceAll(/\n(?=end$)/gm, " ");
}
