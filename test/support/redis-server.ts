/**
 * A real Redis or Valkey server of a test's own, on a free port of 127.0.0.1 with an empty temporary directory. It
 * can be paused, killed and restarted. Owns the process and the clients it made; all other settings come by arguments.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { freePort, releasePort } from "./free-port.js";
import { isAlive, killProcess, own, pauseProcess, resumeProcess } from "./owned-processes.js";
import { PATIENCE } from "./patience.js";
import { type RedisServerOptions, serverArgs } from "./redis-args.js";
import { findRedis, hasFeaturesOf, type RedisBinary } from "./redis-binary.js";
import { redisCall, redisInfo } from "./redis-call.js";
import type { RespValue } from "./resp.js";
import { type ClientOptions, TrackedClients } from "./tracked-clients.js";
import { until } from "./until.js";

/** How often a start is repeated with another port, because another process took the free port first. */
const START_ATTEMPTS = 5;
const LOG_KEPT = 16_384;
/** Of a sentinel, which writes into it what it learns. */
const CONFIGURATION = "sentinel.conf";

/** Starts a server and resolves when it answers. */
export async function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  const binary = await findRedis(options.binary);
  const directory = await mkdtemp(join(tmpdir(), "holdfast-redis-"));
  const server = await launch(binary, directory, options).catch(async (error: unknown) => {
    await rm(directory, { recursive: true, force: true });
    throw error;
  });
  if (options.replicaOf === undefined) return server;
  try {
    await until(`replica ${server.port} is in step`, async () => {
      return (await server.info("replication")).get("master_link_status") === "up";
    });
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function launch(
  binary: RedisBinary,
  directory: string,
  options: RedisServerOptions,
): Promise<RedisServer> {
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const server = new RedisServer(binary, directory, port, options);
    try {
      if (options.sentinel)
        await writeFile(join(directory, CONFIGURATION), options.sentinel(port, directory));
      await server.restart();
      return server;
    } catch (error) {
      await server.kill();
      const taken = error instanceof Error && /address already in use|failed listening/i.test(error.message);
      if (!taken || options.port !== undefined || attempt === START_ATTEMPTS) throw error;
    }
  }
}

export class RedisServer {
  readonly host: string = "127.0.0.1";
  readonly port: number;
  readonly password: string | undefined;
  readonly engine: "redis" | "valkey";
  readonly version: string;
  readonly #binary: RedisBinary;
  readonly #directory: string;
  readonly #args: readonly string[];
  readonly #env: Readonly<Record<string, string>>;
  readonly #clients = new TrackedClients();
  #child: ChildProcess | undefined;
  #log = "";

  /** Starts nothing; `startRedis` is the way to a running server. */
  constructor(binary: RedisBinary, directory: string, port: number, options: RedisServerOptions) {
    this.port = port;
    this.password = options.password;
    this.engine = binary.engine;
    this.version = binary.version;
    this.#binary = binary;
    this.#directory = directory;
    this.#args = options.sentinel
      ? [join(directory, CONFIGURATION), "--sentinel"]
      : [...serverArgs(binary, directory, port, options), ...(options.args ?? [])];
    this.#env = options.clock?.env ?? {};
  }

  get url(): string {
    const user = this.password === undefined ? "" : `:${encodeURIComponent(this.password)}@`;
    return `redis://${user}${this.host}:${this.port}`;
  }

  /** True if it has the features of that Redis version ("7.0"); Valkey has all of 7.2.4. */
  hasFeaturesOf(version: string): boolean {
    return hasFeaturesOf(this, version);
  }

  /** A client of this server, with an `error` listener; disconnected by `stop`. */
  connect(options: ClientOptions = {}): Redis {
    const auth = this.password === undefined ? {} : { password: this.password };
    return this.#clients.redis({ host: this.host, port: this.port, ...auth, ...options });
  }

  /** Sends one command on a connection of its own, past every client library and proxy. */
  call(...command: (string | number)[]): Promise<RespValue> {
    return redisCall(this, command);
  }

  /** The lines of INFO `section`. */
  info(section: string): Promise<Map<string, string>> {
    return redisInfo(this, section);
  }

  /** SIGSTOP: connections stay open and nothing is answered. The clock, and so every TTL, runs on. */
  pause(): void {
    if (this.#child === undefined) throw new Error("this server was never started");
    pauseProcess(this.#child);
  }

  /** SIGCONT. */
  resume(): void {
    if (this.#child !== undefined) resumeProcess(this.#child);
  }

  /** SIGKILL, also while paused; resolves when the process is gone. */
  async kill(): Promise<void> {
    if (this.#child !== undefined) await killProcess(this.#child);
  }

  /** Kills the server if it runs, and starts it on the same port: empty, unless it has an append-only file. */
  async restart(): Promise<void> {
    await this.kill();
    this.#log = "";
    const child = spawn(this.#binary.path, this.#args, {
      cwd: this.#directory,
      env: { ...process.env, ...this.#env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    own(child, this.#directory);
    child.on("error", (error) => this.#keep(error.message));
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => this.#keep(String(chunk)));
    const closed = once(child, "close");
    // The longest wait of all, because a restarted server has to load its data.
    await until(`redis-server answers on port ${this.port}`, () => !isAlive(child) || this.#isReady(child), {
      timeout: 3 * PATIENCE,
    });
    if (isAlive(child)) return;
    await closed; // then the log is complete
    throw new Error(`${this.#binary.path} on port ${this.port} ended at once:\n${this.#log}`);
  }

  /** Disconnects the clients, kills the process and removes its directory. */
  async stop(): Promise<void> {
    this.#clients.disconnectAll();
    await this.kill();
    await rm(this.#directory, { recursive: true, force: true });
    releasePort(this.port);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  #keep(text: string): void {
    this.#log = (this.#log + text).slice(-LOG_KEPT);
  }

  /** The process id tells our server from another one that took the port first. */
  async #isReady(child: ChildProcess): Promise<boolean> {
    await redisCall(this, ["PING"], 1_000);
    return (await this.info("server")).get("process_id") === String(child.pid);
  }
}
