/**
 * Contract section 1: the client makes its own connections from the one that it is given, and whatever becomes of that one
 * touches no lock.
 */
import type { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { expect, onTestFinished, test } from "vitest";
import { LockClient, type RedisConnection } from "../../src/index.js";
import {
  anyCommand,
  type ClientOptions,
  forFile,
  forTest,
  startCluster,
  startProxy,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";
import { connectionsOf, connectionsSince, failure, untilWaiting } from "./helpers.js";

const [server, cluster] = await Promise.all([forFile(startRedis()), forFile(startCluster())]);
const direct = server.connect();

/** Times so long that only a message can wake a waiter. */
const NEVER = { ...UNHURRIED, pollCap: 3_600_000 };

type Given = Redis & RedisConnection;

const noop = () => {};

/** What its user may do to the connection. */
const SPOILS: readonly [what: string, spoil: (redis: Given) => unknown, options?: ClientOptions][] = [
  ["has MULTI open", (redis) => redis.multi({ pipeline: false })],
  ["has selected another database", (redis) => redis.select(5)],
  ["is in subscriber mode", (redis) => redis.subscribe("news"), { protocol: 2 }],
  ["waits in BLPOP", (redis) => void redis.blpop("nothing comes", 0).catch(noop)],
  ["has been quit", (redis) => redis.quit()],
  ["has been disconnected", (redis) => redis.disconnect()],
  ["was never connected", noop, { lazyConnect: true }],
  [
    "gives up at once, refuses what it cannot send, and loses what was on its way",
    noop,
    {
      retryStrategy: () => null,
      commandTimeout: 1,
      socketTimeout: 1,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      enableAutoPipelining: true,
      stringNumbers: true,
    },
  ],
];

const VERSIONS: readonly [name: string, make: (options: ClientOptions) => Given][] = [
  ["ioredis 6", (options) => server.connect(options) as Given],
  [
    "ioredis 5",
    (options) => {
      const redis = new Redis5({ port: server.port, ...(options as object) });
      redis.on("error", noop);
      onTestFinished(() => redis.disconnect());
      return redis as unknown as Given;
    },
  ],
];

/** All with the newest ioredis; with the older one an open MULTI, and the options. */
const table = VERSIONS.flatMap(([version, make], older) =>
  SPOILS.filter((_, i) => !older || i % (SPOILS.length - 1) === 0).map(([what, spoil, options = {}]) => ({
    version,
    what,
    spoil,
    make: () => make(options),
  })),
);

test.each(table)(
  "$version: a given connection that $what touches no hold, no renewal and no waiter [§1 given-connection-in-use] [F9] [B262]",
  async ({ version, what, spoil, make }) => {
    const redis = make();
    await using client = new LockClient(redis, { ...NEVER, watchdogTimeout: 3_000 });
    await using other = new LockClient(server.connect(), NEVER);
    const name = `${version} ${what}`;
    const [lock, theirs] = [client.getLock(name), other.getLock(name)];
    const before = await lock.lock();
    await spoil(redis);
    expect(await direct.exists(name)).toBe(1);
    await new Promise((resolve) => client.once("renewed", resolve));
    await before.unlock();
    const hold = await theirs.lock();
    const { done } = await untilWaiting(client, () => lock.lock());
    const channel = async () => (await direct.pubsub("CHANNELS", `*${name}*`)).length;
    await until("it listens", async () => (await channel()) === 1);
    await hold.unlock();
    const after = await done;
    expect(await direct.hkeys(name)).toEqual([after.ownerId]);
    await after.unlock();
    // A client that is made of it only now works, too.
    await using late = new LockClient(redis, NEVER);
    await late.getLock(name).run(() => {});
  },
);

test("a connection that listens to MONITOR is one to make others from [§1 given-connection-in-use]", async () => {
  const redis = server.connect();
  const monitor = await redis.monitor();
  onTestFinished(() => monitor.disconnect());
  await using client = new LockClient(monitor, UNHURRIED);
  await client.getLock("monitored").run(async () => expect(await direct.exists("monitored")).toBe(1));
});

test("nothing is sent on the given connection, and it is open after close(), without a listener of the library [§1 own-connections]", async () => {
  await using proxy = await startProxy(server);
  const redis = proxy.connect();
  await redis.ping();
  const listeners = () => redis.eventNames().map((name) => [name, redis.listenerCount(name)]);
  const before = listeners();
  const given = proxy.commands[0]?.connection;
  proxy.clear();
  const client = new LockClient(redis, { ...NEVER, replicas: 0 });
  await client.ready();
  const hold = await client.getLock("own").lock();
  const { done } = await untilWaiting(client, () => client.getLock("own").lock());
  await hold.unlock();
  await (await done).unlock();
  await client.close();
  const own = new Set(proxy.commands.map(({ connection }) => connection));
  expect(own.size).toBe(2);
  expect(own.has(given as number)).toBe(false);
  expect([await redis.ping(), listeners()]).toEqual(["PONG", before]);
});

test("a client has one connection for commands, one for messages and one for replicas, and none after close() [§1 own-connections]", async () => {
  const redis = server.connect();
  await redis.ping();
  const before = await connectionsOf(server);
  const count = async () => (await connectionsSince(before, server)).length;
  for (const [options, all] of [
    [NEVER, 2],
    [{ ...NEVER, replicas: 1, replicasTimeout: 1 }, 3],
  ] as const) {
    const client = new LockClient(redis, options);
    const other = new LockClient(redis, NEVER);
    const hold = await other.getLock("counted").lock();
    const { done } = await untilWaiting(client, () => client.getLock("counted").lock());
    const ended = failure(done);
    await until("it has all", async () => (await count()) === all + 1);
    await client.close({ timeout: 0 });
    expect(await ended).toMatchObject({ code: "CLIENT_CLOSED" });
    await hold.unlock();
    await other.close();
    await until("they are gone", async () => (await count()) === 0);
  }
});

test("on a cluster, too, the given connection may end at any time [§1 given-connection-in-use]", async () => {
  for (const shardedPubSub of ["auto", false] as const) {
    const redis = cluster.connect();
    await using client = new LockClient(redis, { ...NEVER, shardedPubSub });
    await using other = new LockClient(cluster.connect(), { ...NEVER, shardedPubSub });
    const name = `cluster ${shardedPubSub}`;
    const hold = await client.getLock(name).lock();
    await redis.quit();
    await hold.extend(60_000);
    const { done } = await untilWaiting(other, () => other.getLock(name).lock());
    await hold.unlock();
    const theirs = await done;
    const { done: mine } = await untilWaiting(client, () => client.getLock(name).lock());
    await theirs.unlock();
    await (await mine).unlock();
  }
});

test("a master that has become a replica is left at once, for the one that the options name by now [§1 reconnect] [§1 options-read-anew]", async () => {
  const master = forTest(await startRedis());
  const old = forTest(await startRedis());
  const redis = old.connect();
  await using client = new LockClient(redis, { ...UNHURRIED, commandTimeout: 60_000 });
  const lock = client.getLock("moved");
  await (await lock.lock()).unlock();
  await old.call("REPLICAOF", master.host, master.port);
  redis.options.port = master.port;
  await lock.run(async () => expect(await master.call("EXISTS", "moved")).toBe(1));
});

test.each([1, 3])(
  "a connection that has been silent for commandTimeout is closed, and the next calls go by a new one, after %i calls [§1 reconnect]",
  async (calls) => {
    await using proxy = await startProxy(server);
    await using client = new LockClient(proxy.connect(), { commandTimeout: 600 });
    const lock = client.getLock(`silent ${calls}`);
    await until("it is there", () => lock.isLocked().then(() => true));
    const connections = () => new Set(proxy.commands.map(({ connection }) => connection));
    const [before] = connections();
    proxy.stall();
    // A call may have less time than that.
    const wait = 600 / calls;
    for (let i = 0; i < calls; i++)
      expect(await failure(lock.tryLock(wait))).toMatchObject({ code: "UNAVAILABLE" });
    proxy.clear();
    proxy.restore();
    await until("it is taken", () => lock.run(() => true));
    expect([...connections()]).not.toEqual([before]);
    expect(proxy.count(anyCommand)).toBeGreaterThan(0);
  },
);

test("a server that is away is tried again after half a second at most [§1 reconnect]", async () => {
  await using proxy = await startProxy(server);
  await using client = new LockClient(proxy.connect(), { ...UNHURRIED, commandTimeout: 60_000 });
  const lock = client.getLock("away");
  await (await lock.lock()).unlock();
  proxy.refuse();
  const call = lock.lock();
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  const back = performance.now();
  proxy.restore();
  const hold = await call;
  // Half a second, and the time of a busy machine.
  expect(performance.now() - back).toBeLessThan(1_500);
  await hold.unlock();
});
