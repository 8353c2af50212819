/**
 * The arguments of the tests' servers: they listen on 127.0.0.1 only, write nothing to disk, and allow DEBUG.
 */
import { hasFeaturesOf, type RedisBinary } from "./redis-binary.js";

export interface RedisServerOptions {
  /** More arguments of redis-server, `["--appendonly", "yes"]`. They win over the arguments set here. */
  readonly args?: readonly string[];
  /** The program; default see `findRedis`. */
  readonly binary?: string | undefined;
  /** Default: a free port. */
  readonly port?: number;
  /** The password of the default user; clients made by `connect` use it. */
  readonly password?: string;
  /** Makes the server a replica of that server (or proxy); the start then waits until the replica is in step. */
  readonly replicaOf?: { readonly host: string; readonly port: number };
  /** Makes it a sentinel: what its file says. All other settings but the password are for servers. */
  readonly sentinel?: (port: number, directory: string) => string;
  /** A wall clock of its own instead of the machine's. */
  readonly clock?: { readonly env: Readonly<Record<string, string>> };
}

/** The arguments of redis-server that come before those of the test. */
export function serverArgs(
  binary: RedisBinary,
  directory: string,
  port: number,
  { password, replicaOf }: RedisServerOptions,
): string[] {
  const settings: Record<string, string[]> = {
    port: [String(port)],
    bind: ["127.0.0.1"],
    dir: [directory],
    save: [""],
    appendonly: ["no"],
    // Without this, the master of a replica that asks for a copy would wait five seconds for other replicas.
    "repl-diskless-sync-delay": ["0"],
  };
  if (hasFeaturesOf(binary, "7.0.0")) settings["enable-debug-command"] = ["local"];
  if (password !== undefined) Object.assign(settings, { requirepass: [password], masterauth: [password] });
  if (replicaOf !== undefined) settings.replicaof = [replicaOf.host, String(replicaOf.port)];
  return Object.entries(settings).flatMap(([name, values]) => [`--${name}`, ...values]);
}
