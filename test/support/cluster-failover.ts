/** Failovers of a running cluster: requested, or forced by the death of a master; and the return of the dead master. */
import type { RedisCluster } from "./redis-cluster.js";
import type { RedisServer } from "./redis-server.js";
import { until } from "./until.js";

/** Time for a whole failover: a replica notices, asks the masters, is elected, and all nodes learn of it. */
const TIMEOUT = 20_000;
const EVERY = 20;
/**
 * Redis gives up a failover that takes longer than five seconds, which can happen on a busy machine. After that,
 * masters do not vote about the same node again for two node time-outs, and a replica that lost asks again after four.
 */
const ABORTED = 7_000;
const ATTEMPTS = 5;

export interface Failover {
  readonly before: RedisServer;
  readonly after: RedisServer;
  /** `performance.now()` when the old master could no longer answer, and when all nodes knew the new one. */
  readonly diedAt: number;
  readonly knownAt: number;
}

/** CLUSTER FAILOVER on a replica of the key's master: the master hands all its data over and becomes a replica. */
export async function politeFailover(cluster: RedisCluster, key: string): Promise<Failover> {
  // Masters vote about the same node only once in two node time-outs, so the time-out is made short first.
  await cluster.makeHasty();
  const failover = await calmFailover(cluster, key);
  await cluster.makeCalm();
  return failover;
}

/** The same at the usual node time-out: a node that stands still meanwhile is not replaced. */
export async function calmFailover(cluster: RedisCluster, key: string): Promise<Failover> {
  const before = await cluster.masterFor(key);
  const replica = await replicaOf(cluster, before);
  await untilInStep(replica);
  return askFor(["CLUSTER", "FAILOVER"], cluster, key, { before, replica });
}

/** CLUSTER FAILOVER FORCE on a replica whose master has been killed: it need not wait until the others notice. */
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

/** Kills the key's master unless the caller has done so, and waits until a replica has taken over. */
export async function hardFailover(
  cluster: RedisCluster,
  key: string,
  master?: RedisServer,
): Promise<Failover> {
  const before = master ?? (await cluster.masterFor(key));
  await before.kill();
  return untilTakenOver(cluster, key, before, performance.now());
}

/** Has the cluster replace a master that no longer answers; resolves when all know the new master. */
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

/** Resolves when all nodes that answer, except the old master, name another master for the key. */
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

/** Restarts a killed node, which the others make a replica. Resolves when it has its copy of the data. */
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

/** A replica of that master, as the master itself reports it. */
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

/** Resolves when this server is a replica that has all data of its master. */
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
