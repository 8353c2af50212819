/**
 * Where the locks are: servers in some topology, and each process's route to them, which faults can harm. The servers
 * lose no grant, and a replica becomes master only by a fault of the plan.
 */
import type { Cluster, Redis } from "ioredis";
import {
  type Endpoint,
  type FaultProxy,
  type RedisCluster,
  type RedisSentinel,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  startSentinel,
} from "../support/index.js";

export const TOPOLOGIES = ["single", "sentinel", "cluster", "redlock"] as const;
export type Topology = (typeof TOPOLOGIES)[number];

/** The route of one process. */
export interface Route {
  /** Where it connects to: see worker.mjs. */
  readonly where: object;
  /** The proxies; each is in front of one server. */
  readonly proxies: readonly FaultProxy[];
}

export interface Site {
  readonly sentinel?: RedisSentinel;
  readonly cluster?: RedisCluster;
  /** The servers that grant locks now. */
  masters(): Promise<readonly RedisServer[]>;
  /** A connection without a proxy, to the first master or to all of them. */
  connect(): Redis | Cluster;
  route(): Promise<Route>;
  stop(): Promise<unknown>;
}

/**
 * Redis writes to its append-only file before it answers. The written data outlives the process, if not the machine, so
 * that SIGKILL needs no sync. ("everysec" is not enough: it delays writes while a sync runs.) Redis rewrites the file
 * before loading it would take long.
 */
const FAITHFUL = ["--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-min-size", "8mb"];
/** Milliseconds: longer than any fault of the plan stops a server, even on a busy machine. */
const PATIENT = 6_000;

export const SITES: Readonly<Record<Topology, () => Promise<Site>>> = {
  /** One server for each lock; the others are for groups. */
  single: () => independent(3),
  redlock: () => independent(5),

  /** The master that the sentinels name. */
  sentinel: async () => {
    const sentinel = await startSentinel({ args: FAITHFUL, downAfter: PATIENT });
    return {
      sentinel,
      masters: async () => [await sentinel.master()],
      connect: () => sentinel.connect(),
      route: async () => {
        const { proxies, natMap } = await proxied(sentinel.servers);
        return { where: { ...sentinel.clientOptions, natMap }, proxies };
      },
      stop: () => sentinel.stop(),
    };
  },

  cluster: async () => {
    const options = { masters: 3, replicas: 1, nodeTimeout: PATIENT, args: FAITHFUL };
    const cluster = await startCluster(options);
    return {
      cluster,
      masters: () => cluster.masters(),
      connect: () => cluster.connect(),
      route: async () => {
        const { proxies, addresses, natMap } = await proxied(cluster.nodes);
        return { where: { nodes: addresses, natMap }, proxies };
      },
      stop: () => cluster.stop(),
    };
  },
};

/** @param isProxied without proxies no fault can happen on the route, and all goes faster */
export async function independent(count: number, isProxied = true): Promise<Site> {
  const servers = await Promise.all(Array.from({ length: count }, () => startRedis({ args: FAITHFUL })));
  return {
    masters: async () => servers,
    connect: () => (servers[0] as RedisServer).connect(),
    route: async () => {
      if (!isProxied) return { where: { masters: servers.map(({ port }) => ({ port })) }, proxies: [] };
      const { proxies, addresses } = await proxied(servers);
      return { where: { masters: addresses }, proxies };
    },
    stop: () => Promise.all(servers.map((server) => server.stop())),
  };
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
