// Every process that an example starts. None outlives it, however it ends.
import { AssertionError } from "node:assert";
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const children = [];

/** To be called as soon as a child exists. */
export function own(child) {
  children.push(child);
  return child;
}

/** Runs a file (say `import.meta.url`) as a process of its own, with these arguments. */
export function run(url, ...args) {
  return own(fork(fileURLToPath(url), args.map(String)));
}

/** Resolves when such a process has ended, with the last message that it sent. Rejects if it failed. */
export function endOf(child) {
  return new Promise((resolve, reject) => {
    let last;
    child.on("message", (message) => {
      last = message;
    });
    child.once("close", (code, signal) => {
      if (code === 0) resolve(last);
      else reject(new AssertionError({ message: `a process of this example ended with ${signal ?? code}` }));
    });
  });
}

export function isAlive(child) {
  return child.pid !== undefined && child.exitCode === null && child.signalCode === null;
}

/** SIGKILL; resolves when the process is gone. */
export async function kill(child) {
  if (!isAlive(child)) return;
  // Not by once() of node:events: it rejects if a message to the dying process fails first.
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}

export async function killAll() {
  await Promise.all(children.map(kill));
}

process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
