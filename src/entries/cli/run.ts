/** `holdfast run`: runs a command while a lock is held, as flock(1) for many machines. */
import { type ChildProcess, spawn } from "node:child_process";
import { constants } from "node:os";
import { clearTimeout, LONGEST_TIMER, setTimeout, wallTime } from "../../base/platform.js";
import { type Hold, isLockError, type LockLostError, type LossReason } from "../../index.js";
import type { LockedKind } from "../decorator.js";
import { LOCKS } from "../shared/kinds.js";
import { type Command, durationOf, EXIT, integerOf, type Task } from "./command.js";
import { holderText } from "./locks.js";
import { pause } from "./pause.js";

const LONGEST_LABEL = 200;
/** What the keys of a terminal send to all that runs in its foreground. */
const TYPED: ReadonlySet<NodeJS.Signals> = new Set(["SIGINT", "SIGQUIT"]);
/** Ask a command to end. */
const ENDING: ReadonlySet<NodeJS.Signals> = new Set(["SIGTERM", "SIGINT"]);
/** Milliseconds between two looks at what goes on when the command has ended. */
const LOOK = 20;

export const run: Command = {
  name: "run",
  usage: "<name> -- <command> [arguments]",
  summary: "runs a command while it holds a lock, as flock does on one machine",
  details: [
    "Without --wait it tries once. It renews the hold until the command ends. With --lease the hold ends after that time.",
    "If the lock is lost, the command and all that it has started get SIGTERM, and SIGKILL after --kill-after; at a terminal",
    "the command alone. It passes signals on to the command. What is left when SIGTERM or SIGINT has ended the command gets",
    "SIGTERM, too. The command finds HOLDFAST_LOCK and HOLDFAST_OWNER in its environment, with --kind fenced HOLDFAST_TOKEN.",
    "The exit code is that of the command; 75 if others hold the lock, 76 if the lock was lost.",
  ],
  options: {
    wait: {
      type: "string",
      short: "w",
      value: "TIME",
      help: "how long to wait for the lock, such as 10s; 0 by default",
    },
    lease: { type: "string", short: "l", value: "TIME", help: "the hold ends by itself after this time" },
    kind: {
      type: "string",
      short: "k",
      value: "KIND",
      help: "the kind of the lock",
      oneOf: Object.keys(LOCKS),
    },
    watchdog: {
      type: "string",
      value: "TIME",
      help: "the watchdogTimeout: a machine that dies holds others up that long; 30s by default",
    },
    "kill-after": {
      type: "string",
      value: "TIME",
      help: "the time from SIGTERM to SIGKILL when the lock is lost; 10s by default",
    },
    "busy-code": {
      type: "string",
      value: "N",
      help: "the exit code when others hold the lock, instead of 75",
    },
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
    const lock = LOCKS[(options.kind ?? "lock") as LockedKind](client, name);
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

/** Runs the command, and gives the lock back. */
async function carryOut(
  { rest, terminal, reasonOf, onSignal, signal }: Task,
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
  let child: ChildProcess | undefined;
  // A group of its own has no terminal: none to read from, and none whose keys reach it.
  const detached = !terminal.isAttended && process.platform !== "win32";
  let isAsked = false;
  // Before the child starts: a signal that came in between would end this process alone.
  onSignal((name) => {
    isAsked ||= ENDING.has(name);
    // A terminal sends Ctrl-C and Ctrl-\ to the child itself, so they are not sent a second time.
    if (!(TYPED.has(name) && terminal.isAttended)) child?.kill(name);
  });
  try {
    child = spawn(program, args, { stdio: "inherit", env, detached });
  } catch (error) {
    // Node throws what the system refuses at once, such as arguments that are too long.
    await hold.unlock();
    terminal.tell(`${program}: ${(error as Error).message}`);
    return EXIT.cannotRun;
  }
  const toAll = (name: NodeJS.Signals | 0) =>
    (detached && child?.pid !== undefined && signalTo(-child.pid, name)) || (name !== 0 && child?.kill(name));
  let killing: ReturnType<typeof setTimeout> | undefined;
  let isKilled = false;
  const endAll = () => {
    toAll("SIGTERM");
    const kill = () => {
      isKilled = true;
      toAll("SIGKILL");
    };
    killing = setTimeout(kill, Math.min(killAfter, LONGEST_TIMER));
  };
  const stop = () => {
    lost = (hold.signal.reason as LockLostError).reason;
    terminal.tell(`lock "${lockName}" was lost (${lost}): stopping the command`);
    endAll();
  };
  if (hold.signal.aborted) stop();
  else hold.signal.addEventListener("abort", stop, { once: true });
  const code = await ended(child, program, (line) => terminal.tell(line));
  // The shell of a pipeline may end before the pipeline does.
  if (isAsked && lost === undefined) endAll();
  while (killing && !isKilled && toAll(0)) await pause(LOOK);
  clearTimeout(killing);
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
    terminal.tell(`lock "${lockName}" lapses by itself: ${reasonOf(error as Error)}`);
  }
  return code;
}

/** Sends a signal to a group, or looks with 0 whether there is one. False without a group, or if it takes none from here. */
function signalTo(group: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(group, name);
  } catch {
    return false;
  }
}

/** Resolves with the exit code that a shell would have. */
function ended(child: ChildProcess, program: string, tell: (line: string) => void): Promise<number> {
  return new Promise((resolve) => {
    child.on("error", (error: NodeJS.ErrnoException) => {
      // A command that has become another user's takes no signal from here: it runs, and the lock is held until it ends.
      if (child.pid !== undefined) return tell(`${program}: ${error.message}`);
      tell(`${program}: ${error.code === "ENOENT" ? "command not found" : error.message}`);
      resolve(error.code === "ENOENT" ? EXIT.notFound : EXIT.cannotRun);
    });
    child.once("exit", (code, by) => resolve(code ?? 128 + (by ? constants.signals[by] : 0)));
  });
}
