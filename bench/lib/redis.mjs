// Redis servers of the bench's own, on free ports of 127.0.0.1; each is stopped by its own pid.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "./ioredis.mjs";

export const PROGRAM = process.env.HOLDFAST_REDIS_SERVER ?? "redis-server";
const ATTEMPTS = 3;
/** What the bench itself asks; left out of what is counted. */
const OWN = new Set(["hincrby", "info", "pttl", "flushall", "scan", "config"]);

const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer()
      .once("error", reject)
      .listen(0, "127.0.0.1", () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      });
  });

export class Server {
  host = "127.0.0.1";

  static async start() {
    for (let attempt = 1; ; attempt++) {
      const server = new Server(await freePort());
      try {
        await server.admin.connect().catch(() => {});
        await server.admin.ping();
        return server;
      } catch (error) {
        await server.stop();
        if (attempt === ATTEMPTS) throw error;
      }
    }
  }

  constructor(port) {
    this.port = port;
    this.folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    const quiet = ["--save", "", "--appendonly", "no", "--loglevel", "warning", "--maxclients", "30000"];
    this.process = spawn(
      PROGRAM,
      ["--port", String(port), "--bind", this.host, "--dir", this.folder, ...quiet],
      { stdio: "ignore" },
    );
    this.process.on("error", () => {});
    this.pid = this.process.pid;
    this.exited = new Promise((resolve) => this.process.once("close", resolve));
    const patience = (attempt) => (attempt > 100 ? null : 30);
    this.admin = new Redis({ host: this.host, port, lazyConnect: true, retryStrategy: patience });
    this.admin.on("error", () => {});
  }

  async stop() {
    this.admin.disconnect();
    this.process.kill("SIGTERM");
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }

  flush() {
    return this.admin.flushall();
  }

  async info(section) {
    const lines = (await this.admin.info(section)).split("\r\n").filter((line) => line.includes(":"));
    return Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]),
    );
  }

  /** So far: commands by name, those that scripts call among them; and the server's CPU time in ms. */
  async counters() {
    const [stats, cpu] = await Promise.all([this.info("commandstats"), this.info("cpu")]);
    const calls = {};
    for (const [key, value] of Object.entries(stats)) {
      const name = key.slice("cmdstat_".length);
      if (!OWN.has(name.split("|")[0])) calls[name] = Number(/calls=(\d+)/.exec(value)[1]);
    }
    return { calls, cpuMs: 1_000 * (Number(cpu.used_cpu_user) + Number(cpu.used_cpu_sys)) };
  }
}

/** What all these servers do while `act` runs: `calls` by name, `executed` in all, `cpuMs`. */
export async function counting(servers, act) {
  const before = await Promise.all(servers.map((server) => server.counters()));
  const result = await act();
  const after = await Promise.all(servers.map((server) => server.counters()));
  const calls = {};
  let cpuMs = 0;
  for (const [i, { calls: now, cpuMs: later }] of after.entries()) {
    cpuMs += later - before[i].cpuMs;
    for (const [name, n] of Object.entries(now)) {
      const more = n - (before[i].calls[name] ?? 0);
      if (more > 0) calls[name] = (calls[name] ?? 0) + more;
    }
  }
  const executed = Object.values(calls).reduce((total, n) => total + n, 0);
  return { result, redis: { calls, executed, cpuMs } };
}
