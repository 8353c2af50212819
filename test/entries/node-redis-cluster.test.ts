/** Locks on clients of node-redis for a cluster. */
import { describe, expect, test, vi } from "vitest";
import type { ClusterOfNodes } from "../../src/entries/node-redis/cluster.js";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient } from "../../src/index.js";
import type { SubscriberConnection } from "../../src/redis/connection.js";
import { failure, untilWaiting } from "../contract/helpers.js";
import { PLAIN } from "../contract/kinds.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  forFile,
  moveSlot,
  named,
  needSharded,
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
import { coreOfTheContract } from "../topology/core.js";
import { Clients, expectConnectedByFirstCall, expectLeftToItsUser, VERSIONS } from "./node-redis-support.js";

const clients = new Clients();

failOnUnhandledRejections();
const cluster = await forFile(startCluster({ masters: 3, replicas: 1 }));

describe.each(VERSIONS)("%s", (version, redis) => {
  const make = (options: object = {}): TestClient =>
    clients.add(
      redis.cluster({
        rootNodes: cluster.nodes.map(({ host, port }) => ({ socket: { host, port } })),
        ...options,
      }),
    );

  coreOfTheContract(`on a cluster with ${version}`, { connect: () => fromNodeRedis(make()) });
  coreOfTheContract(`on a cluster with ${version}, messages to all nodes`, {
    connect: () => fromNodeRedis(make()),
    options: { shardedPubSub: false },
    kinds: [PLAIN],
  });
  coreOfTheContract(`on a cluster with ${version} that connects to nodes when it needs them`, {
    connect: () => fromNodeRedis(make({ minimizeConnections: true })),
    kinds: [PLAIN],
  });

  test("a client that is not connected is connected at the first call, and stays open when the LockClient closes", async () => {
    await expectConnectedByFirstCall(make());
  });

  test("a client that its user is connecting is waited for; one that was closed is not connected again", async () => {
    await expectLeftToItsUser(make(), true);
  });

  test("ready, lists, inspect and semaphores, on all masters", async () => {
    const locks = new LockClient(fromNodeRedis(make()), UNHURRIED);
    await locks.ready();
    const names = Array.from({ length: 12 }, (_, i) => `${version} listed ${i}`);
    const holds = await Promise.all(names.map((name) => locks.getLock(name).lock()));
    const listed: string[] = [];
    for await (const { name } of locks.list({ match: `${version} listed*` })) listed.push(name);
    expect(listed.sort()).toEqual([...names].sort());
    expect(await locks.inspect(names[0] ?? "")).toMatchObject({ kind: "lock", waiters: [] });
    await Promise.all(holds.map((hold) => hold.unlock()));
    const semaphore = locks.getSemaphore(`${version} desks`);
    await semaphore.trySetPermits(1);
    await semaphore.run(() => {});
    await locks.close();
  });

  test("list, as the first call of a client whose connection an earlier client has left [B213]", async () => {
    const connection = fromNodeRedis(make());
    const first = new LockClient(connection, UNHURRIED);
    const name = `${version} left behind`;
    const hold = await first.getLock(name).lock({ lease: 10 * PATIENCE });
    await first.close();
    await until("the connection rests", () => connection.status === "wait");
    const second = new LockClient(connection, UNHURRIED);
    const listed: string[] = [];
    for await (const info of second.list({ match: name })) listed.push(info.name);
    expect(listed).toEqual([]);
    expect(hold.isHeld).toBe(false);
    await second.getLock(name).run(() => {});
    await second.close();
  });

  test.each(["auto", false] as const)(
    "a first call that replicas must acknowledge connects the client: shardedPubSub %s [B168]",
    async (shardedPubSub) => {
      const options = { ...UNHURRIED, shardedPubSub, replicas: 1, replicasTimeout: PATIENCE };
      const locks = new LockClient(fromNodeRedis(make()), options);
      await locks.getLock(`${version} copied at first`).run(() => {});
      await locks.close();
    },
  );

  test("replicas that must acknowledge a grant", async () => {
    const locks = new LockClient(fromNodeRedis(make()), {
      ...UNHURRIED,
      replicas: 1,
      replicasTimeout: PATIENCE,
    });
    const names = Array.from({ length: 8 }, (_, i) => `${version} copied ${i}`);
    await Promise.all(names.map((name) => locks.getLock(name).run(() => {})));
    await locks.close();
    const short = new LockClient(fromNodeRedis(make()), { ...UNHURRIED, replicas: 2, replicasTimeout: 100 });
    expect(await failure(short.getLock(`${version} copied`).lock())).toMatchObject({
      code: "REPLICAS",
      required: 2,
    });
    await short.close();
  });
});

describe.for(VERSIONS)("%s", ([version, redis]) => {
  test.for([2, 3])(
    "a subscription that the server ends while another one begins is told as a lost connection: RESP %i [B193]",
    async (RESP, context) => {
      await needSharded(true, context);
      const [master] = await cluster.masters();
      if (!master) throw new Error("no master");
      await using proxy = await startProxy(master);
      const user = clients.add(redis.client({ socket: { host: proxy.host, port: proxy.port }, RESP }));
      const subscriber = fromNodeRedis(user).duplicate() as SubscriberConnection;
      const [moving = "", staying = ""] = await namesOn(master, `${version} ${RESP} moving`, 2);
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
});

/** What the tests read of a cluster's client. */
interface UserCluster extends TestClient {
  readonly masters: readonly UserNode[];
  readonly _slots: { rediscover(): Promise<void> };
  nodeClient(node: UserNode): Promise<unknown>;
}

interface UserNode {
  readonly address: string;
  readonly client?: TestClient;
}

const isClosed = ({ client }: UserNode) => !client?.isOpen;

describe.each(VERSIONS)("%s, when the client closes", (_, redis) => {
  test("the end of the connections of the library is no reason to look where the slots are [B195]", async () => {
    const rootNodes = cluster.nodes.map(({ host, port }) => ({ socket: { host, port } }));
    const user = clients.add(redis.cluster({ rootNodes })) as UserCluster;
    const connection = fromNodeRedis(user);
    const locks = new LockClient(connection, UNHURRIED);
    await locks.getLock("a").run(() => {});
    const looks = vi.spyOn(user._slots, "rediscover");
    await locks.close();
    await until("the connections have ended", () => connection.status === "wait");
    expect(looks).not.toHaveBeenCalled();
  });

  test.each([
    ["answers", false],
    ["is away", true],
  ])(
    "a look for the slots that is under way leaves no client behind: a master %s [B195]",
    async (__, isAway) => {
      await using proxy = await startClusterProxy(cluster);
      const rootNodes = proxy.startupNodes.map((socket) => ({ socket }));
      const user = clients.add(redis.cluster({ rootNodes, nodeAddressMap: proxy.natMap })) as UserCluster;
      await user.connect();
      const connection = fromNodeRedis(user) as unknown as ClusterOfNodes;
      const [asked, other] = await cluster.masters();
      const [askedProxy, otherProxy] = [asked, other].map((node) => proxy.proxies.get(node?.port ?? 0));
      if (!askedProxy || !otherProxy) throw new Error("no proxies");
      if (isAway) otherProxy.refuse();
      askedProxy.clear();
      askedProxy.delayReplies(PATIENCE, named("CLUSTER"));
      connection.refreshSlotsCache(`${asked?.host}:${asked?.port}`);
      await until("it looks", () => askedProxy.count(named("CLUSTER")) > 0);
      user.destroy();
      askedProxy.restore();
      await until(
        "it has made clients, and ended them",
        () => user.masters[0] && user.masters.every(isClosed),
      );
      const all = [...proxy.proxies.values()];
      await until("no socket is open", () => all.every(({ openConnections }) => openConnections === 0));
    },
  );
});

describe.each(VERSIONS)("%s, when a node has left", (_, redis) => {
  test.each([
    ["an attempt to connect to it", false],
    ["one of a client that connects to nodes when it needs them", true],
  ])("%s makes no client of the cluster for it [B196]", async (__, minimizeConnections) => {
    const rootNodes = cluster.nodes.map(({ host, port }) => ({ socket: { host, port } }));
    const user = clients.add(redis.cluster({ rootNodes, minimizeConnections })) as UserCluster;
    await user.connect();
    const connection = fromNodeRedis(user) as unknown as ClusterOfNodes;
    const { host, port } = await cluster.masterFor("left");
    const isLeaving = ({ address }: { address: string }) => address === `${host}:${port}`;
    const node = user.masters.find(isLeaving);
    const others = user.masters.filter((each) => each !== node);
    await Promise.all(others.map((each) => user.nodeClient(each)));
    const source = connection.nodes().find(isLeaving);
    const own = source?.duplicate();
    if (!node || !source || !own) throw new Error("no such node");
    await politeFailover(cluster, "left");
    await until("the cluster's client knows", () => {
      connection.refreshSlotsCache();
      return !user.masters.some(isLeaving);
    });
    let failed = false;
    own.on("error", () => {
      failed = true;
    });
    own.connect().catch(() => {});
    await until("it is tried", () => failed || own.status === "ready");
    expect(isClosed(node)).toBe(true);
    own.disconnect();
    // Trouble of the connection, for which a command is tried again; what is thrown would be a mistake of the caller.
    const asked = source.call("PING");
    expect(await failure(asked)).toMatchObject({ message: expect.stringContaining("is known") });
  });
});

describe.each(VERSIONS)("%s, when masters go", (_, redis) => {
  test("a killed master's lock is kept by its replica, and its waiter is woken there", async () => {
    await using own = await startCluster({ masters: 3, replicas: 1 });
    const rootNodes = own.nodes.map(({ host, port }) => ({ socket: { host, port } }));
    const [one, two] = [0, 1].map(() => clients.add(redis.cluster({ rootNodes })));
    if (!one || !two) throw new Error("no clients");
    const options = { pollCap: 600_000, watchdogTimeout: 60_000 };
    const [ours, theirs] = [one, two].map((client) => new LockClient(fromNodeRedis(client), options));
    if (!ours || !theirs) throw new Error("no clients");
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
    await until("there is another master", async () => (await own.masterFor("kept")) !== master, {
      timeout: 2 * PATIENCE,
    });
    await until("it can be extended", () => hold.extend(60_000).then(() => true), { timeout: 2 * PATIENCE });
    expect(hold.isHeld).toBe(true);
    await until("it can be given back", () => hold.unlock().then(() => true), { timeout: 2 * PATIENCE });
    await (await done).unlock();
    await Promise.all([ours.close({ timeout: 0 }), theirs.close({ timeout: 0 })]);
  });

  test.each([["auto" as const], [false]])(
    "a slot that moves costs no hold and no wake-up: shardedPubSub %s",
    async (shardedPubSub) => {
      await using own = await startCluster({ masters: 2 });
      const rootNodes = own.nodes.map(({ host, port }) => ({ socket: { host, port } }));
      const [ours, theirs] = [0, 1].map(() => {
        const options = { ...UNHURRIED, pollCap: 600_000, watchdogTimeout: 60_000, shardedPubSub };
        return new LockClient(clients.connection(redis.cluster({ rootNodes })), options);
      });
      if (!ours || !theirs) throw new Error("no clients");
      for (let round = 0; round < 4; round++) {
        const hold = await ours.getLock("moving").lock();
        const { done } = await untilWaiting(theirs, () => theirs.getLock("moving").lock());
        await moveSlot(own, "moving");
        await hold.extend(60_000);
        await hold.unlock();
        await (await done).unlock();
      }
      await Promise.all([ours.close({ timeout: 0 }), theirs.close({ timeout: 0 })]);
    },
  );
});
