/**
 * Locks on clients of the package `redis` (node-redis), versions 5 and 6: makes of a client what the core takes for a
 * connection.
 */
import type { RedisConnection } from "../index.js";
import {
  type ClusterClient,
  connectOnce,
  ignore,
  type PlainClient,
  type SentinelClient,
  type Source,
} from "./node-redis/clients.js";
import { OwnCluster } from "./node-redis/own-cluster.js";
import { OwnConnection } from "./node-redis/own-connection.js";
import { MasterOfSentinel } from "./node-redis/sentinel.js";

/** What `createClient`, `createCluster` and `createSentinel` of `redis` 5 or 6 make. */
export interface NodeRedisClient {
  /** True if the client is connected, or on its way there. */
  readonly isOpen: boolean;
  /** Connects the client. */
  connect(): Promise<unknown>;
  /** Sends a command. */
  sendCommand(...args: never[]): unknown;
  /** Sets how replies are read; clients before version 5 do not have it. */
  withTypeMapping(...args: never[]): unknown;
}

/** What was made of each client. Nothing goes over it: it is what the library makes its own connections from. */
const connections = new WeakMap<object, RedisConnection>();

/**
 * What `new LockClient()` takes, made of a client of node-redis. The client stays yours: it is connected at the first
 * call if it never was, and otherwise left alone. The library sends over connections of its own with the same options.
 * @throws TypeError for anything else, and for a client with `keyPrefix`
 * @example
 * const client = new LockClient(fromNodeRedis(createClient({ url: "redis://localhost:6379" })));
 */
export function fromNodeRedis(client: NodeRedisClient): RedisConnection {
  const known = connections.get(client);
  if (known) return known;
  const connection = connectionOf(client);
  connections.set(client, connection);
  return connection;
}

const WANTED = "fromNodeRedis takes what createClient, createCluster or createSentinel of redis 5 or 6 makes";

/** The members that tell clients of node-redis from each other and from other objects. */
interface Anything {
  readonly [name: string]: unknown;
  readonly _options?: { readonly keyPrefix?: string };
}

function connectionOf(client: unknown): RedisConnection {
  if (client === null) throw new TypeError(`${WANTED}, not null`);
  if (typeof client !== "object") throw new TypeError(`${WANTED}, not ${typeof client}`);
  const given = client as Anything;
  const can = (name: string) => typeof given[name] === "function";
  // Before what ioredis has: redis 3, and redis 4 with legacyMode, have that, too.
  if (can("executeIsolated") || can("internal_send_command"))
    throw new TypeError(`${WANTED}; this is one of redis 4 or older`);
  if (can("evalsha") && can("duplicate"))
    throw new TypeError(`${WANTED}; a client of ioredis goes into new LockClient() as it is`);
  if (can("execute") && "totalClients" in given)
    throw new TypeError(`${WANTED}, not a pool: a lock needs one connection that is always there`);
  if (!can("withTypeMapping") || !can("sendCommand")) throw new TypeError(WANTED);
  const { keyPrefix } = { ...(given.options as object), ...given._options } as { keyPrefix?: string };
  if (keyPrefix || given._keyPrefix)
    throw new TypeError(
      "fromNodeRedis: the client must not use keyPrefix; give the LockClient option `prefix` instead",
    );
  if (can("nodeClient")) return new OwnCluster(client as ClusterClient);
  if (can("getMasterNode") && can("_execute"))
    return new OwnConnection(new MasterOfSentinel(client as SentinelClient));
  if (!can("duplicate")) throw new TypeError(WANTED);
  return new OwnConnection(serverOf(client as PlainClient));
}

/** A client of one server. */
function serverOf(client: PlainClient): Source {
  const { host = "localhost", port = 6379, path } = client.options?.socket ?? {};
  return {
    options: path === undefined ? { host, port } : { path },
    async template() {
      connectOnce(client).catch(ignore);
      return client;
    },
  };
}
