/** Finds the command, connects if the command asks for it, and tells what went wrong. */
import { constants } from "node:os";
import manifest from "../../../package.json" with { type: "json" };
import { isLockError, LockClient } from "../../index.js";
import { type Command, EXIT, type Task, UsageError } from "./command.js";
import { deadlocks } from "./deadlocks.js";
import { doctor } from "./doctor/doctor.js";
import { get, unlock, watch } from "./get.js";
import { helpOf, helpOfCommand } from "./help.js";
import { ls, waiters } from "./ls.js";
import { commandFirst, firstWord, type Parsed, parse } from "./parser.js";
import { run } from "./run.js";
import { inspector } from "./serve.js";
import { addressOf, openServer, type Server } from "./server.js";
import { type Streams, Terminal } from "./terminal.js";

const COMMANDS: readonly Command[] = [ls, get, watch, waiters, unlock, run, doctor, deadlocks, inspector];

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** They would end this process alone, and leave a command of its own running without its lock. */
const OF_COMMAND = ["SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGABRT"] as const;
const LOCAL = "redis://127.0.0.1:6379";

export interface Program extends Streams {
  readonly env: NodeJS.ProcessEnv;
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
}

/** A URL is not repeated, since it may have a password. */
function whyNoCommand(word = ""): string {
  if (word.startsWith("-")) return "a command is missing";
  if (word.includes("://")) return "a URL is no command: give it as --url";
  return `there is no command ${JSON.stringify(word)}`;
}

/** True if the reader of a pipe has left, which is no fault of this program. */
export function isPipeLeft(error: NodeJS.ErrnoException): boolean {
  return error.code === "EPIPE";
}

/** Resolves with the exit code. */
export async function main(argv: readonly string[], program: Program): Promise<number> {
  const [first = "--help", ...args] = commandFirst(argv);
  const ending = new AbortController();
  // The reader of a pipe may leave before its end, as `head` does.
  program.stdout.on("error", (error) =>
    ending.abort(isPipeLeft(error) ? endedBy("SIGPIPE") : new Ended(EXIT.failed)),
  );
  program.stderr.on("error", () => {});
  // This terminal only tells what goes wrong, which is no JSON in any case.
  const terminal = new Terminal(program, false, program.env);
  const write = (text: string, code: number = EXIT.ok) => {
    program.stdout.write(`${text}\n`);
    return code;
  };
  if (first === "--version" || first === "-V") return write(manifest.version);
  const asked = first === "help" ? firstWord(args) : first;
  if (first === "--help" || first === "-h" || asked === undefined) return write(helpOf(COMMANDS));
  const command = COMMANDS.find(({ name }) => name === asked);
  if (!command) {
    terminal.tell(`${whyNoCommand(asked)}; "holdfast help" names them`);
    return EXIT.usage;
  }
  try {
    const parsed = parse(command, first === "help" ? ["--help"] : args);
    if (parsed.options.help === true) return write(helpOfCommand(command));
    return await carryOut(
      command,
      parsed,
      new Terminal(program, parsed.options.json === true, program.env),
      program,
      ending,
    );
  } catch (error) {
    return failed(error, command, terminal);
  }
}

function failed(error: unknown, { name }: Command, terminal: Terminal): number {
  if (error instanceof Ended) return error.code;
  const { message } = error as Error;
  if (error instanceof UsageError || error instanceof RangeError || error instanceof TypeError) {
    terminal.tell(`${message}; see "holdfast ${name} --help"`);
    return EXIT.usage;
  }
  terminal.tell(message);
  return EXIT.failed;
}

/** The command was ended from outside, and has no more to say. */
class Ended extends Error {
  readonly code: number;

  constructor(code: number) {
    super(`ended with ${code}`);
    this.code = code;
  }
}

/** With the exit code that a shell has for the signal. */
function endedBy(signal: NodeJS.Signals): Ended {
  return new Ended(128 + constants.signals[signal]);
}

async function carryOut(
  command: Command,
  parsed: Parsed,
  terminal: Terminal,
  program: Program,
  ending: AbortController,
): Promise<number> {
  const { options, words, rest } = parsed;
  const onEach = (names: readonly NodeJS.Signals[], listener: (name: NodeJS.Signals) => void) => {
    for (const name of names) program.on(name, listener);
  };
  onEach(ENDING, (name) => ending.abort(endedBy(name)));
  const onSignal: Task["onSignal"] = (listener) => onEach([...ENDING, ...OF_COMMAND], listener);
  const opened: { readonly client: LockClient; readonly server: Server }[] = [];
  const url = String(options.url ?? (program.env.HOLDFAST_URL || LOCAL));
  const reasonOf: Task["reasonOf"] = (error) => {
    if (!isLockError(error, "UNAVAILABLE")) return error.message;
    const { message, code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    return [`no usable answer from Redis at ${addressOf(url)}`, message || code].filter(Boolean).join(": ");
  };
  const connect: Task["connect"] = (own) => {
    const [known] = opened;
    if (known) return known;
    const sentinelName = typeof options.sentinel === "string" ? options.sentinel : undefined;
    const server = openServer({ url, isCluster: options.cluster === true, sentinelName });
    // The calls that fail have it as their cause.
    server.on("error", () => {});
    const prefix = typeof options.prefix === "string" ? { prefix: options.prefix } : {};
    const client = new LockClient(server, { ...prefix, ...own });
    client.on("error", () => {});
    opened.push({ client, server });
    return { client, server };
  };
  const { signal } = ending;
  try {
    const acted = command.act({ words, rest, options, terminal, connect, reasonOf, signal, onSignal });
    // What runs a command of its own hears of signals itself, so that it does not give the lock back before that has ended.
    return await (command.takesCommand ? acted : Promise.race([acted, aborted(signal)]));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (!isLockError(error, "UNAVAILABLE")) throw error;
    terminal.tell(reasonOf(error));
    return EXIT.unavailable;
  } finally {
    for (const { client, server } of opened) {
      await client.close({ timeout: 0 });
      server.disconnect();
    }
  }
}

/** Rejects when it is aborted. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal.reason as Error);
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}
