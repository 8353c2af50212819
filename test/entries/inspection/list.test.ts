/** `list`: all locks of a server, by SCAN, whatever else is there; and numbers, where they are asked for. */
import { expect, test } from "vitest";
import { watch } from "../../support/place/index.js";
import { ALL, listed, namesOf, open } from "./helpers.js";

const NO_LEASE = 922_337_203_685_477;

test("list gives what inspect gives, of each kind of lock, and of nothing else [§1 list]", async () => {
  const { client, rivals, call } = open();
  expect(await listed(client)).toEqual([]);
  await client.getLock("a").lock();
  await client.getFencedLock("b").lock();
  await client.getFairLock("c").lock();
  await client.getReadWriteLock("d").writeLock().lock();
  for (const each of [client, rivals]) await each.getReadWriteLock("e").readLock().lock();
  await client.getSemaphore("semaphore").trySetPermits(3);
  await client.getPermitExpirableSemaphore("permits").trySetPermits(3);
  await client.getPermitExpirableSemaphore("permits").acquire({ lease: 60_000 });
  await client.getCountDownLatch("latch").trySetCount(3);
  call("HSET users ann 7 mode dark");
  call("HSET counts hits 1");
  call("SET text b0e5b1a2-0000-4000-8000-000000000000:17");
  call("RPUSH list a");
  const found = await listed(client);
  expect(found.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
    "a lock",
    "b fenced",
    "c lock",
    "d readwrite",
    "e readwrite",
  ]);
  for (const info of found) expect(info).toEqual(await client.inspect(info.name));
});

test("list with kinds all passes over what can be no lock and no number [§8 kinds-all] [B44]", async () => {
  const { client, call } = open();
  await client.getSemaphore("semaphore").trySetPermits(3);
  const lines = [
    ["SET number 17", "ZADD {number}:timeout 1 a", "SET text hello", "SET fraction 1.5"],
    ["SET beside 5", "SET {beside}:timeout nothing", "HSET users ann 7"],
  ];
  for (const line of lines.flat()) call(line);
  expect(await namesOf(client, ALL)).toEqual(["number", "semaphore"]);
});

test("list shows numbers whose names begin as Redisson's keys and our own do [B93]", async () => {
  const { client, with: by } = open();
  const mine = by({ prefix: "holdfast_app" }).client;
  await mine.getSemaphore("jobs").trySetPermits(3);
  await client.getSemaphore("redisson_jobs").trySetPermits(3);
  expect(await namesOf(mine, ALL)).toEqual(["jobs"]);
  expect(await namesOf(client, ALL)).toEqual(["holdfast_app:jobs", "redisson_jobs"]);
});

test("list shows who reads as readers alone, whatever kinds it gives [B57]", async () => {
  const { client, with: by } = open();
  for (const name of ["doc", "{doc}:7"]) {
    const lock = client.getReadWriteLock(name).readLock();
    await lock.lock({ owner: await lock.lock() });
  }
  expect(await namesOf(client, ALL)).toEqual(["doc", "{doc}:7"]);
  expect(await namesOf(by({ prefix: "{doc}" }).client, ALL)).toEqual(["7"]);
});

test("match picks names by a glob pattern, as users know them", async () => {
  const { client } = open();
  for (const name of ["job:1", "job:2", "task:1", "a[b]c", "jobless"]) await client.getLock(name).lock();
  expect(await namesOf(client, { match: "job:*" })).toEqual(["job:1", "job:2"]);
  expect(await namesOf(client, { match: "*:1" })).toEqual(["job:1", "task:1"]);
  expect(await namesOf(client, { match: "job:?" })).toEqual(["job:1", "job:2"]);
  expect(await namesOf(client, { match: "a\\[b\\]c" })).toEqual(["a[b]c"]);
  expect(await namesOf(client, { match: "nothing*" })).toEqual([]);
  expect(await namesOf(client, { match: "*" })).toHaveLength(5);
});

test("a client with a prefix lists only its own, without the prefix", async () => {
  const { client, with: by } = open();
  const [mine, theirs] = [by({ prefix: "app" }).client, by({ prefix: "app2" }).client];
  for (const name of ["job:1", "x"]) await mine.getLock(name).lock();
  await theirs.getLock("job:2").lock();
  await client.getLock("job:3").lock();
  expect(await namesOf(mine)).toEqual(["job:1", "x"]);
  expect(await mine.inspect("job:1")).toMatchObject({ name: "job:1" });
  expect(await namesOf(mine, { match: "job:*" })).toEqual(["job:1"]);
  expect(await namesOf(theirs)).toEqual(["job:2"]);
  expect(await namesOf(client)).toEqual(["app2:job:2", "app:job:1", "app:x", "job:3"]);
});

test.each(["a*b", "[ab]", "what?", "back\\slash", "{tag}", "^a", "ü"])(
  "a prefix is no pattern: %s",
  async (prefix) => {
    const { client, with: by } = open();
    const mine = by({ prefix }).client;
    for (const name of ["job:1", "job:2"]) await mine.getLock(name).lock();
    for (const name of ["axb", "a", "whatx", "backslash", "b"]) await client.getLock(`${name}:job:9`).lock();
    expect(await namesOf(mine)).toEqual(["job:1", "job:2"]);
    expect(await namesOf(mine, { match: "*1" })).toEqual(["job:1"]);
  },
);

test("list asks by SCAN of so many keys as count says, and no further than the user goes", async () => {
  const { client, server, call } = open();
  for (const name of ["a", "b", "c"]) await client.getLock(name).lock();
  for (let i = 0; i < 1_000; i++) call(`SET key:${i} ${i}`);
  const sent = async (work: Promise<unknown>) => {
    server.ran.splice(0);
    await work;
    return server.ran.map(({ name, args }) => (name === "SCAN" ? `SCAN ${args.slice(1).join(" ")}` : name));
  };
  const scans = await sent(listed(client, { count: 100 }));
  expect(scans.filter((name) => name.startsWith("SCAN")).length).toBe(11);
  for (const name of scans) expect(name).toMatch(/^SCAN .*COUNT 100\b|^lock\/inspect$|^HGETALL$|^Z/i);
  // As many as a server names without keeping others waiting for long.
  expect(await sent(listed(client))).toContainEqual(expect.stringMatching(/^SCAN .*COUNT 1000\b/));
  const one = async () => {
    for await (const _ of client.list({ count: 1 })) break;
  };
  expect((await sent(one())).length).toBeLessThan(10);
  expect(await sent(Promise.resolve())).toEqual([]);
});

test("a lock that SCAN names more than once is listed once", async () => {
  const { client, server } = open();
  await client.getLock("a").lock();
  const pages = [
    ["7", ["a", "a"]],
    ["0", ["a"]],
  ] as const;
  let asked = 0;
  server.instead = ({ name }) => (name === "SCAN" ? (pages[asked++] as never) : undefined);
  expect(await namesOf(client)).toEqual(["a"]);
  expect(asked).toBe(2);
});

test("a lock that is given back while others are listed is left out, or shown as it was", async () => {
  const { client } = open();
  const locks = Array.from({ length: 100 }, (_, i) => client.getLock(`job-${i}`));
  const holds = await Promise.all(locks.map((lock) => lock.lock()));
  const seen: string[] = [];
  for await (const { name, holders } of client.list({ count: 1 })) {
    expect(holders).toHaveLength(1);
    seen.push(name);
    await holds.pop()?.unlock();
  }
  expect(new Set(seen).size).toBe(seen.length);
  expect(seen.length).toBeGreaterThanOrEqual(50);
});

test("inspect and list without an answer are UNAVAILABLE; a reply that was lost costs no lock its place", async () => {
  const { a, client, rivals, pass } = open();
  for (const name of ["a", "b", "c"]) await rivals.getLock(name).lock();
  await client.ready();
  a.keep("requests");
  const silent = [watch(client.inspect("a")), watch(listed(client))];
  await pass(3_000);
  for (const { promise } of silent) await expect(promise).rejects.toMatchObject({ code: "UNAVAILABLE" });
  await a.letGo();
  a.keep("replies");
  const names = watch(namesOf(client));
  await pass(0);
  expect(a.onTheirWay).toBeGreaterThan(0);
  await a.reconnect();
  expect(await names.promise).toEqual(["a", "b", "c"]);
});

test("permits whose leases have ended count as free, and are left as they are [B101]", async () => {
  const { client, server, call, settle } = open();
  const permits = client.getPermitExpirableSemaphore("p");
  await permits.trySetPermits(5);
  await settle();
  call("DECRBY p 4");
  const now = server.clock.wall();
  for (const [i, at] of [now - 60_000, now - 1, now + 60_000, NO_LEASE].entries())
    call(`ZADD {p}:timeout ${at} ${i}`);
  const lasting = () => [call("GET p"), call("ZRANGE {p}:timeout 0 -1 WITHSCORES"), server.names()];
  const before = lasting();
  const shown = { name: "p", kind: "permits", permits: 3, limit: 5 };
  expect(await client.inspect("p", ALL)).toMatchObject(shown);
  expect(await listed(client, ALL)).toMatchObject([shown]);
  expect(lasting()).toEqual(before);
  expect(await permits.availablePermits()).toBe(3);
  expect(await permits.getPermits()).toBe(5);
});

test("permits of others that have all lapsed are permits all the same", async () => {
  const { client, server, call } = open();
  call("SET p 0");
  call(`ZADD {p}:timeout ${server.clock.wall() - 1} 1`);
  expect(await client.inspect("p", ALL)).toMatchObject({ kind: "permits", permits: 1, limit: 1 });
});

test("numbers are shown as what this client or another that is told of uses them as [§8 kinds-all]", async () => {
  const { client, rivals, pass } = open({ prefix: "kinds", presence: true });
  await client.getSemaphore("s").trySetPermits(3);
  const permits = client.getPermitExpirableSemaphore("p");
  await permits.trySetPermits(2);
  await permits.acquire();
  const latch = client.getCountDownLatch("l");
  await latch.trySetCount(4);
  await client.getLock("k").lock();
  for (const name of ["s", "p", "l"]) expect(await client.inspect(name)).toBeNull();
  expect(await client.inspect("none", ALL)).toBeNull();
  expect(await client.inspect("s", ALL)).toMatchObject({ kind: "semaphore", permits: 3, waiting: [] });
  expect(await client.inspect("p", ALL)).toMatchObject({ kind: "permits", permits: 1, limit: 2 });
  const shown = { name: "l", holders: [], waiters: [], waiting: [], ttl: -1, count: 4 };
  expect(await client.inspect("l", ALL)).toEqual({ ...shown, kind: "latch" });
  // A client that has not used the latch takes the number for a semaphore.
  expect(await rivals.inspect("l", ALL)).toEqual({ ...shown, kind: "semaphore", permits: 4 });
  const waiter = watch(latch.await());
  await pass(2_000);
  const waiting = [
    {
      client: expect.objectContaining({ id: client.id }),
      since: expect.any(Date),
      holds: [],
    },
  ];
  expect(await rivals.inspect("l", ALL)).toEqual({ ...shown, kind: "latch", waiting });
  expect(await namesOf(client)).toEqual(["k"]);
  expect(await namesOf(client, ALL)).toEqual(["k", "l", "p", "s"]);
  for (let i = 0; i < 4; i++) await latch.countDown();
  expect(await waiter.promise).toBe(true);
});
