/**
 * A fault proxy in front of every node of a cluster. The nodes still tell clients their own addresses, which ioredis
 * turns into those of the proxies by its `natMap`. The nodes talk to each other directly.
 */
import type { Cluster } from "ioredis";
import { type FaultProxy, startProxy } from "./fault-proxy.js";
import type { Endpoint } from "./redis-call.js";
import type { RedisCluster } from "./redis-cluster.js";
import { type ClusterClientOptions, TrackedClients } from "./tracked-clients.js";

/** Starts one proxy for each node. */
export async function startClusterProxy(cluster: RedisCluster): Promise<ClusterProxy> {
  const proxies = new Map<number, FaultProxy>();
  for (const node of cluster.nodes) proxies.set(node.port, await startProxy(node));
  return new ClusterProxy(cluster, proxies);
}

export class ClusterProxy {
  /** Each proxy by the port of the node behind it. */
  readonly proxies: ReadonlyMap<number, FaultProxy>;
  /** The proxies' addresses, for `new Cluster(startupNodes, { natMap })`. */
  readonly startupNodes: Endpoint[];
  readonly natMap: Record<string, { host: string; port: number }>;
  readonly #cluster: RedisCluster;
  readonly #clients = new TrackedClients();

  constructor(cluster: RedisCluster, proxies: ReadonlyMap<number, FaultProxy>) {
    this.#cluster = cluster;
    this.proxies = proxies;
    const all = [...proxies.values()];
    this.startupNodes = all.map(({ host, port }) => ({ host, port }));
    this.natMap = Object.fromEntries(
      all.map(({ target, host, port }) => [`${target.host}:${target.port}`, { host, port }]),
    );
  }

  /** The proxy of the master that has this key now. */
  async proxyFor(key: string): Promise<FaultProxy> {
    const master = await this.#cluster.masterFor(key);
    const proxy = this.proxies.get(master.port);
    if (proxy === undefined) throw new Error(`no proxy in front of ${master.port}`);
    return proxy;
  }

  /** A cluster client through the proxies, with an `error` listener; disconnected by `stop`. */
  connect(options: ClusterClientOptions = {}): Cluster {
    return this.#clients.cluster(this.startupNodes, { natMap: this.natMap, ...options });
  }

  /** Stops the proxies, not the cluster. */
  async stop(): Promise<void> {
    this.#clients.disconnectAll();
    await Promise.all([...this.proxies.values()].map((proxy) => proxy.stop()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}
