/** What a block gets for `redis`: the same, except that every connection goes to the test's servers. */
import * as real from "redis";
import { servers } from "./servers.js";

type Client = ReturnType<typeof real.createClient>;
type Cluster = ReturnType<typeof real.createCluster>;
type Sentinel = ReturnType<typeof real.createSentinel>;

export function createClient(_options: object = {}): Client {
  return real.createClient({ socket: { host: "127.0.0.1", port: servers.masters[0] as number } });
}

export function createCluster(_options: object): Cluster {
  return real.createCluster({ rootNodes: servers.cluster.map((socket) => ({ socket })) });
}

export function createSentinel(_options: object): Sentinel {
  const { name = "", sentinels = [], password = "" } = servers.sentinel;
  const sentinelRootNodes = (sentinels ?? []) as { host: string; port: number }[];
  return real.createSentinel({ name, sentinelRootNodes, nodeClientOptions: { password } });
}
