/** `holdfast run`: runs a command while a lock is held, as flock(1) for many machines. */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { clearTimeout, LONGEST_TIMER, setTimeout, wallTime } from "../../base/platform.js";
import {
  type Hold,
  isLockError,
  type LockClient,
  type LockFace,
  type LockLostError,
  type LossReason,
} from "../../index.js";
import { type Command, durationOf, EXIT, integerOf, type Task } from "./command.js";
import { holderText } from "./locks.js";

const LONGEST_LABEL = 200;
/** What the keys of a terminal send to all that runs in its foreground. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);
const KINDS = ["lock", "fair", "fenced", "read", "write"] as const;

export const run: Command = {
  name: "run",
  usage: "<name> -- <command> [arguments]",
  summary: "runs a command while it holds a lock, as flock does on one machine",
  details: [
    "Without --wait it tries once. The hold is renewed until the command ends; with --lease it is not, and ends after that time.",
    "If the lock is lost, the command gets SIGTERM, and SIGKILL after --kill-after. Signals are passed on to it.",
    "What it has started itself gets none of them: a shell line should end in exec.",
    "It finds HOLDFAST_LOCK, HOLDFAST_OWNER and, with --kind fenced, HOLDFAST_TOKEN in its environment.",
    "The exit code is that of the command; 75 if others hold the lock, 76 if it was lost.",
  ],
  options: {
    wait: { type: "string", short: "w", value: "TIME", help: "for the lock, such as 10s; 0 by default" },
    lease: { type: "string", short: "l", value: "TIME", help: "after which the hold ends by itself" },
    kind: { type: "string", short: "k", value: "KIND", help: "of the lock", oneOf: KINDS },
    watchdog: {
      type: "string",
      value: "TIME",
      help: "the watchdogTimeout: for so long a machine that dies holds others up; 30s by default",
    },
    "kill-after": {
      type: "string",
      value: "TIME",
      help: "from SIGTERM to SIGKILL when the lock is lost; 10s by default",
    },
    "busy-code": { type: "string", value: "N", help: "the exit code when others hold it, instead of 75" },
  },
  words: { least: 1, most: 1 },
  takesCommand: true,
  act: async (task) => {
    const { words, rest, options, terminal, connect, signal } = task;
    const [name = ""] = words;
    const wait = durationOf(options, "wait") ?? 0;
    const lease = durationOf(options, "lease");
    const killAfter = durationOf(options, "kill-after") ?? 10_000;
    const busy = integerOf(options, "busy-code", [0, 255]) ?? EXIT.busy;
    const watchdogTimeout = durationOf(options, "watchdog");
    const { client } = connect({
      label: `holdfast run ${rest[0]}`.slice(0, LONGEST_LABEL),
      ...(watchdogTimeout === undefined ? {} : { watchdogTimeout }),
    });
    const lock = lockOf(client, name, options.kind);
    let hold: Hold;
    try {
      hold = await lock.lock({ wait, signal, ...(lease === undefined ? {} : { lease }) });
    } catch (error) {
      if (!isLockError(error, "WAIT_TIMEOUT")) throw error;
      const holder = (await client.inspect(name).catch(() => null))?.holders[0];
      terminal.tell(`lock "${name}" is held${holder ? ` by ${holderText(holder, wallTime())}` : ""}`);
      return busy;
    }
    return carryOut(task, hold, killAfter);
  },
};

function lockOf(client: LockClient, name: string, kind: unknown): LockFace<Hold> {
  if (kind === "fair") return client.getFairLock(name);
  if (kind === "fenced") return client.getFencedLock(name);
  if (kind === "read") return client.getReadWriteLock(name).readLock();
  if (kind === "write") return client.getReadWriteLock(name).writeLock();
  return client.getLock(name);
}

/** Runs the command, and gives the lock back. */
async function carryOut(
  { rest, terminal, signals, signal }: Task,
  hold: Hold,
  killAfter: number,
): Promise<number> {
  const { lockName, ownerId } = hold;
  // Without a token it has none, neither that of another lock which this process runs under.
  const token = { HOLDFAST_TOKEN: "token" in hold ? String(hold.token) : undefined };
  const env = { ...process.env, HOLDFAST_LOCK: lockName, HOLDFAST_OWNER: ownerId, ...token };
  const [program = "", ...args] = rest;
  let lost: LossReason | undefined;
  if (signal.aborted) {
    await hold.unlock();
    throw signal.reason;
  }
  let child: ChildProcess;
  // A terminal sends Ctrl-C and Ctrl-\ to the child itself, so they are not sent a second time.
  const passOn = (name: NodeJS.Signals) => {
    if (!(TYPED.has(name) && terminal.isAttended)) child.kill(name);
  };
  // Before the child starts: a signal that came in between would end this process alone.
  const endSignals = signals.take(passOn);
  try {
    child = spawn(program, args, { stdio: "inherit", env });
  } catch (error) {
    // Node throws what the system refuses at once, such as arguments that are too long.
    endSignals();
    await hold.unlock();
    terminal.tell(`${program}: ${(error as Error).message}`);
    return EXIT.cannotRun;
  }
  let killing: ReturnType<typeof setTimeout> | undefined;
  const stop = () => {
    lost = (hold.signal.reason as LockLostError).reason;
    terminal.tell(`lock "${lockName}" was lost (${lost}): the command is stopped`);
    child.kill("SIGTERM");
    killing = setTimeout(() => child.kill("SIGKILL"), Math.min(killAfter, LONGEST_TIMER));
  };
  if (hold.signal.aborted) stop();
  else hold.signal.addEventListener("abort", stop, { once: true });
  const code = await ended(child, program, (line) => terminal.tell(line));
  clearTimeout(killing);
  endSignals();
  hold.signal.removeEventListener("abort", stop);
  if (lost !== undefined) return EXIT.lost;
  try {
    await hold.unlock();
  } catch (error) {
    if (isLockError(error, "LOCK_LOST")) {
      terminal.tell(error.message);
      return EXIT.lost;
    }
    // The work is done, so a failed unlock does no harm: the lease ends by itself.
    terminal.tell(`${(error as Error).message}`);
  }
  return code;
}

/** Resolves with the exit code that a shell would have. */
function ended(child: ChildProcess, program: string, tell: (line: string) => void): Promise<number> {
  return new Promise((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      // A command that has become another user's takes no signal from here: it runs, and the lock is held until it ends.
      if (child.pid !== undefined) return tell(`${program}: ${error.message}`);
      tell(`${program}: ${error.code === "ENOENT" ? "there is no such command" : error.message}`);
      resolve(error.code === "ENOENT" ? EXIT.notFound : EXIT.cannotRun);
    });
    child.once("exit", (code, by) => resolve(code ?? 128 + (by ? constants.signals[by] : 0)));
  });
}
