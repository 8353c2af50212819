/** What a Lua script is to TypeScript: its text, and the keys and arguments that it takes, in the order of its header. */
import { createHash } from "node:crypto";

export type Argument = string | number;

/** What runs a script. */
export interface ScriptCall {
  readonly script: AnyScript;
  readonly keys: readonly string[];
  readonly args: readonly Argument[];
}

/** A script, whatever its keys and arguments. */
export type AnyScript = Script<readonly string[], readonly Argument[]>;

/** The forms of a script's replies. */
export type ReplyForm = "number" | "list" | "number or list";

/** What EVAL and EVALSHA take: the text or its hash, the number of keys, the keys, the arguments. Connections flatten it. */
export type EvalArguments = [text: string, count: number, keys: readonly string[], args: readonly Argument[]];

/** `K`, `A`: the keys and the arguments, of which the last may be any number. */
export class Script<K extends readonly string[], A extends readonly Argument[]> {
  readonly name: string;
  readonly reply: ReplyForm;
  readonly text: string;
  #sha1: string | undefined;

  constructor(name: string, reply: ReplyForm, text: string) {
    this.name = name;
    this.reply = reply;
    this.text = text;
  }

  /** Computed when it is asked for, because a process runs few of the scripts. */
  get sha1(): string {
    this.#sha1 ??= createHash("sha1").update(this.text).digest("hex");
    return this.#sha1;
  }

  with(keys: K, args: A): ScriptCall {
    return { script: this, keys, args };
  }
}

/** Whether a reply has a form that the script's header names: a number may come as text. */
export function isReplyOf({ reply: forms }: AnyScript, reply: unknown): boolean {
  if (Array.isArray(reply)) return forms !== "number";
  if (forms === "list") return false;
  return typeof reply === "string" ? /^-?\d+$/.test(reply) : Number.isInteger(reply);
}

/**
 * The arguments of the EVAL or EVALSHA that runs `text`, the script's text or its hash.
 *
 * Numbers travel as decimal text and Lua hands them on as they came: Lua's own conversion of a number to text turns
 * 2^53−1 into `9.007199254741e+15`. A number that is wrong is refused here, before anything is sent, because a script
 * that fails half-way is not rolled back.
 */
export function evalArguments(text: string, { script, keys, args }: ScriptCall): EvalArguments {
  for (const value of args) {
    if (typeof value !== "string" && !(Number.isSafeInteger(value) && value >= 0))
      throw new RangeError(`${script.name}: a number must be a safe integer of at least 0, not ${value}`);
  }
  return [text, keys.length, keys, args];
}
