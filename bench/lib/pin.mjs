// For a ping-pong of one client process and Redis, both main threads share CPU 0, where a round trip is two context
// switches. Left free, the scheduler moves them together and apart, and a round trip flips between 25 and 90 µs, more
// than all that is compared. Where a client talks to several masters at once, these share CPU 0 and the client has the
// last one for itself ("apart"). In the field each of them has its own machine, and the client works while they do.
// A SCHED_IDLE loop on each of these CPUs, which never takes time from anyone, keeps it from halting.
import { execFile, spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { promisify } from "node:util";

const run = promisify(execFile);
const LAST = String(availableParallelism() - 1);
const ALL = `0-${LAST}`;
/** By what a scenario says of its `pin`. */
const CPU_OF_CLIENTS = { together: "0", apart: LAST };
const SPIN = `process.on("disconnect", () => process.exit());
  const turn = () => { const end = Date.now() + 200; while (Date.now() < end); setImmediate(turn); };
  turn();`;

/** The main thread only; V8's helpers stay free. */
const place = (cpus, pid) => run("taskset", ["-p", "-c", cpus, String(pid)]);

export const canPin = () =>
  ["taskset", "chrt"].every((program) => spawnSync(program, ["--version"]).status === 0);

export const pinServers = (pids) => Promise.all(pids.map((pid) => place("0", pid)));
export const pinClients = (how, pids) => Promise.all(pids.map((pid) => place(CPU_OF_CLIENTS[how], pid)));
export const unpin = (pids) => Promise.all(pids.map((pid) => place(ALL, pid)));

/** Keeps these CPUs awake until the function that it returns is called. */
export function keepAwake(how) {
  const children = [...new Set(["0", CPU_OF_CLIENTS[how]])].map((cpu) => {
    const child = spawn("taskset", ["-c", cpu, "chrt", "-i", "0", process.execPath, "-e", SPIN], {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    child.on("error", () => {});
    return child;
  });
  return () => {
    for (const child of children) if (child.pid) child.kill("SIGKILL");
  };
}
