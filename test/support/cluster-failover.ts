/** Failovers of a running cluster: asked for, or forced by the death of a master; and the way back of the one that died. */
import type { RedisCluster } from "./redis-cluster.js";
import type { RedisServer } from "./redis-server.js";
import { until } from "./until.js";

/** A replica notices, asks the others and is elected; then it has to get round. */
const TIMEOUT = 20_000;
const EVERY = 20;
/**
 * Redis gives a failover up that takes longer than five seconds, as it may on a busy machine. Masters do not vote about one node
 * twice within two node time-outs, and a replica that lost asks again after four.
 */
const ABORTED = 7_000;
const ATTEMPTS = 5;

export interface Failover {
  readonly before: RedisServer;
  readonly after: RedisServer;
  /** `performance.now()` when the old master could answer nobody any more, and when all knew the new one. */
  readonly diedAt: number;
  readonly knownAt: number;
}

/** CLUSTER FAILOVER on a replica of the key's master, which hands over all it has and becomes a replica. */
export async function politeFailover(cluster: RedisCluster, key: string): Promise<Failover> {
  // Masters vote about the same node only once in two node time-outs.
  await cluster.makeHasty();
  const failover = await calmFailover(cluster, key);
  await cluster.makeCalm();
  return failover;
}

/** Likewise, and nobody who stands still meanwhile is replaced. */
export async function calmFailover(cluster: RedisCluster, key: string): Promise<Failover> {
  const before = await cluster.masterFor(key);
  const replica = await replicaOf(cluster, before);
  await untilInStep(replica);
  return askFor(["CLUSTER", "FAILOVER"], cluster, key, { before, replica });
}

/** CLUSTER FAILOVER FORCE on a replica whose master has been killed: nobody waits for the others to notice. */
export function forcedFailover(
  cluster: RedisCluster,
  key: string,
  parts: { readonly before: RedisServer; readonly replica: RedisServer },
): Promise<Failover> {
  return askFor(["CLUSTER", "FAILOVER", "FORCE"], cluster, key, parts);
}

async function askFor(
  command: readonly string[],
  cluster: RedisCluster,
  key: string,
  { before, replica }: { readonly before: RedisServer; readonly replica: RedisServer },
): Promise<Failover> {
  for (let attempt = 1; ; attempt++) {
    const diedAt = performance.now();
    await replica.call(...command);
    try {
      return await untilKnown(cluster, key, before, diedAt, ABORTED);
    } catch (error) {
      if (attempt === ATTEMPTS) throw error;
    }
  }
}

/** Kills the key's master, unless that was done, and waits until a replica has taken over. */
export async function hardFailover(
  cluster: RedisCluster,
  key: string,
  master?: RedisServer,
): Promise<Failover> {
  const before = master ?? (await cluster.masterFor(key));
  await before.kill();
  return untilTakenOver(cluster, key, before, performance.now());
}

/** Has a master replaced that does not answer any more; resolves when another one reigns. */
export async function untilTakenOver(
  cluster: RedisCluster,
  key: string,
  before: RedisServer,
  diedAt: number,
): Promise<Failover> {
  await cluster.makeHasty(before);
  const failover = await untilKnown(cluster, key, before, diedAt, TIMEOUT);
  await cluster.makeCalm(before);
  return failover;
}

/** Resolves when all nodes that answer, but the old master, name another one of the key. */
async function untilKnown(
  cluster: RedisCluster,
  key: string,
  before: RedisServer,
  diedAt: number,
  timeout: number,
): Promise<Failover> {
  const after = await until(
    `another master than ${before.port} is known`,
    async () => {
      const others = cluster.nodes.filter((node) => node !== before);
      const answers = await Promise.allSettled(others.map((node) => cluster.masterBy(node, key)));
      const named = new Set(answers.flatMap((each) => (each.status === "fulfilled" ? [each.value] : [])));
      const [master] = named;
      return named.size === 1 && master !== before && master;
    },
    { timeout, every: EVERY },
  );
  if (!after) throw new Error("no master");
  return { before, after, diedAt, knownAt: performance.now() };
}

/** Starts a killed node again; the others make a replica of it. Resolves when it has its copy. */
export async function rejoin(cluster: RedisCluster, node: RedisServer): Promise<void> {
  await node.restart();
  await untilInStep(node);
  await until(
    `all know that ${node.port} is back`,
    async () => {
      const answers = await Promise.all(cluster.nodes.map((each) => each.call("CLUSTER", "NODES")));
      return answers.every((text) => !/\bfail\??\b/.test(String(text).replaceAll("nofailover", "")));
    },
    { timeout: TIMEOUT, every: EVERY },
  );
}

/** A replica of that master, by the master's own word. */
export async function replicaOf(cluster: RedisCluster, master: RedisServer): Promise<RedisServer> {
  const found = await until(`${master.port} has a replica`, async () => {
    const info = await master.info("replication");
    const port = Number(/\bport=(\d+)/.exec(info.get("slave0") ?? "")?.[1]);
    return cluster.nodes.find((node) => node.port === port);
  });
  if (found === undefined) throw new Error("no replica");
  return found;
}

/** Resolves when the replica has all that the master had when this was called. */
export async function untilReplicated(master: RedisServer, replica: RedisServer): Promise<void> {
  const wanted = Number((await master.info("replication")).get("master_repl_offset"));
  await until(
    `${replica.port} has what ${master.port} had`,
    async () => Number((await replica.info("replication")).get("slave_repl_offset")) >= wanted,
    { timeout: TIMEOUT, every: EVERY },
  );
}

/** Resolves when it is a replica that has all that its master has. */
export async function untilInStep(replica: RedisServer): Promise<void> {
  await until(
    `${replica.port} is a replica in step`,
    async () => {
      const info = await replica.info("replication");
      return info.get("role") === "slave" && info.get("master_link_status") === "up";
    },
    { timeout: TIMEOUT, every: EVERY },
  );
}
