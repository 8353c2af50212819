/** `inspect`: what it reports of a lock, from the keys on the server. */
import { describe, expect, test } from "vitest";
import { failsSoon, manyAtOnce, Stage, useStage, watch } from "../../faults/harness.js";
import { NEVER, Site } from "../../kinds/semaphores/helpers.js";
import { until } from "../../support/index.js";

manyAtOnce();
const stage = await useStage("standalone");

const THEIRS = "b0e5b1a2-0000-4000-8000-000000000000";
/** Matches a TTL that was set to this value a short while ago. */
const about = (ms: number): unknown => expect.toSatisfy((ttl) => ttl > ms - 10_000 && ttl <= ms);

const byCount = (a: { count: number }, b: { count: number }): number => a.count - b.count;

describe.concurrent("inspect gives null of a name", () => {
  const free: [string, (site: Site) => Promise<unknown>][] = [
    ["that is free", async () => {}],
    [
      "of a lock that was given back",
      async ({ name, client }) => (await client(0).getLock(name).lock()).unlock(),
    ],
    [
      "of a fencing lock that was given back, whose counter stays",
      async (site) => (await site.client(0).getFencedLock(site.name).lock()).unlock(),
    ],
    ["of a semaphore", (site) => site.semaphore().trySetPermits(3)],
    ["of a latch", (site) => site.latch().trySetCount(3)],
  ];

  test.each(free)("%s", async (_, make) => {
    await using site = await Site.of(stage);
    await make({
      ...site,
      name: site.name,
      redis: site.redis,
      client: () => site.client(0),
      semaphore: () => site.semaphore(),
      latch: () => site.latch(),
    } as unknown as Site);
    const before = await site.lasting();
    expect(await site.client(0).inspect(site.name)).toBeNull();
    expect(await site.lasting()).toEqual(before);
  });
});

test.concurrent.each<[string, (site: Site) => Promise<unknown>]>([
  ["that holds a string", ({ redis, name }) => redis.set(name, "paid", "PX", 60_000)],
  ["that holds a list", ({ redis, name }) => redis.rpush(name, "paid")],
  ["that holds a set", ({ redis, name }) => redis.sadd(name, "paid")],
  ["that holds a sorted set", ({ redis, name }) => redis.zadd(name, 1, "paid")],
  ["that holds somebody's hash", ({ redis, name }) => redis.hset(name, { user: "ann", age: "7" })],
  ["that holds a hash with a count but no owner", ({ redis, name }) => redis.hset(name, { hits: "1" })],
  [
    "that holds a hash with an owner but no count",
    ({ redis, name }) => redis.hset(name, { [`${THEIRS}:7`]: "yes" }),
  ],
  ["that holds a hash with the field mode alone", ({ redis, name }) => redis.hset(name, { mode: "dark" })],
])("inspect refuses a name %s", async (_, make) => {
  await using site = await Site.of(stage);
  await make(site);
  const before = await site.lasting();
  await expect(site.client(0).inspect(site.name)).rejects.toMatchObject({
    code: "WRONG_DATA",
    lockName: site.name,
  });
  expect(await site.lasting()).toEqual(before);
});

describe.concurrent("inspect shows", () => {
  test("a lock: its owner, how often it holds it, and how long", async () => {
    await using site = await Site.of(stage, {}, {});
    const lock = site.client(0).getLock(site.name);
    await site.client(0).scope(async () => {
      const hold = await lock.lock({ lease: 60_000 });
      await lock.lock({ lease: 60_000 });
      const holder = { ownerId: hold.ownerId, count: 2, ttl: about(60_000) };
      const info = await site.client(1).inspect(site.name);
      expect(info).toMatchObject({
        name: site.name,
        kind: "lock",
        holders: [holder],
        waiters: [],
        ttl: about(60_000),
      });
      await lock.unlock();
      await lock.unlock();
    });
    expect(await site.client(1).inspect(site.name)).toBeNull();
  });

  test("a lock of Redisson's", async () => {
    await using site = await Site.of(stage);
    await site.redis.hset(site.name, `${THEIRS}:37`, 3);
    await site.redis.pexpire(site.name, 60_000);
    expect(await site.client(0).inspect(site.name)).toMatchObject({
      name: site.name,
      kind: "lock",
      holders: [{ ownerId: `${THEIRS}:37`, count: 3, ttl: about(60_000) }],
      waiters: [],
      ttl: about(60_000),
    });
  });

  test("a lock without end: ttl -1", async () => {
    await using site = await Site.of(stage);
    await site.redis.hset(site.name, `${THEIRS}:37`, 1);
    expect(await site.client(0).inspect(site.name)).toMatchObject({ ttl: -1, holders: [{ ttl: -1 }] });
  });

  test("a fencing lock", async () => {
    await using site = await Site.of(stage);
    const hold = await site.client(0).getFencedLock(site.name).lock();
    expect(await site.client(0).inspect(site.name)).toMatchObject({
      name: site.name,
      kind: "fenced",
      holders: [{ ownerId: hold.ownerId, count: 1, ttl: about(30_000) }],
      waiters: [],
      ttl: about(30_000),
    });
    await hold.unlock();
  });

  test("a fair lock while it has a queue, with the waiters in their order", async () => {
    await using site = await Site.of(stage, {}, {}, {});
    const hold = await site.client(0).getFairLock(site.name).lock();
    expect(await site.client(0).inspect(site.name)).toMatchObject({ kind: "lock", waiters: [] });
    const controller = new AbortController();
    const calls = [];
    const queue = (): Promise<string[]> => site.redis.lrange(`redisson_lock_queue:{${site.name}}`, 0, -1);
    for (const i of [1, 2, 1]) {
      const length = calls.length;
      calls.push(watch(site.client(i).getFairLock(site.name).lock({ signal: controller.signal })));
      await until("it is queued", async () => (await queue()).length === length + 1);
    }
    const info = await site.client(0).inspect(site.name);
    expect(info).toMatchObject({
      name: site.name,
      kind: "fair",
      holders: [{ ownerId: hold.ownerId, count: 1, ttl: about(30_000) }],
      waiters: await queue(),
      ttl: about(30_000),
    });
    expect(info?.waiters).toHaveLength(3);
    controller.abort("enough");
    for (const call of calls) await failsSoon(call);
    await hold.unlock();
  });

  test("the write side, by its owner's id", async () => {
    await using site = await Site.of(stage);
    const hold = await site.client(0).getReadWriteLock(site.name).writeLock().lock({ lease: 60_000 });
    expect(hold.ownerId).not.toContain("write");
    expect(await site.client(0).inspect(site.name)).toMatchObject({
      name: site.name,
      kind: "readwrite",
      mode: "write",
      holders: [{ ownerId: hold.ownerId, count: 1, ttl: about(60_000) }],
      waiters: [],
      ttl: about(60_000),
    });
    await hold.unlock();
  });

  test("the read side: each reader with its own count and time", async () => {
    await using site = await Site.of(stage, {}, {});
    const [one, two] = [0, 1].map((i) => site.client(i).getReadWriteLock(site.name).readLock());
    const long = await one?.lock({ lease: 600_000 });
    const short = await two?.lock({ lease: 60_000 });
    const again = await two?.lock({ lease: 30_000, ...(short ? { owner: short } : {}) });
    const info = await site.client(0).inspect(site.name);
    expect(info).toMatchObject({
      name: site.name,
      kind: "readwrite",
      mode: "read",
      waiters: [],
      ttl: about(600_000),
    });
    expect(info?.holders.map(({ ownerId, count, ttl }) => ({ ownerId, count, ttl })).sort(byCount)).toEqual([
      { ownerId: long?.ownerId, count: 1, ttl: about(600_000) },
      { ownerId: short?.ownerId, count: 2, ttl: about(60_000) },
    ]);
    for (const hold of [again, short, long]) await hold?.unlock();
  });

  test("a writer that reads too is one holder", async () => {
    await using site = await Site.of(stage);
    const lock = site.client(0).getReadWriteLock(site.name);
    const write = await lock.writeLock().lock();
    const read = await lock.readLock().lock({ owner: write });
    const info = await site.client(0).inspect(site.name);
    expect(info).toMatchObject({ kind: "readwrite", mode: "write" });
    expect(new Set(info?.holders.map(({ ownerId }) => ownerId))).toEqual(new Set([write.ownerId]));
    await write.unlock();
    expect(await site.client(0).inspect(site.name)).toMatchObject({ mode: "read", holders: [{ count: 1 }] });
    await read.unlock();
    expect(await site.client(0).inspect(site.name)).toBeNull();
  });

  test("a reader of Redisson's that is dead is no holder", async () => {
    await using site = await Site.of(stage);
    const [dead, live] = [`${THEIRS}:1`, `${THEIRS}:2`];
    await site.redis.hset(site.name, { mode: "read", [dead]: "1", [live]: "1" });
    await site.redis.set(`{${site.name}}:${live}:rwlock_timeout:1`, "1", "PX", 60_000);
    await site.redis.pexpire(site.name, 90_000);
    const info = await site.client(0).inspect(site.name);
    expect(info?.holders.filter(({ ttl }) => ttl > 0)).toMatchObject([
      { ownerId: live, count: 1, ttl: about(60_000) },
    ]);
  });

  test("names without the prefix", async () => {
    await using site = await Site.of(stage, { prefix: "app" });
    const hold = await site.client(0).getLock(site.name).lock();
    expect(await site.client(0).inspect(site.name)).toMatchObject({ name: site.name, kind: "lock" });
    expect(await site.client(0).inspect(`app:${site.name}`)).toBeNull();
    await hold.unlock();
  });

  test("a name with braces", async () => {
    await using site = await Site.of(stage);
    const name = `{${site.name}}:rest`;
    const hold = await site.client(0).getFencedLock(name).lock();
    expect(await site.client(0).inspect(name)).toMatchObject({ name, kind: "fenced" });
    await hold.unlock();
  });
});

test("inspect without an answer is UNAVAILABLE", async () => {
  await using own = await Stage.start(["standalone"]);
  await using site = await Site.of(own, { commandTimeout: 2_000 });
  own.server.pause();
  const call = watch(site.client(0).inspect(site.name));
  expect(await failsSoon(call)).toMatchObject({ code: "UNAVAILABLE" });
  own.server.resume();
  expect(NEVER).toBeGreaterThan(call.took);
});
