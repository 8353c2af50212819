/** What a command of `holdfast` is made of: the help and the parser both go by this description. */
import type { LockClient, LockClientOptions } from "../../index.js";
import type { Server } from "./server.js";
import type { Terminal } from "./terminal.js";

export interface Option {
  readonly type: "string" | "boolean";
  readonly short?: string;
  /** What stands for the value in the help, if the option takes a value. */
  readonly value?: string;
  readonly help: string;
  /** The values that are allowed; any if absent. */
  readonly oneOf?: readonly string[];
}

export interface Command {
  readonly name: string;
  /** What follows the name, such as `<name>` or `[pattern]`. */
  readonly usage: string;
  readonly summary: string;
  /** Lines below the summary. */
  readonly details?: readonly string[];
  readonly options?: Readonly<Record<string, Option>>;
  /** How many words the command takes. */
  readonly words: { readonly least: number; readonly most: number };
  /** True if another command follows after `--`. */
  readonly takesCommand?: boolean;
  /** Runs the command; resolves with the exit code. */
  readonly act: (task: Task) => Promise<number>;
}

/** One call of a command. */
export interface Task {
  readonly words: readonly string[];
  /** The words after `--`. */
  readonly rest: readonly string[];
  readonly options: OptionValues;
  readonly terminal: Terminal;
  /** Connects at the first call; later calls get the same connection. */
  readonly connect: (options?: LockClientOptions) => { readonly client: LockClient; readonly server: Server };
  /** Why a call failed, in a line for people: of UNAVAILABLE which Redis it was, and nothing of what a program could do. */
  readonly reasonOf: (error: Error) => string;
  /** Aborted by SIGINT, SIGTERM and SIGHUP, with the exit code as its reason. */
  readonly signal: AbortSignal;
  /** From now on calls back for each signal that would end this process, also for those that nobody else listens to. */
  readonly onSignal: (listener: (signal: NodeJS.Signals) => void) => void;
}

export type OptionValues = Readonly<Record<string, string | boolean | undefined>>;

/** An argument is wrong. */
export class UsageError extends Error {}

/** The exit codes: those of BSD's sysexits.h where one fits. Apart from these, `run` ends with the code of its command. */
export const EXIT = {
  ok: 0,
  /** There is something to say: a lock that is free, a finding, a dead-lock. */
  found: 1,
  usage: 64,
  unavailable: 69,
  failed: 70,
  busy: 75,
  lost: 76,
  cannotRun: 126,
  notFound: 127,
} as const;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Milliseconds of `10s`, `1.5m` or `500ms`. A bare number is refused: it would be seconds to some, milliseconds to others. */
export function durationOf(values: OptionValues, name: string): number | undefined {
  const text = values[name];
  if (typeof text !== "string") return undefined;
  if (text === "0") return 0;
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined)
    throw new UsageError(`--${name} must be a time such as 500ms, 10s or 2m, not ${JSON.stringify(text)}`);
  return Math.round(Number(number) * (UNITS[unit] as number));
}

/** An integer from `least` to `most`. */
export function integerOf(
  values: OptionValues,
  name: string,
  [least, most]: readonly [number, number],
): number | undefined {
  const text = values[name];
  if (typeof text !== "string") return undefined;
  const number = Number(text);
  if (/^\d+$/.test(text) && number >= least && number <= most) return number;
  throw new UsageError(`--${name} must be an integer from ${least} to ${most}, not ${JSON.stringify(text)}`);
}
