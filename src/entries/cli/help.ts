/** The text of `--help`, made of the table of commands. */
import type { Command, Option } from "./command.js";
import { COMMON } from "./parser.js";

export function helpOf(commands: readonly Command[]): string {
  const wide = Math.max(...commands.map(({ name, usage }) => `${name} ${usage}`.length));
  return [
    "holdfast: shows who holds which lock, and gives locks to shell scripts",
    "",
    "  holdfast <command> [options]",
    "",
    ...commands.map(({ name, usage, summary }) => `  ${`${name} ${usage}`.padEnd(wide)}  ${summary}`),
    "",
    "Options of every command:",
    ...optionTable(COMMON),
    "",
    "Exit codes: 0 done, 1 a finding or a free lock, 64 wrong arguments, 69 Redis cannot be reached, 70 anything else;",
    "for `run` also 75 others hold the lock, 76 the lock was lost, else the code of its command.",
  ].join("\n");
}

export function helpOfCommand({ name, usage, summary, details = [], options = {} }: Command): string {
  return [
    `holdfast ${name} ${usage}`.trimEnd(),
    "",
    `  ${summary}`,
    ...details.map((line) => `  ${line}`),
    "",
    "Options:",
    ...optionTable({ ...options, ...COMMON }),
  ].join("\n");
}

function optionTable(options: Readonly<Record<string, Option>>): string[] {
  const rows = Object.entries(options).map(([name, { short, value, help, oneOf }]) => {
    const shown = `${short ? `-${short}, ` : ""}--${name}${value ? ` ${value}` : ""}`;
    return [shown, oneOf ? `${help}: ${oneOf.join(", ")}` : help] as const;
  });
  const wide = Math.max(...rows.map(([shown]) => shown.length));
  return rows.map(([shown, help]) => `  ${shown.padEnd(wide)}  ${help}`);
}
