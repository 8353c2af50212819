/**
 * Moves slots between the masters of a running cluster, in the steps of `redis-cli --cluster reshard`. Between two steps
 * a test can look at what clients meet while only some of a lock's keys have moved.
 */
import type { RedisCluster } from "./redis-cluster.js";
import type { RedisServer } from "./redis-server.js";
import { until } from "./until.js";

const MIGRATE_TIMEOUT = 5_000;
const AT_ONCE = 100;

export interface SlotMove {
  /** A key that lies in the slot. */
  readonly key: string;
  readonly slot: number;
  readonly from: RedisServer;
  readonly to: RedisServer;
}

/** Moves the slot of a key, and all keys in it, to the master `to`, or to any other master. */
export async function moveSlot(cluster: RedisCluster, key: string, to?: RedisServer): Promise<SlotMove> {
  const move = await openMove(cluster, key, to);
  await moveKeys(move);
  await closeMove(cluster, move);
  return move;
}

/** The first step: from now on clients are sent to the new master for keys that the old master does not have. */
export async function openMove(cluster: RedisCluster, key: string, to?: RedisServer): Promise<SlotMove> {
  const from = await cluster.masterFor(key);
  const target = to ?? (await cluster.masters()).find((node) => node !== from);
  if (target === undefined || target === from) throw new Error(`the slot of ${key} has nowhere to move to`);
  const slot = Number(await from.call("CLUSTER", "KEYSLOT", key));
  const [fromId, toId] = await Promise.all([idOf(from), idOf(target)]);
  await target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", fromId);
  await from.call("CLUSTER", "SETSLOT", slot, "MIGRATING", toId);
  return { key, slot, from, to: target };
}

/** The second step: moves all keys of the slot that the old master has, or only the named ones. */
export async function moveKeys({ slot, from, to }: SlotMove, only?: readonly string[]): Promise<void> {
  for (;;) {
    const keys = only ?? (await keysIn(from, slot));
    if (keys.length > 0) {
      await from.call("MIGRATE", to.host, to.port, "", 0, MIGRATE_TIMEOUT, "KEYS", ...keys);
    }
    if (only !== undefined || keys.length === 0) return;
  }
}

/**
 * The last step: the new master owns the slot. Resolves when all nodes that answer say so and agree on its config
 * epoch. Without that agreement the next move could get the same epoch; the conflict would take the slot, and its keys,
 * away again.
 */
export async function closeMove(cluster: RedisCluster, { slot, from, to, key }: SlotMove): Promise<void> {
  const toId = await idOf(to);
  const others = (await cluster.masters()).filter((node) => node !== to && node !== from);
  for (const node of [to, from, ...others]) await node.call("CLUSTER", "SETSLOT", slot, "NODE", toId);
  await until(`all know that ${to.port} has slot ${slot}`, async () => {
    const views = await Promise.allSettled(cluster.nodes.map((node) => viewOf(cluster, node, key)));
    const answers = views.flatMap((view) => (view.status === "fulfilled" ? [view.value] : []));
    const epochs = new Set(answers.map(({ epoch }) => epoch));
    return epochs.size === 1 && answers.every(({ master }) => master === to);
  });
}

async function viewOf(cluster: RedisCluster, node: RedisServer, key: string) {
  const [master, info] = await Promise.all([cluster.masterBy(node, key), node.call("CLUSTER", "INFO")]);
  return { master, epoch: /cluster_current_epoch:(\d+)/.exec(String(info))?.[1] };
}

async function keysIn(node: RedisServer, slot: number): Promise<string[]> {
  const keys = await node.call("CLUSTER", "GETKEYSINSLOT", slot, AT_ONCE);
  return Array.isArray(keys) ? keys.map(String) : [];
}

async function idOf(node: RedisServer): Promise<string> {
  return String(await node.call("CLUSTER", "MYID"));
}
