/**
 * The redis-server or valkey-server that the tests run on, and its features.
 */
import { execFile, spawnSync } from "node:child_process";
import { promisify } from "node:util";

export interface RedisBinary {
  readonly path: string;
  readonly engine: "redis" | "valkey";
  /** The version of that engine, for example "7.0.15". */
  readonly version: string;
}

const run = promisify(execFile);
const found = new Map<string, Promise<RedisBinary>>();

/** By default `HOLDFAST_REDIS_SERVER` if it is set, else the first of redis-server and valkey-server on the PATH. */
export async function findRedis(
  chosen: string | undefined = process.env.HOLDFAST_REDIS_SERVER,
): Promise<RedisBinary> {
  const candidates = chosen ? [chosen] : ["redis-server", "valkey-server"];
  const failures: string[] = [];
  for (const candidate of candidates) {
    const asked = found.get(candidate) ?? askVersion(candidate);
    found.set(candidate, asked);
    try {
      return await asked;
    } catch (error) {
      found.delete(candidate);
      failures.push(`${candidate}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  throw new Error(
    `These tests need a Redis server: put redis-server or valkey-server on the PATH, or name it in ` +
      `HOLDFAST_REDIS_SERVER.\n${failures.join("\n")}`,
  );
}

async function askVersion(path: string): Promise<RedisBinary> {
  const { stdout } = await run(path, ["--version"]);
  const version = /\bv=(\d+\.\d+\.\d+)/.exec(stdout)?.[1];
  if (version === undefined) throw new Error(`not a Redis server by its --version: ${stdout.trim()}`);
  return { path, version, engine: /valkey/i.test(stdout) ? "valkey" : "redis" };
}

/**
 * True if the server has the features of that Redis version. Valkey is a fork of Redis 7.2.4 and has all of its features.
 */
export function hasFeaturesOf(server: Pick<RedisBinary, "engine" | "version">, version: string): boolean {
  const own = server.engine === "valkey" ? "7.2.4" : server.version;
  return isAtLeast(own, version);
}

/** The reason why this server has no TLS, for `test.skipIf`; undefined if it has. */
export function noTlsOf({ path, engine, version }: RedisBinary): string | undefined {
  // The server ends at once either way: one with TLS complains that its certificate is missing.
  const { stdout } = spawnSync(path, ["--port", "0", "--tls-port", "1"], { encoding: "utf8" });
  return stdout.includes("tls-cert-file") ? undefined : `${engine} ${version} was built without TLS`;
}

/** True if `version` ("7.0.15") is `least` ("7.0") or later. */
export function isAtLeast(version: string, least: string): boolean {
  const [a, b] = [parts(version), parts(least)];
  for (let i = 0; i < 3; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference > 0;
  }
  return true;
}

function parts(version: string): number[] {
  return version.split(".").map(Number);
}
