// A Redis server for an example alone: on a free port of this machine, with nothing written to disk. One that runs
// already, on 6379 or elsewhere, is not touched.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { own } from "./children.mjs";

const ATTEMPTS = 5;
const USUAL_PORT = 6379;

/** Resolves with { port, pid, program, child } when the server takes connections. `more`: arguments of redis-server. */
export async function startServer(directory = temporaryDirectory(), more = []) {
  const chosen = process.env.HOLDFAST_REDIS_SERVER;
  const programs = chosen ? [chosen] : ["redis-server", "valkey-server"];
  let failure;
  for (const program of programs) {
    // Somebody else may take the free port before the server does; then it ends at once and another port is tried.
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        return await launch(program, await freePort(), directory, more);
      } catch (error) {
        failure = error;
        if (error.code === "ENOENT") break;
      }
    }
  }
  throw new Error(
    "this needs redis-server or valkey-server on the PATH, or its path in HOLDFAST_REDIS_SERVER",
    { cause: failure },
  );
}

/** Gone when the example ends. */
function temporaryDirectory() {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-example-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function launch(program, port, directory, more) {
  const args = [
    "--port",
    port,
    "--bind",
    "127.0.0.1",
    "--dir",
    directory,
    "--save",
    "",
    "--appendonly",
    "no",
    ...more,
  ];
  const child = await start(program, args.map(String), "Ready to accept connections");
  return { port, pid: child.pid, program, child };
}

/** Starts a program and resolves with its process when it has printed this. */
export async function start(program, args, sign) {
  const child = own(spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] }));
  await new Promise((resolve, reject) => {
    let log = "";
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`${program} ended at once:\n${log}`)));
    child.stdout.on("data", (text) => {
      log += text;
      if (log.includes(sign)) resolve();
    });
  });
  child.stdout.removeAllListeners("data").resume();
  return child;
}

/** A port of this machine that nobody listens on now. */
export async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port === USUAL_PORT ? freePort() : port;
}
