/** Contract section 1: the subscriber connection ends with the connection it was made from, and comes back with it. */
import { beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import {
  forFile,
  needSharded,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  until,
} from "../support/index.js";
import { connectionsOf, connectionsSince, untilWaiting } from "./helpers.js";

const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster())]);

/** Resolves when that many connections of these servers listen to a channel. */
async function untilListening(servers: readonly RedisServer[], count: number): Promise<void> {
  await until(`${count} connections listen`, async () => {
    const all = (await Promise.all(servers.map(connectionsOf))).flat();
    return all.filter(({ subscribed }) => subscribed > 0).length === count;
  });
}

/** Times so long that only a message can wake a waiter. */
const NEVER = { pollCap: 3_600_000, watchdogTimeout: 3_600_000 };

const STANDALONE = {
  connect: () => server.connect(),
  servers: () => [server],
  shardedPubSub: "auto" as const,
};
const CLUSTER = { connect: () => cluster.connect(), servers: () => cluster.nodes };

describe.each([
  { where: "standalone", ...STANDALONE },
  { where: "on a cluster with sharded pub/sub", ...CLUSTER, shardedPubSub: true },
  { where: "on a cluster with classic pub/sub", ...CLUSTER, shardedPubSub: false },
])("$where", ({ where, connect, servers, shardedPubSub }) => {
  const options = { ...NEVER, shardedPubSub };
  beforeEach((context) => needSharded(shardedPubSub, context));

  test.each(["quit", "disconnect"] as const)("after %s() nobody listens for it any more", async (end) => {
    const redis = connect();
    const client = new LockClient(redis, options);
    const lock = client.getLock(`${where} ${end}`);
    await lock.lock();
    const { done } = await untilWaiting(client, () => lock.lock());
    done.catch(() => {});
    await untilListening(servers(), 1);
    await redis[end]();
    await untilListening(servers(), 0);
    await client.close({ timeout: 0 });
  });

  test("when it is connected again, who waits is woken [B23]", async () => {
    const redis = connect();
    const client = new LockClient(redis, options);
    await using other = new LockClient(connect(), options);
    const name = `${where} again`;
    const hold = await other.getLock(name).lock();
    const { done } = await untilWaiting(client, () => client.getLock(name).lock());
    await untilListening(servers(), 1);
    redis.disconnect();
    await untilListening(servers(), 0);
    await redis.connect();
    await untilListening(servers(), 1);
    await hold.unlock();
    await (await done).unlock();
    await client.close();
  });
});

test("the connection for replicas comes again as well", async () => {
  const before = await connectionsOf(server);
  const redis = server.connect();
  const client = new LockClient(redis, { replicas: 1, replicasTimeout: 1 });
  const refused = () =>
    expect(client.getLock("replicated").lock()).rejects.toMatchObject({ code: "REPLICAS" });
  await refused();
  expect(await connectionsSince(before, server)).toHaveLength(2);
  redis.disconnect();
  await until("both are gone", async () => (await connectionsSince(before, server)).length === 0);
  await redis.connect();
  await refused();
  await client.close({ timeout: 0 });
  redis.disconnect();
});

describe("close({ timeout: 0 }) does not wait for a Redis that is away", () => {
  // Redis may be silent for a tenth of the time-out; the whole time-out is longer than the test.
  const options = { commandTimeout: 60_000 };

  test.each(["refuse", "blackhole"] as const)("%s", async (fault) => {
    await using proxy = await startProxy(server);
    const redis = proxy.connect();
    const client = new LockClient(redis, options);
    const hold = await client.getLock(`away ${fault}`).lock();
    const { done } = await untilWaiting(client, () => client.getLock(`away ${fault}`).lock());
    const refused = expect(done).rejects.toMatchObject({ code: "CLIENT_CLOSED" });
    proxy[fault]();
    if (fault === "refuse") await until("it is noticed", () => redis.status !== "ready");
    await client.close({ timeout: 0 });
    await refused;
    expect(hold.isHeld).toBe(false);
    redis.disconnect();
  });
});
