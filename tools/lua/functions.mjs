// Finds which shared functions a script calls, by itself or through others, and where it defines them. A function is a
// new closure each time its definition is reached. So a call is written out if the function is a single command, or if
// the call is a statement of its own. Any other function stands where only the path that calls it comes by.
import { walk } from "./tree.mjs";

/** @typedef {import("./header.mjs").Fail} Fail */
/** @typedef {{ name: string, include: string, text: string, calls: SharedFunction[], inline?: Inline, block?: Block }} SharedFunction */
/** @typedef {{ parameters: string[], pieces: Pieces, isStatement: boolean }} Inline an expression */
/** @typedef {{ parameters: string[], pieces: Pieces, returns: boolean, locals: string[] }} Block statements */
/** @typedef {(string | number)[]} Pieces text, or the place of a parameter */
/** @typedef {{ range: [number, number], text: string }} Edit */

/** A line that stands for the definition of the shared function that it names. */
export const DEFINITION = "\u0000";

const COMMANDS = ["redis.call", "redis.pcall", "error"];
const SIMPLE = ["Identifier", "StringLiteral", "NumericLiteral"];
/** What a call may be a part of, for an expression to take its place without parentheses. */
const PLAIN = [
  "ReturnStatement",
  "LocalStatement",
  "AssignmentStatement",
  "LogicalExpression",
  "CallExpression",
  "TableValue",
];

/** How to write a function out where it is called: if all it does is one command with its parameters. @returns {Inline | undefined} */
export function inlineOf(declaration, source) {
  const [statement, ...others] = declaration.body;
  const isReturn = statement?.type === "ReturnStatement" && statement.arguments.length === 1;
  const whole = isReturn ? statement.arguments[0] : statement?.expression;
  const call = whole?.type === "UnaryExpression" ? whole.argument : whole;
  const isCommand = call?.type === "CallExpression" && COMMANDS.includes(source.slice(...call.base.range));
  if (others.length > 0 || !isCommand || !call.arguments.every(({ type }) => SIMPLE.includes(type)))
    return undefined;
  const parameters = declaration.parameters.map(nameOf);
  const pieces = piecesOf(source, whole.range, call.arguments, parameters);
  const isClosed = call.arguments.every(
    ({ type, name }) => type !== "Identifier" || parameters.includes(name),
  );
  return isClosed ? { parameters, pieces, isStatement: !isReturn } : undefined;
}

/** How to write out the statements of a function that calls no shared one. @returns {Block | undefined} */
export function blockOf({ parameters: declared, body }, source) {
  const parameters = declared.map(nameOf);
  const nodes = [...walk(body)];
  const assigned = nodes.flatMap((node) => (node.type === "AssignmentStatement" ? node.variables : []));
  const isPlain = body.length > 0 && !nodes.some(({ type }) => type === "FunctionDeclaration");
  if (!isPlain || assigned.some(({ name }) => parameters.includes(name))) return undefined;
  const locals = nodes.flatMap(({ type, variables, variable }) =>
    type === "LocalStatement" || variable ? (variables ?? [variable]).map(nameOf) : [],
  );
  const uses = nodes.filter(({ type }) => type === "Identifier" || type === "VarargLiteral");
  const range = [body[0].range[0], body.at(-1).range[1]];
  const returns = nodes.some(({ type }) => type === "ReturnStatement");
  return { parameters, pieces: piecesOf(source, range, uses, parameters), returns, locals };
}

/** A parameter's name; that of `...` is its sign. */
function nameOf({ type, name }) {
  return type === "VarargLiteral" ? "..." : name;
}

/** @returns {Pieces} the source between these places, cut where a parameter stands */
function piecesOf(source, [from, to], uses, parameters) {
  const pieces = [];
  let at = from;
  for (const use of uses.toSorted((a, b) => a.range[0] - b.range[0])) {
    const index = parameters.indexOf(nameOf(use));
    if (index < 0) continue;
    pieces.push(source.slice(at, use.range[0]), index);
    at = use.range[1];
  }
  return [...pieces, source.slice(at, to)];
}

/** The pieces with these values for the parameters; `...` stands for all that are left. */
function writtenOut({ parameters, pieces }, values) {
  const written = (index) => (parameters[index] === "..." ? values.slice(index).join(", ") : values[index]);
  return pieces.map((piece) => (typeof piece === "number" ? written(piece) : piece)).join("");
}

/** Writes out what can be. @param {Map<string, SharedFunction>} known @returns {{ edits: Edit[], inlined: Set<unknown> }} */
export function inlineCalls(nodes, source, known) {
  const edits = [];
  const inlined = new Set();
  const textOf = ({ range }) => source.slice(...range);
  const visit = (node, parent) => {
    const inline = node.type === "CallExpression" ? known.get(node.base.name)?.inline : undefined;
    if (inline && fits(inline, node, parent)) {
      edits.push({ range: node.range, text: writtenOut(inline, node.arguments.map(textOf)) });
      inlined.add(node.base);
    }
    const whole = wholeCall(node, known);
    if (whole) {
      const { call, block, otherwise } = whole;
      const text = writtenOut(block, call.arguments.map(textOf));
      const scoped = !otherwise && block.locals.length > 0 ? `do\n${text}\nend` : text;
      edits.push({ range: node.range, text: otherwise ? `${text}\nreturn ${textOf(otherwise)}` : scoped });
      inlined.add(call.base);
    }
    for (const child of Object.values(node).flat()) if (typeof child?.type === "string") visit(child, node);
  };
  for (const node of nodes) visit(node, undefined);
  return { edits, inlined };
}

/**
 * Returns the call that a statement consists of, if it can be written out. `f(x)` calls a function that returns
 * nothing. `return f(x) or y` calls one that returns what is true, or nothing.
 */
function wholeCall(node, known) {
  const isReturn = node.type === "ReturnStatement" && node.arguments.length === 1;
  const either = isReturn && node.arguments[0].operator === "or" ? node.arguments[0] : undefined;
  const call = node.type === "CallStatement" ? node.expression : either?.left;
  const callee = call?.type === "CallExpression" ? known.get(call.base.name) : undefined;
  const block = callee && !callee.inline ? callee.block : undefined;
  if (!block || (block.returns && !either)) return undefined;
  const names = [...walk([...call.arguments, ...(either ? [either.right] : [])])].map(({ name }) => name);
  const isVariadic = block.parameters.at(-1) === "...";
  const surplus = call.arguments.length - block.parameters.length;
  const isSafe =
    (surplus === 0 || (isVariadic && surplus > 0)) &&
    call.arguments.every(({ type }) => SIMPLE.includes(type)) &&
    !names.some((name) => block.locals.includes(name) || known.has(name));
  return isSafe ? { call, block, otherwise: either?.right } : undefined;
}

function fits({ parameters, isStatement }, call, parent) {
  const isPlain = isStatement ? parent?.type === "CallStatement" : PLAIN.includes(parent?.type);
  const values = call.arguments;
  return (
    isPlain &&
    parent.base !== call &&
    values.length === parameters.length &&
    values.every(({ type }) => SIMPLE.includes(type))
  );
}

/** The functions that these nodes call by themselves. @returns {SharedFunction[]} */
export function callsIn(nodes, known, inlined) {
  const found = new Set();
  for (const node of walk(nodes)) {
    const called = node.type === "Identifier" && !inlined.has(node) ? known.get(node.name) : undefined;
    if (called) found.add(called);
  }
  return [...found];
}

/** These functions and those that they call, each behind what it calls. @returns {Set<SharedFunction>} */
function withCalled(functions, all = new Set()) {
  for (const each of functions) {
    withCalled(each.calls, all);
    all.add(each);
  }
  return all;
}

/**
 * A line for each function that a script calls, before the first statement that needs it; inside a branch, if only this
 * branch does. Never in a loop, where it would be made in each round.
 * @returns {Edit[]}
 */
export function placeDefinitions(body, known, inlined) {
  /** @type {Map<SharedFunction, { block: object[], index: number }[][]>} from the outermost block to the innermost */
  const sites = new Map();
  const note = (nodes, path) => {
    for (const each of withCalled(callsIn(nodes, known, inlined)))
      sites.set(each, [...(sites.get(each) ?? []), path]);
  };
  const look = (block, outer) => {
    for (const [index, statement] of block.entries()) {
      const path = [...outer, { block, index }];
      if (statement.type !== "IfStatement") note(statement, path);
      else {
        for (const { condition, body: branch } of statement.clauses) {
          if (condition) note(condition, path);
          look(branch, path);
        }
      }
    }
  };
  look(body, []);
  const inOrder = [...withCalled(sites.keys())];
  return inOrder.map((each) => {
    const at = firstCommon(sites.get(each)).range[0];
    return { range: [at, at], text: `\n${DEFINITION}${each.include}/${each.name}\n` };
  });
}

/** The statement before which something stands before all these places, as far inside as possible. */
function firstCommon(paths) {
  let depth = 0;
  const at = (path) => path[depth];
  const isShared = () => paths.every((path) => at(path)?.block === at(paths[0]).block);
  while (paths.every((path) => at(path).index === at(paths[0]).index) && paths[0][depth + 1]) {
    depth++;
    if (isShared()) continue;
    depth--;
    break;
  }
  const { block } = at(paths[0]);
  return block[Math.min(...paths.map((path) => at(path).index))];
}

/** Applies edits that do not overlap; those at one place in their order. @param {Edit[]} edits */
export function edited(source, edits, from = 0, to = source.length) {
  let text = "";
  let at = from;
  for (const edit of [...edits].sort((a, b) => a.range[0] - b.range[0])) {
    text += source.slice(at, edit.range[0]) + edit.text;
    at = edit.range[1];
  }
  return text + source.slice(at, to);
}
