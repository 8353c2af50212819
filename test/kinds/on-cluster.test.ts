/** Each kind on a cluster: all its keys share a slot, and its messages arrive, sharded or classic. */
import type { Cluster } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient } from "../../src/index.js";
import { needSharded, type RedisCluster, startCluster } from "../support/index.js";

let cluster: RedisCluster;
const clients: LockClient[] = [];

beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
  await cluster?.stop();
});

type Make = (client: LockClient, name: string) => Lock;

const KINDS: [kind: string, make: Make, rival: Make][] = [
  ["fair", (client, name) => client.getFairLock(name), (client, name) => client.getFairLock(name)],
  ["fenced", (client, name) => client.getFencedLock(name), (client, name) => client.getFencedLock(name)],
  [
    "read",
    (client, name) => client.getReadWriteLock(name).readLock(),
    (client, name) => client.getReadWriteLock(name).writeLock(),
  ],
  [
    "write",
    (client, name) => client.getReadWriteLock(name).writeLock(),
    (client, name) => client.getReadWriteLock(name).readLock(),
  ],
];
const NAMES = ["order 7", "{user}:7", "a{b}c:d", "größe"];

function connect(shardedPubSub: boolean): LockClient {
  const redis: Cluster = cluster.connect();
  // So far away that only a message can wake anybody.
  const client = new LockClient(redis, { shardedPubSub, pollCap: 60_000 });
  clients.push(client);
  return client;
}

describe.each([true, false])("with sharded pub/sub %s", (sharded) => {
  beforeEach((context) => needSharded(sharded, context));

  test.each(KINDS)("a waiter for the %s lock is woken by a message", async (kind, make, rival) => {
    const [ours, theirs] = [connect(sharded), connect(sharded)];
    for (const name of NAMES.map((each) => `${kind} ${sharded} ${each}`)) {
      const held = await rival(theirs, name).lock();
      const waits = new Promise((resolve) => ours.once("waiting", resolve));
      const asked = make(ours, name).lock() as Promise<Hold>;
      await waits;
      await held.unlock();
      const hold = await asked;
      const nested = await make(ours, name).lock({ owner: hold });
      expect(await make(ours, name).getHoldCount({ owner: hold })).toBe(2);
      await nested.unlock();
      await hold.unlock();
      expect(await make(theirs, name).isLocked()).toBe(false);
    }
  });
});
