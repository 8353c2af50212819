// For what is a ping-pong of one client process and Redis: both main threads on CPU 0, where a round trip is two context
// switches. Left free, the scheduler moves them together and apart, and a round trip flips between 25 and 90 µs, more than
// all that is compared. A SCHED_IDLE loop on that CPU, which never takes time from anyone, keeps it from halting.
import { execFile, spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);
const ALL = `0-${availableParallelism() - 1}`;
const SPIN = `process.on("disconnect", () => process.exit());
  const turn = () => { const end = Date.now() + 200; while (Date.now() < end); setImmediate(turn); };
  turn();`;

/** The main thread only; V8's helpers stay free. */
const place = (cpus, pid) => run("taskset", ["-p", "-c", cpus, String(pid)]);

export const canPin = () =>
  ["taskset", "chrt"].every((program) => spawnSync(program, ["--version"]).status === 0);

export const pin = (pids) => Promise.all(pids.map((pid) => place("0", pid)));
export const unpin = (pids) => Promise.all(pids.map((pid) => place(ALL, pid)));

/** Keeps CPU 0 awake until the function that it returns is called. */
export function spin() {
  const child = spawn("taskset", ["-c", "0", "chrt", "-i", "0", process.execPath, "-e", SPIN], {
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  child.on("error", () => {});
  return () => {
    if (child.pid) child.kill("SIGKILL");
  };
}
