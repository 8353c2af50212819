/** One Redis Sentinel of a test's own; the caller of `startSentinelProcess` says which master it watches. */
import type { Endpoint } from "./redis-call.js";
import { type RedisServer, startRedis } from "./redis-server.js";

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

/**
 * Periods, in ms, of the talk between sentinels, and between sentinels and servers: with the defaults they take seconds
 * to start. The period of PING stays, because sentinels promote no replica whose last INFO is older than five of those.
 */
const HASTE = ["INFO-PERIOD", 500, "PUBLISH-PERIOD", 200, "ASK-PERIOD", 100];

/** Starts a sentinel and resolves when it answers. */
export async function startSentinelProcess(watch: Watch): Promise<RedisServer> {
  const { sentinelPassword: password } = watch;
  const sentinel = await startRedis({
    ...(password === undefined ? {} : { password }),
    sentinel: (port, directory) => configuration(watch, port, directory),
  });
  if (sentinel.hasFeaturesOf("7.0.0")) await sentinel.call("SENTINEL", "DEBUG", ...HASTE);
  return sentinel;
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

/** The answer of a sentinel to SENTINEL MASTER, as a map. */
export async function aboutMaster(sentinel: RedisServer, name: string): Promise<Map<string, string>> {
  const reply = await sentinel.call("SENTINEL", "MASTER", name);
  const flat = Array.isArray(reply) ? reply.map(String) : [];
  const pairs = flat.flatMap((field, i): [string, string][] =>
    i % 2 === 0 ? [[field, flat[i + 1] ?? ""]] : [],
  );
  return new Map(pairs);
}
