/**
 * Clients of the package redis, versions 5 and 6, for the tests of their entry. They also replace ioredis in suites that
 * are run by hand with `HOLDFAST_TEST_CLIENT=node-redis` (or `node-redis-5`).
 */
import { createRequire } from "node:module";
import type { Redis } from "ioredis";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import type { RedisConnection } from "../../src/index.js";
import { until } from "./until.js";

export type NodeRedisVersion = 5 | 6;

/** The part of a client that the tests use, in either version. */
export interface TestClient {
  readonly isOpen: boolean;
  readonly isReady: boolean;
  connect(): Promise<unknown>;
  close(): Promise<unknown> | undefined;
  destroy(): unknown;
  sendCommand(...args: never[]): unknown;
  withTypeMapping(...args: never[]): unknown;
  on(event: string, listener: (...args: never[]) => void): unknown;
  listeners(event: string): unknown[];
}

/** Loads a package where it is asked for: each has hundreds of files, and most tests need none of them. */
const load = createRequire(import.meta.url);

type Make = (options: object) => TestClient;

/** `createClient`, `createCluster` and `createSentinel` of one version; each client has an `error` listener. */
export interface NodeRedis {
  readonly client: Make;
  readonly cluster: Make;
  readonly sentinel: Make;
}

export function nodeRedis(version: NodeRedisVersion): NodeRedis {
  const { createClient, createCluster, createSentinel } = load(version === 6 ? "redis" : "redis5") as Record<
    string,
    Make
  >;
  const heard =
    (make: Make | undefined): Make =>
    (options) => {
      if (!make) throw new Error("this package makes no such client");
      const made = make(options);
      made.on("error", () => {});
      return made;
    };
  return { client: heard(createClient), cluster: heard(createCluster), sentinel: heard(createSentinel) };
}

/** A connection of the user, of either package. */
export interface UserRedis extends RedisConnection {
  ping(): Promise<string>;
  disconnect(): void;
  on(event: string, listener: (...args: never[]) => void): unknown;
}

const WANTED = /^node-redis(?:-(5|6))?$/.exec(process.env.HOLDFAST_TEST_CLIENT ?? "");

/** Whether the suites should run on node-redis instead of ioredis. */
export const isNodeRedisWanted: boolean = WANTED !== null;

interface Server {
  readonly host?: string;
  readonly port?: number;
  readonly db?: number;
  readonly username?: string;
  readonly password?: string;
  readonly protocol?: number;
}

/** Replaces an ioredis `Redis` with these options. */
export function nodeRedisInstead(options: Server): UserRedis {
  const { host, port, db, username, password, protocol } = options;
  const client = wanted().client({
    socket: { host, port, reconnectStrategy: (tries: number) => Math.min(50 * tries, 2_000) },
    ...(db === undefined ? {} : { database: db }),
    ...(username === undefined ? {} : { username }),
    ...(password === undefined ? {} : { password }),
    ...(protocol === undefined ? {} : { RESP: protocol }),
  });
  return asUser(client);
}

/** Replaces an ioredis `Cluster`. */
export function nodeRedisClusterInstead(
  nodes: readonly { host?: string; port?: number }[],
  natMap: Readonly<Record<string, { host: string; port: number }>> = {},
): UserRedis {
  const rootNodes = nodes.map(({ host, port }) => ({ socket: { host, port } }));
  return asUser(wanted().cluster({ rootNodes, nodeAddressMap: natMap }));
}

const LIKE = new WeakMap<Redis, UserRedis>();

/** The connection itself, or a node-redis client to its server: the same client each time, which ends with it. */
export function connectionLike(redis: Redis): RedisConnection {
  if (!isNodeRedisWanted) return redis;
  const known = LIKE.get(redis);
  if (known) return known;
  const { host, port, db, username, password } = redis.options as Server;
  const user = nodeRedisInstead({ host, port, db, username, password } as Server);
  LIKE.set(redis, user);
  // `redis` gets no listener, because some tests count its listeners.
  const disconnect = redis.disconnect.bind(redis);
  redis.disconnect = (reconnect) => {
    user.disconnect();
    disconnect(reconnect);
  };
  return user;
}

function wanted(): NodeRedis {
  return nodeRedis(WANTED?.[1] === "5" ? 5 : 6);
}

function asUser(client: TestClient): UserRedis {
  const connection = fromNodeRedis(client) as UserRedis & {
    call(command: string): Promise<unknown>;
    connect(): Promise<void>;
  };
  let isOver = false;
  // ioredis goes on trying too. A node-redis cluster whose first attempt fails would try again only at the next call.
  until("it is connected", async () => isOver || (await connection.connect().then(() => true))).catch(
    () => {},
  );
  const disconnect = () => {
    isOver = true;
    if (client.isOpen) client.destroy();
  };
  // ioredis repeats a PING on its next socket too.
  const ping = () => until("it answers", () => connection.call("PING") as Promise<string>);
  return Object.assign(connection, { ping, disconnect });
}
