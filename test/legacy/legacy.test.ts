/**
 * The path for servers before Redis 7, which know neither `#!lua` nor SPUBLISH. A switch for tests makes a client take
 * it on any server; without the switch a client takes it when a server refuses such a script.
 */
import type { Cluster, Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import {
  allKeys,
  type CommandCounter,
  countCommands,
  forTest,
  type RedisCluster,
  type RedisServer,
  startCluster,
  startRedis,
  until,
} from "../support/index.js";

function connect(redis: Redis | Cluster, options: LockClientOptions = {}): LockClient {
  return forTest(new LockClient(redis, { ...options, [INTERNALS]: { legacyServer: true } } as never));
}

/** The commands that were sent to these servers from here on. */
class Wire {
  readonly #counters: readonly CommandCounter[];

  private constructor(counters: readonly CommandCounter[]) {
    this.#counters = counters;
  }

  static async tap(servers: readonly RedisServer[]): Promise<Wire> {
    return new Wire(await Promise.all(servers.map((server) => countCommands(server))));
  }

  async sent(): Promise<string[][]> {
    await Promise.all(this.#counters.map((counter) => counter.settle()));
    return this.#counters.flatMap((counter) => counter.all());
  }

  /** Scripts were sent, and no command or line that an old server does not know. */
  async expectOld(): Promise<void> {
    const words = (await this.sent()).flat();
    expect(words).toContain("PUBLISH");
    for (const word of words) {
      expect(word).not.toMatch(/^#!/);
      expect(word).not.toMatch(/^(SPUBLISH|SSUBSCRIBE|SUNSUBSCRIBE|SHARDNUMSUB)$/i);
    }
  }

  stop(): void {
    for (const counter of this.#counters) counter.stop();
  }
}

/** Everything that a lock does, between two clients. */
async function live(redis: Redis | Cluster, name: string, options: LockClientOptions = {}): Promise<void> {
  const [one, two] = [connect(redis, { watchdogTimeout: 4_500, ...options }), connect(redis, options)];
  await Promise.all([one.ready(), two.ready()]);
  const [lock, other] = [one.getLock(name), two.getLock(name)];

  const hold = await lock.lock();
  expect(await other.tryLock()).toBeNull();
  const nested = await lock.lock({ owner: hold, lease: 40_000 });
  expect(await lock.getHoldCount({ owner: hold })).toBe(2);
  await nested.extend(30_000);
  expect(await lock.remainTimeToLive()).toBeGreaterThan(10_000);
  await nested.unlock();
  expect(await lock.getHoldCount({ owner: hold })).toBe(1);
  expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(4_500);
  await new Promise((resolve) => one.once("renewed", resolve));
  expect(hold.isHeld).toBe(true);

  let woken = false;
  const announced = new Promise((resolve) => two.once("waiting", resolve));
  const waiting = other.lock({ lease: 40_000 }).then((granted) => {
    woken = true;
    return granted;
  });
  await announced;
  expect(woken).toBe(false);
  await hold.unlock();
  const begun = performance.now();
  const granted = await waiting;
  expect(performance.now() - begun).toBeLessThan(6_000); // woken by a message, because its TTL or pollCap would take longer
  expect(await lock.forceUnlock()).toBe(true);
  expect(await lock.isLocked()).toBe(false);
  await expect(granted.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  const troubles: unknown[] = [];
  one.on("error", (trouble) => troubles.push(trouble));
  expect(await lock.run(() => 7)).toBe(7);
  expect(troubles).toEqual([]);
  expect(await lock.isLocked()).toBe(false);
  await count(one, two, name);
  // These keys stay when no client uses them.
  for (const kept of ["semaphore", "permits"]) await redis.del(`${name}:${kept}`);
  await redis.del(`redisson_lock_token:{${name}:fenced}`);
}

/** The same for semaphores, permits and latches. */
async function count(one: LockClient, two: LockClient, name: string): Promise<void> {
  const semaphore = one.getSemaphore(`${name}:semaphore`);
  expect(await semaphore.trySetPermits(3)).toBe(true);
  await semaphore.acquire(3);
  const more = two.getSemaphore(`${name}:semaphore`).acquire(2);
  await semaphore.release(3);
  await more;
  expect(await semaphore.drainPermits()).toBe(1);

  const permits = one.getPermitExpirableSemaphore(`${name}:permits`);
  await permits.setPermits(2);
  const [kept, leased] = [await permits.acquire(), await permits.acquire({ lease: 20_000 })];
  await new Promise((resolve) => one.once("renewed", resolve));
  expect(await permits.updateLeaseTime(leased, 10_000)).toBe(true);
  expect(await permits.acquiredPermits()).toBe(2);
  await permits.release(kept);
  await two.getPermitExpirableSemaphore(`${name}:permits`).release(leased);
  expect(await permits.availablePermits()).toBe(2);

  const latch = one.getCountDownLatch(`${name}:latch`);
  expect(await latch.trySetCount(1)).toBe(true);
  const open = two.getCountDownLatch(`${name}:latch`).await();
  await latch.countDown();
  expect(await open).toBe(true);

  const hold = await one.getFencedLock(`${name}:fenced`).lock();
  expect(await two.inspect(`${name}:fenced`)).toMatchObject({
    kind: "fenced",
    holders: [{ ownerId: hold.ownerId }],
  });
  for await (const { kind } of two.list({ match: `${name}:fenced` })) expect(kind).toBe("fenced");
  await hold.unlock();
}

describe("a single server", () => {
  let master: RedisServer;
  let replica: RedisServer;
  beforeAll(async () => {
    master = await startRedis();
    replica = await startRedis({ replicaOf: master });
  });
  afterAll(async () => {
    await replica?.stop();
    await master?.stop();
  });

  test.each([
    ["without replicas", {}],
    ["with a replica", { replicas: 1 }],
    ["where shardedPubSub is asked for", { shardedPubSub: true }],
  ])("%s", async (_, options) => {
    const wire = await Wire.tap([master]);
    await live(master.connect(), "job", { pollCap: 10_000, ...options });
    await wire.expectOld();
    wire.stop();
  });

  test("replicas that are missing", async () => {
    const lock = connect(master.connect(), { replicas: 2, replicasTimeout: 1_500 }).getLock("short");
    await expect(lock.lock()).rejects.toMatchObject({ code: "REPLICAS", acknowledged: 1, required: 2 });
    expect(await master.call("EXISTS", "short")).toBe(0);
    for (const { ttl } of (await allKeys(master.connect())).values()) expect(ttl).toBeGreaterThan(0);
  });

  describe("that refuses #!lua", () => {
    /** A connection to a server that takes the `#!lua` line as Redis 6.2 does: for a syntax error. */
    function old(): Redis {
      const redis = master.connect();
      const send = redis.eval.bind(redis) as (...words: unknown[]) => Promise<unknown>;
      const refusing = (lua: string, ...rest: unknown[]) => send(lua.replace(/^#!lua/, " #!lua"), ...rest);
      redis.eval = refusing as typeof redis.eval;
      return redis;
    }

    test("gets the other text at once, and from then on", async () => {
      const client = forTest(new LockClient(old()));
      const wire = await Wire.tap([master]);
      const isModern = (words: readonly string[]) => words.some((word) => word.includes("#!lua"));
      // Not by `run`, which would not report a failed release.
      const holds = await Promise.all(["a", "b", "c"].map((name) => client.getLock(name).lock()));
      await Promise.all(holds.map((hold) => hold.unlock()));
      expect(await master.call("EXISTS", "a", "b", "c")).toBe(0);
      const refused = (await wire.sent()).filter(isModern).length;
      expect(refused).toBeGreaterThan(0);
      expect(refused).toBeLessThanOrEqual(3); // the calls that were under way at the same time
      const lock = client.getLock("a");
      const hold = await lock.lock();
      expect(await lock.forceUnlock()).toBe(true);
      await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
      await (await lock.lock()).unlock();
      expect(await lock.isLocked()).toBe(false);
      expect((await wire.sent()).filter(isModern)).toHaveLength(refused);
      wire.stop();
    });

    test("a grant with a WAIT goes through as well", async () => {
      const client = forTest(new LockClient(old(), { replicas: 1 }));
      const hold = await client.getLock("waited").lock();
      await hold.unlock();
      expect(await master.call("EXISTS", "waited")).toBe(0);
    });

    test.each([
      ["refused in both texts", "#", true],
      ["wrong in another way", "retrun 1", false],
    ])("a script that is %s is not sent without end", async (_, broken, tried) => {
      const redis = master.connect();
      const texts: string[] = [];
      const send = redis.eval.bind(redis) as (...words: unknown[]) => Promise<unknown>;
      const breaking = (lua: string, ...rest: unknown[]) => {
        if (!lua.includes("tombstoneTtl")) return send(lua, ...rest);
        texts.push(lua);
        return send(broken, ...rest);
      };
      redis.eval = breaking as typeof redis.eval;
      const client = forTest(new LockClient(redis, { commandTimeout: 2_000 }));
      const hold = await client.getLock(`broken ${tried}`).lock();
      await expect(hold.unlock()).rejects.toMatchObject({ code: "UNAVAILABLE" });
      expect(texts[0]).toMatch(/^#!lua/);
      expect(texts.some((lua) => !lua.startsWith("#!lua"))).toBe(tried);
      expect(texts.length).toBeLessThan(20);
    });
  });
});

describe("a cluster", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1 });
  });
  afterAll(() => cluster?.stop());

  test.each([
    ["without replicas", {}],
    ["with replicas", { replicas: 1 }],
    ["where shardedPubSub is asked for", { shardedPubSub: true }],
  ])("%s", async (_, options) => {
    const wire = await Wire.tap(cluster.nodes);
    const redis = cluster.connect();
    await Promise.all(["a", "b", "c"].map((name) => live(redis, name, { pollCap: 10_000, ...options })));
    await wire.expectOld();
    wire.stop();
  });

  test("all that is left has an end", async () => {
    await until("only what lapses is left", async () => {
      const keys = await allKeys(cluster.connect());
      return [...keys.values()].every(({ ttl }) => ttl > 0);
    });
  });
});
