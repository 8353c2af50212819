/**
 * The processes that the tests of this process started. When this process leaves, it kills those that are still alive,
 * by pid and never by name, because other jobs may share the machine.
 */
import type { ChildProcess } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import { Socket } from "node:net";

/** Each child with its directory, if it has one. */
const alive = new Map<ChildProcess, string | undefined>();
let watching = false;

/**
 * Kills `child` when this process exits or gets a signal to end, unless the child has ended; then removes its
 * `directory`.
 */
export function own(child: ChildProcess, directory?: string): void {
  alive.set(child, directory);
  child.once("exit", () => alive.delete(child));
  // A forgotten child must not keep this process alive, because the exit of this process is what kills the child.
  child.unref();
  for (const stream of [child.stdout, child.stderr]) if (stream instanceof Socket) stream.unref();
  if (watching) return;
  watching = true;
  process.on("exit", killAll);
  // Vitest ends its workers by SIGTERM, and a signal without a listener skips the exit handlers.
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(signal, () => leave(signal));
}

function leave(signal: NodeJS.Signals): void {
  killAll();
  if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
}

function killAll(): void {
  for (const [child, directory] of alive) {
    child.kill("SIGKILL");
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
  }
}

/** True until the process has ended. */
export function isAlive(child: ChildProcess): boolean {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** SIGKILL; resolves when the process is gone. A process that has already ended is fine. */
export async function killProcess(child: ChildProcess): Promise<void> {
  if (!isAlive(child)) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.ref();
  child.kill("SIGKILL");
  await gone;
}

/**
 * Sends SIGSTOP. On Linux this returns only when the process stands still. Linux delivers the signal asynchronously, so
 * the process could otherwise still answer a command that is sent right after.
 */
export function pauseProcess(child: ChildProcess): void {
  if (!isAlive(child)) throw new Error(`process ${child.pid ?? "?"} cannot be paused: it has ended`);
  child.kill("SIGSTOP");
  if (process.platform !== "linux") return;
  const giveUp = performance.now() + 1_000;
  while (processState(child.pid) !== "T" && performance.now() < giveUp);
}

/** SIGCONT. */
export function resumeProcess(child: ChildProcess): void {
  child.kill("SIGCONT");
}

/** The state letter of /proc/pid/stat, which comes after the command name in parentheses. */
function processState(pid: number | undefined): string | undefined {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}
