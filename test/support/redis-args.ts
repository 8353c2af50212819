/**
 * How the tests' servers are started: on 127.0.0.1 only, nothing written to disk, DEBUG allowed.
 */
import { confinedUserArgs, isConfined } from "./least-privilege.js";
import { hasFeaturesOf, type RedisBinary } from "./redis-binary.js";

export interface RedisServerOptions {
  /** More arguments of redis-server, `["--appendonly", "yes"]`. They win over those that are set here. */
  readonly args?: readonly string[];
  /** Default: a free one. */
  readonly port?: number;
  /** Of the default user; clients made by `connect` use it. */
  readonly password?: string;
  /** Makes it a replica of that server (or proxy); the start then waits until it is in step. */
  readonly replicaOf?: { readonly host: string; readonly port: number };
  /** Its own wall clock instead of the machine's. */
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
    // A replica that asks for a copy would otherwise wait five seconds for others to join in.
    "repl-diskless-sync-delay": ["0"],
  };
  if (hasFeaturesOf(binary, "7.0.0")) settings["enable-debug-command"] = ["local"];
  if (password !== undefined) Object.assign(settings, { requirepass: [password], masterauth: [password] });
  if (replicaOf !== undefined) settings.replicaof = [replicaOf.host, String(replicaOf.port)];
  const args = Object.entries(settings).flatMap(([name, values]) => [`--${name}`, ...values]);
  return isConfined ? [...args, ...confinedUserArgs(hasFeaturesOf(binary, "7.0.0"))] : args;
}
