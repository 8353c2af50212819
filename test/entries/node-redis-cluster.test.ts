/** Locks on clients of node-redis for a cluster. */
import { describe, expect, test, vi } from "vitest";
import type { OwnCluster } from "../../src/entries/node-redis/own-cluster.js";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient } from "../../src/index.js";
import type { SubscriberConnection } from "../../src/redis/connection.js";
import { failure, untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  forTest,
  moveSlot,
  named,
  needSharded,
  nodeRedis,
  PATIENCE,
  politeFailover,
  startCluster,
  startClusterProxy,
  startProxy,
  type TestClient,
  UNHURRIED,
  until,
} from "../support/index.js";
import { namesOn } from "../topology/cluster-crew.js";
import { Clients, expectLeftToItsUser, FAR, twoClients, VERSIONS } from "./node-redis-support.js";

const clients = new Clients();

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));

/** What the tests read of a cluster's client. */
interface UserCluster extends TestClient {
  readonly masters: readonly { readonly client?: { readonly isReady: boolean } }[];
  readonly _slots: { rediscover(): Promise<void> };
}

function make(options: object = {}, redis = nodeRedis(6), nodes = cluster.nodes): UserCluster {
  const rootNodes = nodes.map(({ host, port }) => ({ socket: { host, port } }));
  return clients.add(redis.cluster({ rootNodes, ...options }));
}

describe.each(VERSIONS)("%s", (_, redis) => {
  test("the end of the library's connections is no reason to look where the slots are [B195]", async () => {
    const user = make({}, redis);
    const own = (fromNodeRedis(user) as unknown as OwnCluster).duplicate();
    await own.call("GET", "a");
    const looks = vi.spyOn(Object.getPrototypeOf(user._slots) as typeof user._slots, "rediscover");
    own.disconnect();
    await until("the connections have ended", () => own.status === "end");
    expect(looks).not.toHaveBeenCalled();
    looks.mockRestore();
  });
});

test.for([
  { version: 5 as const, RESP: 2 },
  { version: 6 as const, RESP: 3 },
])(
  "a subscription that the server ends while another one begins is told as a lost connection: redis $version, RESP $RESP [B193]",
  async ({ version, RESP }, context) => {
    await needSharded(true, context);
    const [master] = await cluster.masters();
    if (!master) throw new Error("no master");
    await using proxy = await startProxy(master);
    const socket = { host: proxy.host, port: proxy.port };
    const user = clients.add(nodeRedis(version).client({ socket, RESP }));
    const subscriber = fromNodeRedis(user).duplicate() as SubscriberConnection;
    const [moving = "", staying = ""] = await namesOn(master, `${RESP} moving`, 2);
    await subscriber.ssubscribe(moving);
    let lost = false;
    subscriber.on("close", () => {
      lost = true;
    });
    proxy.stall();
    const begun = subscriber.ssubscribe(staying).catch(() => {});
    await moveSlot(cluster, moving);
    proxy.restore();
    await until("the loss is told", () => lost);
    await begun;
    subscriber.disconnect();
  },
);

test("a client is connected by the first call and otherwise left to its user, whose close touches no lock", async () => {
  await expectLeftToItsUser(() => make());
});

test("all masters are listed and asked, also by the first call on a connection that an earlier client has left [B213]", async () => {
  const connection = fromNodeRedis(make());
  const first = new LockClient(connection, UNHURRIED);
  await first.getLock("left behind").run(() => {});
  await first.close();
  const locks = forTest(new LockClient(connection, UNHURRIED));
  const listed = async () => {
    const names: string[] = [];
    for await (const { name } of locks.list({ match: "listed*" })) names.push(name);
    return names.sort();
  };
  expect(await listed()).toEqual([]);
  await locks.ready();
  const names = Array.from({ length: 12 }, (_, i) => `listed ${i}`);
  await Promise.all(names.map((name) => locks.getLock(name).lock()));
  expect(await listed()).toEqual([...names].sort());
  expect(await locks.inspect("listed 0")).toMatchObject({ kind: "lock", waiters: [] });
  const semaphore = locks.getSemaphore("desks");
  await semaphore.trySetPermits(1);
  await semaphore.run(() => {});
});

test.each(["auto", false] as const)(
  "replicas acknowledge a grant, also of the first call, which connects the client, or it rejects REPLICAS: shardedPubSub %s [B168]",
  async (shardedPubSub) => {
    const locksWith = (replicas: number, replicasTimeout: number) => {
      const options = { ...UNHURRIED, shardedPubSub, replicas, replicasTimeout };
      return forTest(new LockClient(fromNodeRedis(make()), options));
    };
    const locks = locksWith(1, PATIENCE);
    for (const name of ["a", "b", "c", "d"]) await locks.getLock(`copied ${name}`).run(() => {});
    const tooMany = failure(locksWith(2, 100).getLock("copied a").lock());
    expect(await tooMany).toMatchObject({ code: "REPLICAS", required: 2 });
  },
);

test.each([
  ["answers", false],
  ["is away", true],
])(
  "a look for the slots leaves no client behind when the connection ends: a master %s [B195]",
  async (_, isAway) => {
    await using proxy = await startClusterProxy(cluster);
    const rootNodes = proxy.startupNodes.map((socket) => ({ socket }));
    const user = make({ rootNodes, nodeAddressMap: proxy.natMap });
    const own = (fromNodeRedis(user) as unknown as OwnCluster).duplicate();
    await own.connect();
    const isReady = () => user.masters.filter(({ client }) => client?.isReady).length === 3;
    await until("the user's is connected, too", isReady);
    user.destroy();
    const [asked, other] = await cluster.masters();
    const [askedProxy, otherProxy] = [asked, other].map((node) => proxy.proxies.get(node?.port ?? 0));
    if (!askedProxy || !otherProxy) throw new Error("no proxies");
    if (isAway) otherProxy.refuse();
    askedProxy.clear();
    askedProxy.delayReplies(PATIENCE, named("CLUSTER"));
    own.refreshSlotsCache(`${asked?.host}:${asked?.port}`);
    await until("it looks", () => askedProxy.count(named("CLUSTER")) > 0);
    own.disconnect();
    askedProxy.restore();
    const all = [...proxy.proxies.values()];
    await until("no socket is open", () => all.every(({ openConnections }) => openConnections === 0));
  },
);

test("a command for a master that has left is trouble of the connection, so that it is tried again [B196]", async () => {
  const own = (fromNodeRedis(make()) as unknown as OwnCluster).duplicate();
  await own.connect();
  const { host, port } = await cluster.masterFor("left");
  const isLeaving = ({ address }: { address: string }) => address === `${host}:${port}`;
  const source = own.nodes().find(isLeaving);
  await politeFailover(cluster, "left");
  await until("the connection knows", () => {
    own.refreshSlotsCache();
    return !own.nodes().some(isLeaving);
  });
  // What is thrown would be a mistake of the caller.
  const asked = source?.call("PING") as Promise<unknown>;
  expect(await failure(asked)).toMatchObject({ message: expect.stringContaining("is known") });
  own.disconnect();
});

test("a killed master's lock is kept by its replica, and its waiter is woken there", async () => {
  await using own = await startCluster({ masters: 3, replicas: 1 });
  const [ours, theirs] = twoClients(() => fromNodeRedis(make({}, nodeRedis(6), own.nodes)), {
    pollCap: 600_000,
    watchdogTimeout: 60_000,
  });
  const hold = await ours.getLock("kept").lock();
  const { done } = await untilWaiting(theirs, () => theirs.getLock("kept").lock());
  const master = await own.masterFor("kept");
  await until("its replica has it", async () => {
    const copies = own.nodes.map(async (node) => {
      const isIts = (await node.info("replication")).get("master_port") === String(master.port);
      return isIts ? Number(await node.call("DBSIZE")) : 0;
    });
    return Math.max(...(await Promise.all(copies))) > 0;
  });
  await own.makeHasty();
  await master.kill();
  const soon = { timeout: 2 * PATIENCE };
  await until("there is another master", async () => (await own.masterFor("kept")) !== master, soon);
  await until("it can be extended", () => hold.extend(60_000).then(() => true), soon);
  expect(hold.isHeld).toBe(true);
  await until("it can be given back", () => hold.unlock().then(() => true), soon);
  await (await done).unlock();
});

test.each(["auto", false] as const)(
  "a slot that moves costs no hold and no wake-up: shardedPubSub %s",
  async (shardedPubSub) => {
    const [ours, theirs] = twoClients(() => fromNodeRedis(make()), { ...FAR, shardedPubSub });
    for (let round = 0; round < 2; round++) {
      const hold = await ours.getLock("moving").lock();
      const { done } = await untilWaiting(theirs, () => theirs.getLock("moving").lock());
      await moveSlot(cluster, "moving");
      await hold.extend(60_000);
      await hold.unlock();
      await (await done).unlock();
    }
  },
);
