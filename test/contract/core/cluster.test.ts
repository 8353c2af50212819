/** The core of the contract on a cluster: each master has some of the locks, and a replica. */
import { Cluster as ValkeyCluster } from "iovalkey";
import { fromNodeRedis } from "../../../src/entries/node-redis.js";
import type { RedisConnection } from "../../../src/index.js";
import { failOnUnhandledRejections } from "../../faults/harness.js";
import { findRedis, forFile, hasShardedPubSub, nodeRedis, startCluster } from "../../support/index.js";
import { FENCED, MULTI, PLAIN, READ } from "../../support/place/index.js";
import { coreRows, kept } from "./rows.js";

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));

function byNodeRedis(version: 5 | 6, options: object = {}): RedisConnection {
  const rootNodes = cluster.nodes.map(({ host, port }) => ({ socket: { host, port } }));
  return fromNodeRedis(kept(nodeRedis(version).cluster({ rootNodes, ...options })));
}

function byValkey(): RedisConnection {
  const nodes = cluster.nodes.map(({ host, port }) => ({ host, port }));
  return kept(new ValkeyCluster(nodes)) as unknown as RedisConnection;
}

/** Names with spaces, with braces, and not in ASCII: all keys of a lock share a slot, and its messages arrive. */
const endings = ["order 7", "{user}:7", "a{b}c:d", "größe"];
const { engine, version } = await findRedis();
const missing = (await hasShardedPubSub()) ? undefined : `${engine} ${version} has no sharded pub/sub`;

coreRows([
  // The members of a MultiLock have names, and so masters, of their own.
  { title: "ioredis", connect: () => cluster.connect(), endings, kinds: [PLAIN, READ, FENCED, MULTI] },
  {
    title: "ioredis, messages by SPUBLISH",
    connect: () => cluster.connect(),
    options: { shardedPubSub: true },
    endings,
    missing,
  },
  {
    title: "ioredis, messages by PUBLISH",
    connect: () => cluster.connect(),
    options: { shardedPubSub: false },
    endings,
  },
  { title: "iovalkey", connect: byValkey },
  { title: "redis 6", connect: () => byNodeRedis(6) },
  { title: "redis 5", connect: () => byNodeRedis(5) },
  {
    title: "redis 6, which connects to nodes when it needs them, messages by PUBLISH",
    connect: () => byNodeRedis(6, { minimizeConnections: true }),
    options: { shardedPubSub: false },
  },
]);
