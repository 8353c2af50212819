// The small changes that are made in a Lua file, one at a time.
import luaparse from "luaparse";

const BINARY = {
  "==": ["~="],
  "~=": ["=="],
  "<": ["<=", ">="],
  "<=": ["<", ">"],
  ">": [">=", "<="],
  ">=": [">", "<"],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  and: ["or"],
  or: ["and"],
};

/** Strings that are neither data nor the name of a command that something else would be missed from. */
const STRINGS = {
  0: ["1", ""],
  1: ["0"],
  PX: ["EX"],
  PEXPIRE: ["EXPIRE", "PERSIST"],
  PTTL: ["TTL"],
  EXISTS: ["TTL"],
  HEXISTS: ["HSTRLEN"],
  HLEN: ["EXISTS"],
  DEL: ["PTTL"],
};

const REMOVED = ["CallStatement", "AssignmentStatement", "ReturnStatement", "BreakStatement"];

/** @typedef {{ id: string, file: string, source: string, title: string }} Mutant `title`: the file, the line before and after */

/** The mutants of all files, or of one (`plain/take`) or of a folder. @param {Map<string, string>} sources @returns {Mutant[]} */
export function mutantsIn(sources, only) {
  const chosen = [...sources].filter(([file]) => !only || file === only || file.startsWith(`${only}/`));
  return chosen.flatMap(([file, source]) =>
    mutantsOf(file, source).map((mutant, index) => ({ ...mutant, id: `${file} ${index}` })),
  );
}

function mutantsOf(file, source) {
  const mutants = new Map();
  const add = ([from, to], text) => {
    const changed = source.slice(0, from) + text + source.slice(to);
    mutants.set(changed, { file, source: changed, title: `${file}: ${describe(source, changed, from)}` });
  };
  const textOf = ({ range }) => source.slice(...range);
  visit(luaparse.parse(source, { ranges: true, luaVersion: "5.1" }).body, (node) => {
    const { type, range } = node;
    if (type === "BinaryExpression" || type === "LogicalExpression") {
      for (const operator of BINARY[node.operator] ?? []) {
        add(range, `${textOf(node.left)} ${operator} ${textOf(node.right)}`);
      }
    }
    if (type === "LogicalExpression") {
      add(range, textOf(node.left));
      add(range, textOf(node.right));
    }
    if (type === "UnaryExpression") add(range, textOf(node.argument));
    if (type === "NumericLiteral") {
      add(range, String(node.value + 1));
      if (node.value > 0) add(range, String(node.value - 1));
    }
    if (type === "StringLiteral") {
      for (const text of STRINGS[node.raw.slice(1, -1)] ?? []) add(range, `'${text}'`);
    }
    if (REMOVED.includes(type)) add(range, "");
    if (type === "ReturnStatement" && node.arguments.length > 0) add(range, "return false");
    if (type === "CallExpression" && textOf(node.base) === "redis.call") add(node.base.range, "redis.pcall");
    if (type === "CallExpression" && textOf(node.base) === "redis.pcall") add(node.base.range, "redis.call");
    if (type === "IfStatement") {
      for (const { condition } of node.clauses.filter((clause) => clause.condition)) {
        add(condition.range, "true");
        add(condition.range, "false");
      }
    }
    // `f(a, b)` -> `f(b, a)`
    const isSymmetric = type === "CallExpression" && /^math\.(max|min)$/.test(textOf(node.base));
    if (type === "CallExpression" && !isSymmetric && node.arguments.length > 1) {
      const [first, second] = node.arguments.slice(-2);
      add([first.range[0], second.range[1]], `${textOf(second)}, ${textOf(first)}`);
    }
  });
  mutants.delete(source);
  return [...mutants.values()].filter((mutant) => compiles(mutant.source));
}

function visit(node, see) {
  if (Array.isArray(node)) {
    for (const child of node) visit(child, see);
  } else if (node !== null && typeof node === "object") {
    if (typeof node.type === "string") see(node);
    for (const [name, child] of Object.entries(node)) if (name !== "range") visit(child, see);
  }
}

function compiles(source) {
  try {
    luaparse.parse(source, { luaVersion: "5.1" });
    return true;
  } catch {
    return false;
  }
}

/** The line that was changed, before and after. */
function describe(before, after, at) {
  const lineOf = (text) => text.split("\n")[before.slice(0, at).split("\n").length - 1]?.trim() ?? "";
  return `${lineOf(before)} -> ${lineOf(after) || "(removed)"}`;
}
