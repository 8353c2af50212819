/**
 * One Redis Sentinel of a test's own, on a free port of 127.0.0.1. Owns the process and its directory; the caller of
 * `startSentinelProcess` says which master it watches.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, releasePort } from "./free-port.js";
import { isAlive, killProcess, own } from "./owned-processes.js";
import { findRedis, hasFeaturesOf, type RedisBinary } from "./redis-binary.js";
import { type Endpoint, redisCall } from "./redis-call.js";
import type { RespValue } from "./resp.js";
import { until } from "./until.js";

export interface Watch {
  /** The sentinels' name for the master. */
  readonly name: string;
  readonly master: Endpoint;
  readonly quorum: number;
  /** Milliseconds of silence after which a server counts as down. */
  readonly downAfter: number;
  readonly failoverTimeout: number;
  /** The password that the sentinels themselves ask for. */
  readonly sentinelPassword?: string | undefined;
  /** Arguments of redis-server, by pairs. */
  readonly args?: readonly string[];
}

const LOG_KEPT = 16_384;

/**
 * Periods, in ms, of the talk between sentinels, and between sentinels and servers: with the defaults they take seconds
 * to start. The period of PING stays, because sentinels promote no replica whose last INFO is older than five of those.
 */
const HASTE = ["INFO-PERIOD", 500, "PUBLISH-PERIOD", 200, "ASK-PERIOD", 100];

/** Starts a sentinel and resolves when it answers. */
export async function startSentinelProcess(watch: Watch): Promise<SentinelProcess> {
  const binary = await findRedis();
  const directory = await mkdtemp(join(tmpdir(), "holdfast-sentinel-"));
  const port = await freePort();
  // The sentinel itself writes what it learns into this file.
  const file = join(directory, "sentinel.conf");
  await writeFile(file, configuration(watch, port, directory));
  const sentinel = new SentinelProcess(binary, file, directory, port, watch.sentinelPassword);
  try {
    await sentinel.ready();
    return sentinel;
  } catch (error) {
    await sentinel.stop();
    throw error;
  }
}

function configuration(watch: Watch, port: number, directory: string): string {
  const { name, master, quorum, downAfter, failoverTimeout, sentinelPassword, args = [] } = watch;
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${directory}`,
    `sentinel monitor ${name} ${master.host} ${master.port} ${quorum}`,
    `sentinel down-after-milliseconds ${name} ${downAfter}`,
    `sentinel failover-timeout ${name} ${failoverTimeout}`,
  ];
  if (master.password !== undefined) lines.push(`sentinel auth-pass ${name} ${master.password}`);
  if (sentinelPassword !== undefined)
    lines.push(`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`);
  for (let i = 0; i < args.length; i += 2) lines.push(`${args[i]?.replace(/^--/, "")} ${args[i + 1]}`);
  return `${lines.join("\n")}\n`;
}

export class SentinelProcess {
  readonly host: string = "127.0.0.1";
  readonly port: number;
  readonly password: string | undefined;
  readonly #directory: string;
  readonly #binary: RedisBinary;
  readonly #child: ChildProcess;
  #log = "";

  /** Starts the process; `startSentinelProcess` is the way to a sentinel that answers. */
  constructor(binary: RedisBinary, file: string, directory: string, port: number, password?: string) {
    this.port = port;
    this.password = password;
    this.#directory = directory;
    this.#binary = binary;
    const child = spawn(binary.path, [file, "--sentinel"], {
      cwd: directory,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    own(child, directory);
    const keep = (text: string) => {
      this.#log = (this.#log + text).slice(-LOG_KEPT);
    };
    child.on("error", (error) => keep(error.message));
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk: Buffer) => keep(String(chunk)));
  }

  /** Resolves when the sentinel answers. */
  async ready(): Promise<void> {
    await until(`a sentinel answers on port ${this.port}`, async () => {
      return !isAlive(this.#child) || (await this.call("PING")) === "PONG";
    });
    if (!isAlive(this.#child))
      throw new Error(`the sentinel on port ${this.port} ended at once:\n${this.#log}`);
    if (hasFeaturesOf(this.#binary, "7.0.0")) await this.call("SENTINEL", "DEBUG", ...HASTE);
  }

  call(...command: (string | number)[]): Promise<RespValue> {
    return redisCall(this, command);
  }

  /** The answer to SENTINEL MASTER, as a map. */
  async about(name: string): Promise<Map<string, string>> {
    const reply = await this.call("SENTINEL", "MASTER", name);
    const flat = Array.isArray(reply) ? reply.map(String) : [];
    const pairs = flat.flatMap((field, i): [string, string][] =>
      i % 2 === 0 ? [[field, flat[i + 1] ?? ""]] : [],
    );
    return new Map(pairs);
  }

  /** Kills it and removes its directory. */
  async stop(): Promise<void> {
    await killProcess(this.#child);
    await rm(this.#directory, { recursive: true, force: true });
    releasePort(this.port);
  }
}
