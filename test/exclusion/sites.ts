/** Where the locks are: servers in some topology, and each worker process's route to them, which tests can harm. */
import type { Cluster, Redis } from "ioredis";
import {
  type Endpoint,
  type FaultProxy,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startProxy,
} from "../support/index.js";

/** The route of one process. */
export interface Route {
  /** The argument for connect.mjs. */
  readonly where: object;
  /** The proxies; each is in front of one server. */
  readonly proxies: readonly FaultProxy[];
}

export interface Site {
  /** The servers that grant locks now. */
  masters(): Promise<readonly RedisServer[]>;
  /** A client without a proxy. */
  connect(): Redis | Cluster;
  route(): Promise<Route>;
  stop(): Promise<void>;
}

/** Proxies in front of these servers, and the table by which ioredis finds the proxies instead. */
async function proxied(servers: readonly Endpoint[]) {
  const proxies = await Promise.all(servers.map((server) => startProxy(server, { record: false })));
  const addresses = proxies.map(({ host, port }) => ({ host, port }));
  const natMap = Object.fromEntries(
    proxies.map(({ target }, i) => [`${target.host}:${target.port}`, addresses[i]]),
  );
  return { proxies, addresses, natMap };
}

/** One server. */
export class SingleSite implements Site {
  readonly #server: RedisServer;
  readonly #isProxied: boolean;

  /** Without proxies no fault can happen on the route, and all goes faster. */
  constructor(server: RedisServer, { proxied: isProxied = true }: { readonly proxied?: boolean } = {}) {
    this.#server = server;
    this.#isProxied = isProxied;
  }

  masters(): Promise<readonly RedisServer[]> {
    return Promise.resolve([this.#server]);
  }

  connect(): Redis {
    return this.#server.connect();
  }

  async route(): Promise<Route> {
    const { port } = this.#server;
    if (!this.#isProxied) return { where: { port }, proxies: [] };
    const { proxies, addresses } = await proxied([this.#server]);
    return { where: { ...addresses[0] }, proxies };
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

/** The master that the sentinels name. */
export class SentinelSite implements Site {
  readonly sentinel: RedisSentinel;

  constructor(sentinel: RedisSentinel) {
    this.sentinel = sentinel;
  }

  async masters(): Promise<readonly RedisServer[]> {
    return [await this.sentinel.master()];
  }

  connect(): Redis {
    return this.sentinel.connect();
  }

  async route(): Promise<Route> {
    const { proxies, natMap } = await proxied(this.sentinel.servers);
    return { where: { ...this.sentinel.clientOptions, natMap }, proxies };
  }

  stop(): Promise<void> {
    return this.sentinel.stop();
  }
}

export class ClusterSite implements Site {
  readonly cluster: RedisCluster;

  constructor(cluster: RedisCluster) {
    this.cluster = cluster;
  }

  masters(): Promise<readonly RedisServer[]> {
    return this.cluster.masters();
  }

  connect(): Cluster {
    return this.cluster.connect();
  }

  async route(): Promise<Route> {
    const { proxies, addresses, natMap } = await proxied(this.cluster.nodes);
    return { where: { nodes: addresses, natMap }, proxies };
  }

  stop(): Promise<void> {
    return this.cluster.stop();
  }
}

/** Independent masters. */
export class RedlockSite implements Site {
  readonly #servers: readonly RedisServer[];

  constructor(servers: readonly RedisServer[]) {
    this.#servers = servers;
  }

  masters(): Promise<readonly RedisServer[]> {
    return Promise.resolve(this.#servers);
  }

  connect(): Redis {
    return (this.#servers[0] as RedisServer).connect();
  }

  async route(): Promise<Route> {
    const { proxies, addresses } = await proxied(this.#servers);
    return { where: { masters: addresses }, proxies };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }
}
