/** `list`: all locks of a server or cluster, by SCAN, whatever else is there. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, LockClient, type LockClientOptions } from "../../../src/index.js";
import {
  type CommandCounter,
  countCommands,
  named,
  type RedisCluster,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
} from "../../support/index.js";
import { listed, namesOf } from "./helpers.js";

describe("a server", () => {
  let server: RedisServer;
  let redis: ReturnType<RedisServer["connect"]>;
  let counter: CommandCounter;
  const clients: LockClient[] = [];
  const holds: Hold[] = [];

  beforeAll(async () => {
    server = await startRedis();
    redis = server.connect();
    counter = await countCommands(server);
  });
  afterAll(async () => {
    counter?.stop();
    await server?.stop();
  });
  beforeEach(() => redis.flushall());
  afterEach(async () => {
    for (const hold of holds.splice(0)) await hold.unlock();
    await Promise.all(clients.splice(0).map((client) => client.close({ timeout: 0 })));
  });

  function connect(options: LockClientOptions = {}): LockClient {
    const client = new LockClient(server.connect(), options);
    clients.push(client);
    return client;
  }

  async function take(client: LockClient, ...names: string[]): Promise<void> {
    for (const name of names) holds.push(await client.getLock(name).lock());
  }

  test("gives what inspect gives, of each kind of lock, and of nothing else", async () => {
    const client = connect();
    const other = connect();
    holds.push(
      await client.getLock("a").lock(),
      await client.getFencedLock("b").lock(),
      await client.getFairLock("c").lock(),
      await client.getReadWriteLock("d").writeLock().lock(),
      await client.getReadWriteLock("e").readLock().lock(),
      await other.getReadWriteLock("e").readLock().lock(),
    );
    await client.getSemaphore("semaphore").trySetPermits(3);
    await client.getPermitExpirableSemaphore("permits").trySetPermits(3);
    await client.getPermitExpirableSemaphore("permits").acquire({ lease: 60_000 });
    await client.getCountDownLatch("latch").trySetCount(3);
    await redis.hset("users", { ann: "7", mode: "dark" });
    await redis.hset("counts", { hits: "1" });
    await redis.set("text", "b0e5b1a2-0000-4000-8000-000000000000:17");
    await redis.rpush("list", "a");
    const found = await listed(client);
    expect(found.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "e"]);
    for (const info of found) {
      const alone = await client.inspect(info.name);
      expect({ ...info, ttl: 0, holders: info.holders.map((holder) => ({ ...holder, ttl: 0 })) }).toEqual({
        ...alone,
        ttl: 0,
        holders: alone?.holders.map((holder) => ({ ...holder, ttl: 0 })),
      });
      expect(info.ttl).toBeGreaterThan(20_000);
    }
    expect(found.map(({ kind }) => kind)).toEqual(["lock", "fenced", "lock", "readwrite", "readwrite"]);
  });

  test("with semaphores and latches it passes over what can be none of them [B44]", async () => {
    const client = connect();
    await client.getSemaphore("semaphore").trySetPermits(3);
    await redis.set("number", "17");
    await redis.zadd("{number}:timeout", 1, "a");
    await redis.set("text", "hello");
    await redis.set("fraction", "1.5");
    await redis.set("beside", "5");
    await redis.set("{beside}:timeout", "no permits");
    await redis.hset("users", { ann: "7" });
    expect(await namesOf(client, { kinds: "all" })).toEqual(["number", "semaphore"]);
  });

  test("shows numbers whose names begin as Redisson's keys and our own do [B93]", async () => {
    const client = connect({ prefix: "holdfast_app" });
    await client.getSemaphore("jobs").trySetPermits(3);
    await connect().getSemaphore("redisson_jobs").trySetPermits(3);
    expect(await namesOf(client, { kinds: "all" })).toEqual(["jobs"]);
    expect(await namesOf(connect(), { kinds: "all" })).toEqual(["holdfast_app:jobs", "redisson_jobs"]);
  });

  test("shows who reads as readers alone, whatever kinds it gives [B57]", async () => {
    const client = connect();
    for (const name of ["doc", "{doc}:7"]) {
      await client.scope(async () => {
        const lock = client.getReadWriteLock(name).readLock();
        holds.push(await lock.lock(), await lock.lock());
      });
    }
    expect(await namesOf(client, { kinds: "all" })).toEqual(["doc", "{doc}:7"]);
    expect(await namesOf(connect({ prefix: "{doc}" }), { kinds: "all" })).toEqual(["7"]);
  });

  test("gives nothing when there is nothing", async () => {
    expect(await listed(connect())).toEqual([]);
  });

  test("gives each of many once, with any count", async () => {
    const names = Array.from({ length: 500 }, (_, i) => `job-${i}`).sort();
    await Promise.all(
      names.map(async (name) => {
        await redis.hset(name, "b0e5b1a2-0000-4000-8000-000000000000:1", 1);
        await redis.pexpire(name, 60_000);
      }),
    );
    const client = connect();
    expect(await namesOf(client)).toEqual(names);
    expect(await namesOf(client, { count: 1 })).toEqual(names);
    expect(await namesOf(client, { count: 10_000 })).toEqual(names);
  });

  test("count is how many keys each SCAN looks at", async () => {
    await redis.eval("for i = 1, 1000 do redis.call('SET', 'key:' .. i, i) end", 0);
    const client = connect();
    await client.ready();
    await counter.reset();
    await listed(client, { count: 100 });
    await counter.settle();
    const scans = counter.all().filter(([verb]) => verb === "SCAN");
    expect(scans.length).toBeGreaterThanOrEqual(5);
    expect(scans.length).toBeLessThanOrEqual(30);
    for (const words of scans) expect(words.join(" ")).toMatch(/ COUNT 100\b/i);
  });

  test("match picks names by a glob pattern, of the names as users know them", async () => {
    const client = connect();
    await take(client, "job:1", "job:2", "task:1", "a[b]c", "jobless");
    expect(await namesOf(client, { match: "job:*" })).toEqual(["job:1", "job:2"]);
    expect(await namesOf(client, { match: "*:1" })).toEqual(["job:1", "task:1"]);
    expect(await namesOf(client, { match: "job:?" })).toEqual(["job:1", "job:2"]);
    expect(await namesOf(client, { match: "a\\[b\\]c" })).toEqual(["a[b]c"]);
    expect(await namesOf(client, { match: "nothing*" })).toEqual([]);
    expect(await namesOf(client, { match: "*" })).toHaveLength(5);
  });

  test("with a prefix: only its own, without the prefix", async () => {
    const [mine, theirs, bare] = [connect({ prefix: "app" }), connect({ prefix: "app2" }), connect()];
    await take(mine, "job:1", "x");
    await take(theirs, "job:2");
    await take(bare, "job:3");
    expect(await namesOf(mine)).toEqual(["job:1", "x"]);
    expect(await namesOf(mine, { match: "job:*" })).toEqual(["job:1"]);
    expect(await namesOf(theirs)).toEqual(["job:2"]);
    expect(await namesOf(bare)).toEqual(["app2:job:2", "app:job:1", "app:x", "job:3"]);
  });

  test.each(["a*b", "[ab]", "what?", "back\\slash", "{tag}", "^a", "ü"])(
    "a prefix is no pattern: %s",
    async (prefix) => {
      const mine = connect({ prefix });
      await take(mine, "job:1", "job:2");
      await take(connect(), "axb:job:9", "a:job:9", "whatx:job:9", "backslash:job:9", "b:job:9");
      expect(await namesOf(mine)).toEqual(["job:1", "job:2"]);
      expect(await namesOf(mine, { match: "*1" })).toEqual(["job:1"]);
    },
  );

  test("never sends KEYS, and ends its iteration when the user does", async () => {
    const client = connect();
    await redis.eval("for i = 1, 5000 do redis.call('SET', 'key:' .. i, i) end", 0);
    await take(client, ...Array.from({ length: 20 }, (_, i) => `job-${i}`));
    await counter.reset();
    await listed(client);
    await counter.settle();
    const verbs = new Set(counter.all().map(([verb]) => verb));
    expect(verbs).not.toContain("KEYS");
    expect(verbs).toContain("SCAN");
    await counter.reset();
    for await (const _ of client.list({ count: 1 })) break;
    await counter.settle();
    expect(counter.of("SCAN")).toBeLessThan(5_000);
    const later = counter.all().length;
    await redis.ping();
    await counter.settle();
    expect(counter.all().length).toBeLessThanOrEqual(later + 1);
  });

  test("several lists go side by side", async () => {
    const client = connect();
    await take(client, "a", "b", "c");
    const all = await Promise.all(Array.from({ length: 5 }, () => namesOf(client, { count: 1 })));
    expect(all).toEqual(all.map(() => ["a", "b", "c"]));
  });

  test("a lock that is given back meanwhile is left out, or shown as it was", async () => {
    const client = connect();
    const names = Array.from({ length: 100 }, (_, i) => `job-${i}`);
    await take(client, ...names);
    const seen: string[] = [];
    for await (const { name, holders } of client.list({ count: 1 })) {
      expect(holders).toHaveLength(1);
      seen.push(name);
      await holds.pop()?.unlock();
    }
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.length).toBeGreaterThanOrEqual(50);
  });

  test("without an answer: UNAVAILABLE", async () => {
    await using proxy = await startProxy(server);
    const client = new LockClient(proxy.connect(), { commandTimeout: 2_000 });
    clients.push(client);
    await client.ready();
    proxy.blackhole();
    await expect(listed(client)).rejects.toMatchObject({ code: "UNAVAILABLE" });
    proxy.restore();
  });

  test("a reply that is lost costs no lock its place", async () => {
    await using proxy = await startProxy(server);
    const client = new LockClient(proxy.connect());
    clients.push(client);
    await client.ready();
    await take(connect(), "a", "b", "c");
    const fault = proxy.cutReplyOf(named("SCAN"));
    expect(await namesOf(client)).toEqual(["a", "b", "c"]);
    await fault.done;
  });
});

describe("a cluster", () => {
  let cluster: RedisCluster;

  beforeAll(async () => {
    cluster = await startCluster({ masters: 3, replicas: 1 });
  });
  afterAll(() => cluster?.stop());

  test("the locks of every master, each once", async () => {
    await using client = new LockClient(cluster.connect());
    const names = Array.from({ length: 30 }, (_, i) => `job-${i}`).sort();
    const masters = new Set(
      await Promise.all(names.map(async (name) => (await cluster.masterFor(name)).port)),
    );
    expect(masters.size).toBe(3);
    const holds = await Promise.all(names.map((name) => client.getLock(name).lock()));
    expect(await namesOf(client)).toEqual(names);
    expect(await namesOf(client, { match: "job-1*", count: 5 })).toEqual(
      names.filter((name) => name.startsWith("job-1")),
    );
    for (const hold of holds) await hold.unlock();
    expect(await namesOf(client)).toEqual([]);
  });

  test("a lock of each kind, inspected where it is", async () => {
    await using client = new LockClient(cluster.connect(), { prefix: "app" });
    const holds = [
      await client.getFencedLock("{tag}:fenced").lock(),
      await client.getReadWriteLock("both").readLock().lock(),
    ];
    expect((await listed(client)).map(({ name, kind }) => [name, kind])).toEqual([
      ["both", "readwrite"],
      ["{tag}:fenced", "fenced"],
    ]);
    expect(await client.inspect("{tag}:fenced")).toMatchObject({ kind: "fenced" });
    for (const hold of holds) await hold.unlock();
  });
});
