// The processes of the comparison with Redisson. Either side does what it is told: `call` resolves with what came of it.
import { fork, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { isAlive, kill, own } from "../examples/children.mjs";

const WORKER = fileURLToPath(new URL("redisson-worker.mjs", import.meta.url));
const LOG_OPTIONS = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"];

/** A Node process of this library, with a client. */
export async function startNode(port, { watchdog } = {}) {
  const child = own(fork(WORKER));
  const { call, answer } = calls(child, (message) => child.send(message));
  child.on("message", answer);
  await call({ scenario: "connect", port, watchdog });
  return { pid: child.pid, call, end: () => kill(child) };
}

/** A JVM with its own settings, and in it a Redisson client with its own. */
export async function startJvm(classpath, port, { watchdog } = {}) {
  const main = ["-cp", classpath, "holdfast.interop.Driver"];
  const child = own(spawn("java", [...LOG_OPTIONS, ...main], { stdio: ["pipe", "pipe", "inherit"] }));
  const { call, answer } = calls(child, (message) => child.stdin.write(`${JSON.stringify(message)}\n`));
  createInterface({ input: child.stdout }).on("line", (line) => answer(JSON.parse(line)));
  await call({ op: "connect", url: `redis://127.0.0.1:${port}`, asItComes: true, watchdog });
  return { pid: child.pid, call: (scenario) => call({ op: "bench", ...scenario }), end: () => kill(child) };
}

function calls(child, send) {
  const waiting = new Map();
  let lastId = 0;
  child.once("exit", () => {
    for (const { reject } of waiting.values()) reject(new Error("a process of the bench has ended"));
  });
  const call = (message) => {
    if (!isAlive(child)) return Promise.reject(new Error("a process of the bench has ended"));
    const id = ++lastId;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      send({ ...message, id });
    });
  };
  const answer = ({ id, value, error, message = "" }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) resolve(value);
    else reject(new Error(`${error} ${message}`));
  };
  return { call, answer };
}
