/**
 * Makes JavaScript functions of scripts. The interpreter of the server in memory runs ten thousand scripts a second,
 * and two million histories are some hundred million of them. This file knows the part of Lua that the scripts are
 * written in, and refuses all else. `commands.test.ts` runs both on the same calls.
 */
import luaparse, { type LuaNode } from "luaparse";
import { formatNumber, strtod } from "../../../src/entries/testing/numbers.js";
import { type Reply, ReplyError, Status } from "../../../src/entries/testing/reply.js";

type Value = undefined | boolean | number | string | Table;
export type Call = (command: readonly string[]) => Reply;
export type Run = (keys: readonly string[], args: readonly string[], call: Call) => Reply;

/** A Lua table: a list from 1 on, and fields. */
class Table {
  readonly list: Value[];
  readonly fields: Map<Value, Value> = new Map();

  constructor(list: Value[] = []) {
    this.list = list;
  }

  get(key: Value): Value {
    return typeof key === "number" ? this.list[key - 1] : this.fields.get(key);
  }

  set(key: Value, value: Value): void {
    if (typeof key !== "number") this.fields.set(key, value);
    else if (key >= 1 && key <= this.list.length + 1) this.list[key - 1] = value;
    else throw new Error(`a list of ${this.list.length} gets an item ${key}`);
  }
}

/** An error of `redis.call`, or of the script. */
class Raised extends Error {}

const CLASSES: Readonly<Record<string, string>> = { d: "\\d", x: "[0-9a-fA-F]", S: "\\S" };

const patterns = new Map<Value, RegExp>();

/** A pattern of Lua as a regular expression; of the sets it knows none. */
function patternOf(pattern: Value): RegExp {
  const known = patterns.get(pattern);
  if (known) return known;
  const source = text(pattern).replace(/%(.)|([[{|\\])|-/g, (_all, escaped, special) => {
    if (escaped) return CLASSES[escaped] ?? `\\${escaped}`;
    return special ? `\\${special}` : "*?";
  });
  const made = new RegExp(source, "s");
  patterns.set(pattern, made);
  return made;
}

function raise(message: string): never {
  throw new Raised(message);
}

const truthy = (value: Value): boolean => value !== undefined && value !== false;

function tonumber(value: Value): number | undefined {
  if (typeof value === "number") return value;
  const found = typeof value === "string" ? strtod(value) : undefined;
  return found && (value as string).slice(found.length).trim() === "" ? found.value : undefined;
}

const number = (value: Value): number => tonumber(value) ?? raise("attempt to perform arithmetic on a value");

function text(value: Value, digits = 14): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? formatNumber(value, digits) : raise("attempt to concatenate a value");
}

function less(a: Value, b: Value): boolean {
  if (typeof a !== typeof b || (typeof a !== "number" && typeof a !== "string")) raise("attempt to compare");
  return (a as number) < (b as number);
}

/** The remainder has the sign of the divisor. */
const modulo = (a: Value, b: Value): number => ((number(a) % number(b)) + number(b)) % number(b);

function fromReply(reply: Reply): Value {
  if (reply === null) return false;
  if (typeof reply === "bigint") return Number(reply);
  if (typeof reply !== "object") return reply;
  const table = new Table(Array.isArray(reply) ? reply.map(fromReply) : []);
  if (reply instanceof Status) table.fields.set("ok", reply.text);
  if (reply instanceof ReplyError) table.fields.set("err", reply.message);
  return table;
}

function toReply(value: Value): Reply {
  if (typeof value === "number") return BigInt(Math.trunc(value));
  if (typeof value !== "object") return truthy(value) ? (value === true ? 1n : (value as string)) : null;
  const failure = value.fields.get("err");
  if (failure !== undefined) throw new ReplyError(String(failure));
  const end = value.list.indexOf(undefined);
  return (end < 0 ? value.list : value.list.slice(0, end)).map(toReply);
}

/** Of the running script; scripts do not run within each other. */
let call: Call;

function redis(raises: boolean, words: Value[]): Value {
  for (let i = 0; i < words.length; i++) words[i] = text(words[i], 17);
  try {
    return fromReply(call(words as string[]));
  } catch (error) {
    if (!(error instanceof ReplyError)) throw error;
    return raises ? raise(error.message) : fromReply(error);
  }
}

function find(subject: Value, pattern: Value, from: Value, isPlain: Value): Value[] {
  const found = truthy(isPlain) ? undefined : patternOf(pattern).exec(text(subject));
  const at = truthy(isPlain) ? text(subject).indexOf(text(pattern), number(from) - 1) : (found?.index ?? -1);
  return at < 0 ? [undefined] : [at + 1, at + (found?.[0] ?? text(pattern)).length];
}

function match(subject: Value, pattern: Value): Value[] {
  const [all, ...captured] = patternOf(pattern).exec(text(subject)) ?? [];
  return captured.length > 0 ? captured : [all];
}

function pcall(run: () => Value[]): Value[] {
  try {
    return [true, ...run()];
  } catch (error) {
    if (!(error instanceof Raised)) throw error;
    return [false, error.message];
  }
}

/** What the code calls: these return one value, the others any number. Names of tables' fields have a `_`. */
const ONE = {
  tonumber,
  redis_call: (...words: Value[]) => redis(true, words),
  redis_pcall: (...words: Value[]) => redis(false, words),
  math_max: (...values: Value[]) => Math.max(...values.map(number)),
  math_min: (...values: Value[]) => Math.min(...values.map(number)),
  math_floor: (value: Value) => Math.floor(number(value)),
  string_format: (layout: Value, value: Value) =>
    layout === "%.0f" ? number(value).toFixed(0) : raise("no format"),
  table_concat: (list: Table, between: Value) => list.list.map((each) => text(each)).join(text(between)),
  type: (value: Value) => (typeof value === "object" ? "table" : value === undefined ? "nil" : typeof value),
};
const MANY = {
  pcall,
  string_find: find,
  string_match: match,
  string_gmatch: (subject: Value, pattern: Value) => [
    new Table(Array.from(text(subject).matchAll(new RegExp(patternOf(pattern), "g")), ([all]) => all)),
  ],
  unpack: (table: Table) => table.list,
  ipairs: (table: Table) => [table],
  error: (message: Value) => raise(text(message)),
};
const RUNTIME = { Table, truthy, number, text, less, modulo, ...ONE, ...MANY };

const arithmetic = (operator: string) => (a: string, b: string) => `(number(${a}) ${operator} number(${b}))`;
const JOINS: Readonly<Record<string, (a: string, b: string) => string>> = {
  "+": arithmetic("+"),
  "-": arithmetic("-"),
  "*": arithmetic("*"),
  "/": arithmetic("/"),
  "^": arithmetic("**"),
  "%": (a, b) => `modulo(${a}, ${b})`,
  "==": (a, b) => `(${a} === ${b})`,
  "~=": (a, b) => `(${a} !== ${b})`,
  "<": (a, b) => `less(${a}, ${b})`,
  ">": (a, b) => `less(${b}, ${a})`,
  "<=": (a, b) => `!less(${b}, ${a})`,
  ">=": (a, b) => `!less(${a}, ${b})`,
  "..": (a, b) => `(text(${a}) + text(${b}))`,
  and: (a, b) => `(truthy($ = ${a}) ? ${b} : $)`,
  or: (a, b) => `(truthy($ = ${a}) ? $ : ${b})`,
};

class Translation {
  #names = 0;
  /** Names in Lua, and in JavaScript, where a name is declared once. */
  #scope = new Map<string, string>();

  /** Code of statements, behind code that `first` makes, in a scope of their own. */
  block(statements: readonly LuaNode[], first = () => ""): string {
    const outer = this.#scope;
    this.#scope = new Map(outer);
    const code = `{ ${first()} ${statements.map((each) => this.#make(each)).join("\n")} }`;
    this.#scope = outer;
    return code;
  }

  declare(name: string): string {
    const unique = `${name}_${++this.#names}`;
    this.#scope.set(name, unique);
    return unique;
  }

  /** Code of a statement, or of one value. */
  #make(node: LuaNode): string {
    const make = this.#makers[node.type];
    if (!make) throw new Error(`nobody knows ${node.type}`);
    return make(node);
  }

  #all(nodes: readonly LuaNode[]): string[] {
    return nodes.map((each) => this.#make(each));
  }

  readonly #makers: Readonly<Record<string, (node: LuaNode) => string>> = {
    LocalStatement: ({ variables, init }) => {
      const values = variables.length === init.length ? this.#all(init) : undefined;
      const all = values ?? (init.length === 0 ? "[]" : this.#many(init));
      const names = variables.map(({ name }: LuaNode) => this.declare(name));
      if (!values) return `let [${names}] = ${all};`;
      return `let ${names.map((name: string, i: number) => `${name} = ${values[i]}`)};`;
    },
    AssignmentStatement: ({ variables: [target, ...more], init }) => {
      if (more.length === 0) return this.#set(target, this.#make(init[0]));
      const sets = [target, ...more].map((each: LuaNode, i: number) => this.#set(each, `values[${i}]`));
      return `{ const values = ${this.#many(init)}; ${sets.join(" ")} }`;
    },
    CallStatement: ({ expression }) => `${this.#call(expression)};`,
    ReturnStatement: ({ arguments: values }) => `return ${this.#many(values)};`,
    BreakStatement: () => "break;",
    FunctionDeclaration: ({ identifier, parameters, body }) => {
      const name = identifier && this.declare(identifier.name);
      let names = "";
      const code = this.block([...body, { type: "ReturnStatement", arguments: [] }], () => {
        names = parameters
          .map((each: LuaNode) => (each.name ? this.declare(each.name) : "...rest"))
          .join(", ");
        return "";
      });
      return name ? `let ${name} = (${names}) => ${code};` : `(${names}) => ${code}`;
    },
    IfStatement: ({ clauses }) => clauses.map((each: LuaNode) => this.#make(each)).join(" else "),
    IfClause: ({ condition, body }) => `if (truthy(${this.#make(condition)})) ${this.block(body)}`,
    ElseifClause: ({ condition, body }) => `if (truthy(${this.#make(condition)})) ${this.block(body)}`,
    ElseClause: ({ body }) => this.block(body),
    DoStatement: ({ body }) => this.block(body),
    WhileStatement: ({ condition, body }) => `while (truthy(${this.#make(condition)})) ${this.block(body)}`,
    ForNumericStatement: ({ variable, start, end, step, body }) => {
      const [i, isDown] = [`i_${++this.#names}`, step?.type === "UnaryExpression"];
      const head = `let ${i} = number(${this.#make(start)}), ${i}_to = number(${this.#make(end)})`;
      const by = step ? `number(${this.#make(step)})` : "1";
      const code = this.block(body, () => `let ${this.declare(variable.name)} = ${i};`);
      return `for (${head}; ${i} ${isDown ? ">=" : "<="} ${i}_to; ${i} += ${by}) ${code}`;
    },
    ForGenericStatement: ({ variables, iterators: [iterator], body }) => {
      const [list, entry] = [`${this.#make(iterator)}.list`, `entry_${++this.#names}`];
      const values = iterator.base.name === "ipairs" ? [`${entry}[0] + 1`, `${entry}[1]`] : [`${entry}[1]`];
      const code = this.block(body, () =>
        variables
          .map(({ name }: LuaNode, i: number) => `let ${this.declare(name)} = ${values[i]};`)
          .join(" "),
      );
      return `for (const ${entry} of ${list}.entries()) ${code}`;
    },
    NilLiteral: () => "undefined",
    NumericLiteral: ({ value }) => `${value}`,
    BooleanLiteral: ({ value }) => `${value}`,
    StringLiteral: ({ raw }) => JSON.stringify(raw.slice(1, -1).replace(/\\(.)/g, "$1")),
    VarargLiteral: () => "rest[0]",
    Identifier: ({ name }) => this.#scope.get(name) ?? raise(`nobody knows ${name}`),
    MemberExpression: ({ base, identifier }) => `${this.#make(base)}.get(${JSON.stringify(identifier.name)})`,
    IndexExpression: ({ base, index }) => `${this.#make(base)}.get(${this.#make(index)})`,
    CallExpression: (node) => (isOpen(node) ? `${this.#call(node)}[0]` : this.#call(node)),
    TableConstructorExpression: ({ fields }) =>
      `new Table(${this.#many(fields.map(({ value }: LuaNode) => value))})`,
    UnaryExpression: ({ operator, argument }) => {
      const value = this.#make(argument);
      if (operator === "not") return `!truthy(${value})`;
      return operator === "-" ? `(-number(${value}))` : `(($ = ${value}).list ?? $).length`;
    },
    BinaryExpression: (node) => this.#join(node),
    LogicalExpression: (node) => this.#join(node),
  };

  #join({ operator, left, right }: LuaNode): string {
    return (JOINS[operator] as (a: string, b: string) => string)(this.#make(left), this.#make(right));
  }

  #set(target: LuaNode, value: string): string {
    if (target.type !== "IndexExpression") return `${this.#make(target)} = ${value};`;
    return `${this.#make(target.base)}.set(${this.#make(target.index)}, ${value});`;
  }

  /** Code of an array: of the last of these, all values. */
  #many(nodes: readonly LuaNode[]): string {
    const last = nodes.at(-1);
    if (!last || !isOpen(last)) return `[${this.#all(nodes)}]`;
    const all = last.type === "VarargLiteral" ? "rest" : this.#call(last);
    return nodes.length === 1 ? all : `[${[...this.#all(nodes.slice(0, -1)), `...${all}`]}]`;
  }

  #call({ base, arguments: args }: LuaNode): string {
    const name = nameOf(base);
    const known =
      this.#scope.get(name) ?? (Object.hasOwn(RUNTIME, name) ? name : raise(`nobody knows ${name}`));
    return `${known}(${args.length > 0 && isOpen(args.at(-1)) ? `...${this.#many(args)}` : this.#all(args)})`;
  }
}

function nameOf(base: LuaNode): string {
  return base.type === "MemberExpression" ? `${base.base.name}_${base.identifier.name}` : base.name;
}

/** Whether this stands for any number of values. */
function isOpen({ type, base }: LuaNode): boolean {
  return type === "VarargLiteral" || (type === "CallExpression" && !Object.hasOwn(ONE, nameOf(base)));
}

/** @throws ReplyError when it runs, as the server does */
export function translate(script: string): Run {
  const { body } = luaparse.parse(script.replace(/^#!.*/, ""), { luaVersion: "5.1" });
  const translation = new Translation();
  const tables = `let $; const [${["KEYS", "ARGV"].map((name) => translation.declare(name))}] = tables;`;
  const code = `return (tables) => { ${tables} ${translation.block(body)} }`;
  const run = new Function(...Object.keys(RUNTIME), code)(...Object.values(RUNTIME)) as (
    tables: readonly Table[],
  ) => readonly Value[] | undefined;
  return (keys, args, caller) => {
    call = caller;
    try {
      return toReply(run([new Table([...keys]), new Table([...args])])?.[0]);
    } catch (error) {
      throw error instanceof Raised ? new ReplyError(error.message) : error;
    }
  };
}
