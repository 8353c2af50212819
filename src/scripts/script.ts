/**
 * What a Lua script is to TypeScript: its text, and how typed keys and arguments become the flat strings of EVALSHA.
 * Knows nothing of Redis connections; the registry sends what `encode` returns.
 */

import { createHash } from "node:crypto";

export type KeyType = "hash" | "string" | "list" | "zset" | "set" | "channel";

/** `int` is a whole number from 0, `ms` one from 1: PEXPIRE 0 "succeeds" and deletes the key. */
export type ArgumentType = "text" | "int" | "ms";

/** Any number of values: the last key, or all arguments that follow the others. */
type Variadic<T extends string> = `${T}...`;

/** The header of a Lua file: its keys and arguments in their order, and the forms of its replies. */
export interface Header {
  readonly name: string;
  readonly keys: Readonly<Record<string, KeyType | Variadic<KeyType>>>;
  readonly args: Readonly<Record<string, ArgumentType | Variadic<ArgumentType>>>;
  readonly reply: "number" | "list" | "number or list";
  /** The flags of the `#!lua` line, which servers that know it (Redis 7, Valkey) get before the text. */
  readonly flags?: string;
}

type ValueOf<T extends string> =
  T extends Variadic<infer One> ? readonly ValueOf<One>[] : T extends "int" | "ms" ? number : string;

type ValuesOf<E extends Readonly<Record<string, string>>> = keyof E extends never
  ? Record<string, never>
  : { readonly [Name in keyof E]: ValueOf<E[Name]> };

/** A script with the keys and arguments of its header. */
export type ScriptOf<H extends Header> = Script<ValuesOf<H["keys"]>, ValuesOf<H["args"]>>;

export interface ScriptText {
  readonly text: string;
  readonly sha1: string;
}

/** Values by the names of the script's header. */
export type KeyValues = Readonly<Record<string, string | readonly string[]>>;
export type ArgumentValues = Readonly<
  Record<string, string | number | readonly string[] | readonly number[]>
>;

declare const types: unique symbol;

/** A script, whatever its keys and arguments. */
export interface AnyScript extends Header {
  /** For servers that know `#!lua`. */
  readonly modern: ScriptText;
  /** For older servers; the same if there are no flags. */
  readonly legacy: ScriptText;
  /** The header's order, worked out once because `encode` runs at every lock call. */
  readonly layout: Layout;
}

export interface Script<K extends KeyValues, A extends ArgumentValues> extends AnyScript {
  /** Never set: it makes scripts with different keys or arguments different types. */
  readonly [types]?: (keys: K, args: A) => void;
}

interface Layout {
  readonly keys: readonly string[];
  readonly restKey: string | undefined;
  readonly args: readonly Argument[];
  /** Parallel arrays that travel interleaved: a1, b1, a2, b2, … */
  readonly group: readonly Argument[];
}

interface Argument {
  readonly name: string;
  readonly type: ArgumentType;
}

const NONE: readonly string[] = [];

/** What EVAL and EVALSHA take: the text or its hash, the number of keys, the keys, the arguments. */
export type EvalArguments = [text: string, keys: number, ...rest: string[]];

/** Computes the hash when it is asked for, because a process runs few of the scripts. */
class LuaText implements ScriptText {
  readonly text: string;
  #sha1: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  get sha1(): string {
    this.#sha1 ??= createHash("sha1").update(this.text).digest("hex");
    return this.#sha1;
  }
}

export function defineScript<const H extends Header>(header: H, text: string): ScriptOf<H> {
  const legacy = new LuaText(text);
  const modern = header.flags ? new LuaText(`#!lua flags=${header.flags}\n${text}`) : legacy;
  return { ...header, modern, legacy, layout: layoutOf(header) };
}

/** Whether a reply has a form that the script's header names: a number may come as text. */
export function isReplyOf({ reply: forms }: Header, reply: unknown): boolean {
  if (Array.isArray(reply)) return forms !== "number";
  if (forms === "list") return false;
  return typeof reply === "string" ? /^-?\d+$/.test(reply) : Number.isInteger(reply);
}

function layoutOf({ keys, args }: Header): Layout {
  const names = Object.keys(keys);
  const restKey = names.find((name) => keys[name]?.endsWith("..."));
  const entries = Object.entries(args);
  const group = entries.filter(([, type]) => type.endsWith("..."));
  return {
    keys: names.filter((name) => name !== restKey),
    restKey,
    args: entries.slice(0, entries.length - group.length).map(argumentOf),
    group: group.map(argumentOf),
  };
}

function argumentOf([name, type]: [string, string]): Argument {
  return { name, type: type.replace("...", "") as ArgumentType };
}

/**
 * The arguments of the EVAL or EVALSHA that runs `text`, the script's text or its hash. They are a fresh array, with
 * keys and arguments in the order of the script's header.
 *
 * Numbers travel as decimal text and Lua hands them on as they came: Lua's own conversion of a number to text turns
 * 2^53−1 into `9.007199254741e+15`. A number that is wrong is refused here, before anything is sent, because a script
 * that fails half-way is not rolled back. What is no number, and what is missing, the compiler refuses.
 */
export function encode<K extends KeyValues, A extends ArgumentValues>(
  text: string,
  script: Script<K, A>,
  keys: NoInfer<K>,
  args: NoInfer<A>,
): EvalArguments {
  const { layout } = script;
  const rest = layout.restKey === undefined ? NONE : (keys[layout.restKey] as readonly string[]);
  const encoded: EvalArguments = [text, layout.keys.length + rest.length];
  for (const name of layout.keys) encoded.push(keys[name] as string);
  for (const key of rest) encoded.push(key);
  for (const argument of layout.args) encoded.push(encodeArgument(script, argument, args[argument.name]));
  const [first] = layout.group;
  const rows = first ? (args[first.name] as readonly unknown[]).length : 0;
  for (let row = 0; row < rows; row++) {
    for (const argument of layout.group) {
      const column = args[argument.name] as readonly unknown[];
      encoded.push(encodeArgument(script, argument, column[row]));
    }
  }
  return encoded;
}

function encodeArgument(script: AnyScript, { name, type }: Argument, value: unknown): string {
  if (type === "text") return value as string;
  const least = type === "ms" ? 1 : 0;
  if (Number.isSafeInteger(value) && (value as number) >= least) return String(value);
  throw new RangeError(
    `${script.name}: '${name}' must be a safe integer of at least ${least}, not ${String(value)}`,
  );
}
