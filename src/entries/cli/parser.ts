/** Reads a command line. */
import { type ParseArgsConfig, parseArgs } from "node:util";
import { type Command, type Option, type OptionValues, UsageError } from "./command.js";

/** The options of every command. */
export const COMMON: Readonly<Record<string, Option>> = {
  url: { type: "string", value: "URL", help: "Redis; else HOLDFAST_URL, else redis://127.0.0.1:6379" },
  prefix: {
    type: "string",
    value: "PREFIX",
    help: "the prefix of all names, as in the option of LockClient",
  },
  cluster: { type: "boolean", help: "the URL is a node of a cluster" },
  sentinel: { type: "string", value: "NAME", help: "the URL is a sentinel, NAME the master that it watches" },
  json: {
    type: "boolean",
    help: "prints JSON for programs: one document, or one in each line if the command goes on",
  },
  help: { type: "boolean", short: "h", help: "this text" },
};

export interface Parsed {
  readonly words: readonly string[];
  readonly rest: readonly string[];
  readonly options: OptionValues;
}

/** Where the first word stands that is no option of every command, nor the value of one. */
function firstWordAt(argv: readonly string[]): number {
  let at = 0;
  for (;;) {
    const [, name = "", value] = /^--(\w+)(=.*)?$/s.exec(argv[at] ?? "") ?? [];
    const option = Object.hasOwn(COMMON, name) ? COMMON[name] : undefined;
    if (!option) return at;
    at += option.type === "string" && value === undefined ? 2 : 1;
  }
}

/** The first word that is no option of every command; undefined if there is none. */
export function firstWord(argv: readonly string[]): string | undefined {
  return argv[firstWordAt(argv)];
}

/** Puts the command first: options of every command may stand before it. */
export function commandFirst(argv: readonly string[]): readonly string[] {
  const at = firstWordAt(argv);
  const command = argv[at];
  if (command === undefined) return argv.includes("--help") ? ["--help"] : argv;
  return [command, ...argv.slice(0, at), ...argv.slice(at + 1)];
}

/** A URL is not repeated, since it may have a password. */
function inWords(word: string | undefined): string {
  return word?.includes("://") ? "a URL" : JSON.stringify(word);
}

/** @throws UsageError */
export function parse({ name, options, words, takesCommand }: Command, argv: readonly string[]): Parsed {
  const known = { ...COMMON, ...options };
  const end = argv.indexOf("--");
  const [own, behind] = end < 0 ? [argv, []] : [argv.slice(0, end), argv.slice(end + 1)];
  const { values, positionals } = read(own, known);
  // If the command takes no other command, the words after `--` are words as the others, which may begin with a dash.
  const [all, rest] = takesCommand ? [positionals, behind] : [[...positionals, ...behind], []];
  for (const [option, { oneOf }] of Object.entries(known)) {
    const value = values[option];
    if (typeof value === "string" && oneOf && !oneOf.includes(value))
      throw new UsageError(`--${option} must be ${oneOf.join(", ")}, not ${JSON.stringify(value)}`);
  }
  const isHelp = values.help === true;
  if (!isHelp && all.length < words.least) throw new UsageError(`${name}: an argument is missing`);
  // What has to stand behind -- was typed before it.
  const forgot = takesCommand && end < 0 ? " (did you forget --?)" : "";
  if (all.length > words.most)
    throw new UsageError(`${name}: ${inWords(all[words.most])} is unexpected${forgot}`);
  if (!isHelp && takesCommand && rest.length === 0)
    throw new UsageError(`${name}: a command is missing after --`);
  return { words: all, rest, options: values };
}

function read(
  args: readonly string[],
  known: Readonly<Record<string, Option>>,
): { values: OptionValues; positionals: string[] } {
  const options: NonNullable<ParseArgsConfig["options"]> = {};
  for (const [name, { type, short }] of Object.entries(known))
    options[name] = short ? { type, short } : { type };
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    });
    return { values: values as OptionValues, positionals };
  } catch (error) {
    const [line = ""] = (error as Error).message.split(". ");
    throw new UsageError(line);
  }
}
