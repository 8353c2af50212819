/**
 * A Redis Cluster of real servers, formed by the servers' own CLUSTER commands (redis-cli is not needed).
 * Owns its nodes.
 */
import type { Cluster, ClusterNode } from "ioredis";
import { type RedisServer, startRedis } from "./redis-server.js";
import { type ClusterClientOptions, TrackedClients } from "./tracked-clients.js";
import { until } from "./until.js";

export interface RedisClusterOptions {
  /** Default 3. */
  readonly masters?: number;
  /** Replicas of each master. Default 0. */
  readonly replicas?: number;
  /** Milliseconds for which a node may stand still before the others replace it. Default 15 seconds. */
  readonly nodeTimeout?: number;
  /** More arguments of each redis-server. */
  readonly args?: readonly string[];
}

const SLOTS = 16_384;
const START_TIMEOUT = 20_000;
/** The usual node time-out: a busy machine must cause no failover. */
const CALM = 15_000;
/** The node time-out while nodes must find each other or a dead node soon: the longer it is, the rarer their pings. */
const HASTY = 1_000;

/** Starts a cluster and resolves when every node says that it is up, and every replica has its copy. */
export async function startCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  const { masters = 3, replicas = 0, nodeTimeout = CALM, args = [] } = options;
  const nodeArgs = ["--cluster-enabled", "yes", "--cluster-node-timeout", String(nodeTimeout), ...args];
  const count = masters * (1 + replicas);
  const started = await Promise.allSettled(
    Array.from({ length: count }, () => startRedis({ args: nodeArgs })),
  );
  const nodes = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const cluster = new RedisCluster(nodes, nodeTimeout);
  try {
    const failed = started.find((result) => result.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    await cluster.makeHasty();
    await form(nodes, masters);
    await cluster.makeCalm();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

/** The first `masters` nodes share the slots; the others become their replicas in turn. */
async function form(nodes: readonly RedisServer[], masters: number): Promise<void> {
  await Promise.all(nodes.map((node, i) => node.call("CLUSTER", "SET-CONFIG-EPOCH", i + 1)));
  await Promise.all(nodes.slice(0, masters).map((node, i) => addSlots(node, i, masters)));
  // Each node meets each other node, because waiting for gossip to spread would take seconds.
  for (const node of nodes) {
    const others = nodes.filter((other) => other !== node);
    await Promise.all(others.map((other) => node.call("CLUSTER", "MEET", other.host, other.port)));
  }
  const ids = await Promise.all(
    nodes.slice(0, masters).map(async (node) => String(await node.call("CLUSTER", "MYID"))),
  );
  await Promise.all(
    nodes.map((node) => waitFor(node, "knows all nodes", "cluster_known_nodes", String(nodes.length))),
  );
  await Promise.all(nodes.slice(masters).map((node, i) => replicate(node, ids[i % masters] ?? "")));
  await Promise.all(nodes.map((node) => waitFor(node, "says the cluster is up", "cluster_state", "ok")));
}

async function addSlots(node: RedisServer, index: number, masters: number): Promise<void> {
  const first = Math.floor((index * SLOTS) / masters);
  const last = Math.floor(((index + 1) * SLOTS) / masters) - 1;
  if (node.hasFeaturesOf("7.0.0")) {
    await node.call("CLUSTER", "ADDSLOTSRANGE", first, last);
    return;
  }
  await node.call("CLUSTER", "ADDSLOTS", ...Array.from({ length: last - first + 1 }, (_, i) => first + i));
}

async function replicate(node: RedisServer, masterId: string): Promise<void> {
  await until(`node ${node.port} may replicate`, () => node.call("CLUSTER", "REPLICATE", masterId), {
    timeout: START_TIMEOUT,
  });
  await until(
    `replica ${node.port} is in step`,
    async () => (await node.info("replication")).get("master_link_status") === "up",
    { timeout: START_TIMEOUT },
  );
}

async function waitFor(node: RedisServer, what: string, field: string, value: string): Promise<void> {
  await until(
    `node ${node.port} ${what}`,
    async () =>
      String(await node.call("CLUSTER", "INFO"))
        .split(/\r?\n/)
        .includes(`${field}:${value}`),
    { timeout: START_TIMEOUT, every: 20 },
  );
}

export class RedisCluster {
  /** The nodes, with those that were masters at the start first. */
  readonly nodes: readonly RedisServer[];
  readonly #nodeTimeout: number;
  readonly #clients = new TrackedClients();

  /** Takes over nodes that form a cluster; `startCluster` makes one. */
  constructor(nodes: readonly RedisServer[], nodeTimeout: number = CALM) {
    this.nodes = nodes;
    this.#nodeTimeout = nodeTimeout;
  }

  /** From now on the cluster replaces a missing node soon; `gone`: a node that already does not answer. */
  makeHasty(gone?: RedisServer): Promise<void> {
    return this.#setNodeTimeout(HASTY, gone);
  }

  /** From now on the cluster does not replace a node that stands still for seconds. */
  makeCalm(gone?: RedisServer): Promise<void> {
    return this.#setNodeTimeout(this.#nodeTimeout, gone);
  }

  /** For `new Cluster(startupNodes)`. */
  get startupNodes(): ClusterNode[] {
    return this.nodes.map(({ host, port }) => ({ host, port }));
  }

  /** The master that has this key's slot now, also after failovers, as the first node that answers says. */
  async masterFor(key: string): Promise<RedisServer> {
    const failures: unknown[] = [];
    for (const node of this.nodes) {
      try {
        return await this.masterBy(node, key);
      } catch (error) {
        failures.push(error);
      }
    }
    throw new AggregateError(failures, `no node knows the master of ${key}`);
  }

  /** A cluster client, with an `error` listener; disconnected by `stop`. */
  connect(options: ClusterClientOptions = {}): Cluster {
    return this.#clients.cluster(this.startupNodes, options);
  }

  /** Disconnects the clients and stops every node. */
  async stop(): Promise<void> {
    this.#clients.disconnectAll();
    await Promise.all(this.nodes.map((node) => node.stop()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #setNodeTimeout(ms: number, gone: RedisServer | undefined): Promise<void> {
    const nodes = this.nodes.filter((node) => node !== gone);
    await Promise.all(nodes.map((node) => node.call("CONFIG", "SET", "cluster-node-timeout", ms)));
  }

  /** The nodes that call themselves masters; dead nodes are left out. */
  async masters(): Promise<RedisServer[]> {
    const roles = await Promise.allSettled(this.nodes.map((node) => node.call("ROLE")));
    return this.nodes.filter((_, i) => {
      const role = roles[i];
      return role?.status === "fulfilled" && Array.isArray(role.value) && role.value[0] === "master";
    });
  }

  /** The master of a key, as one node says. */
  async masterBy(node: RedisServer, key: string): Promise<RedisServer> {
    const slot = Number(await node.call("CLUSTER", "KEYSLOT", key));
    const ranges = await node.call("CLUSTER", "SLOTS");
    for (const range of Array.isArray(ranges) ? ranges : []) {
      if (!Array.isArray(range)) continue;
      const [first, last, master] = range;
      if (Number(first) > slot || slot > Number(last) || !Array.isArray(master)) continue;
      const server = this.nodes.find(({ port }) => port === master[1]);
      if (server !== undefined) return server;
    }
    throw new Error(`node ${node.port} knows no master of slot ${slot}`);
  }
}
