// The connections of a worker process to the servers that have its locks.
import { Cluster, Redis } from "ioredis";

/**
 * @typedef {{ port: number }
 *   | { sentinels: { host: string, port: number }[], name: string, natMap: Record<string, object> }
 *   | { nodes: { host: string, port: number }[], natMap: Record<string, object> }
 *   | { masters: { port: number }[] }} Where
 */

/** Milliseconds. Short, because the tests measure how long the library takes, not how long ioredis rests. */
const retryStrategy = (times) => Math.min(50 * times, 200);

/**
 * A connection to each master of a RedLock, otherwise one connection.
 * @param {Where} where
 */
export function connect(where) {
  const redises = (where.masters ?? [where]).map(({ nodes, natMap, ...options }) =>
    nodes
      ? new Cluster(nodes, { natMap, clusterRetryStrategy: retryStrategy })
      : new Redis({ ...options, natMap, retryStrategy, sentinelRetryStrategy: retryStrategy }),
  );
  for (const redis of redises) redis.on("error", () => {}); // the server may be down
  return redises;
}
