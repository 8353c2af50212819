/** Contract section 8: the presence that clients publish, and what others see of it. */
import { hostname } from "node:os";
import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.js";
import { INTERNALS } from "../../../src/client-options.js";
import { LockClient, type LockClientOptions, type LockInfo, MultiLock } from "../../../src/index.js";
import { failure, untilWaiting } from "../../contract/helpers.js";
import { bundledWorker } from "../../faults/build-worker.js";
import {
  countCommands,
  forFile,
  forTest,
  startCluster,
  startRedis,
  startWorker,
  until,
} from "../../support/index.js";

/** The watchdog's time-out; a round is a third of it. */
const QUICK = 4_500;

const server = await forFile(startRedis());

const bundle = bundledWorker("../entries/inspection/presence-worker.ts");

const keyOf = ({ id }: LockClient) => `holdfast_client:${id}`;

describe.each([5, 6])("ioredis %s", (version) => {
  const connect = () => forTest(version === 5 ? new Redis5(server.port) : new Redis(server.port));

  test("a hold and a wait are seen from elsewhere, with label, host, pid and since", async () => {
    await using mine = new LockClient(connect(), { label: "orders-1", watchdogTimeout: QUICK });
    await using theirs = new LockClient(connect(), { watchdogTimeout: QUICK });
    await using looking = new LockClient(connect(), { presence: false });
    const name = `seen-${version}`;
    const begun = Date.now();
    const hold = await mine.getLock(name).lock();
    const other = await theirs.getLock(`${name}-other`).lock();
    const waiter = await untilWaiting(theirs, () => theirs.getLock(name).lock({ owner: other }));
    const info = await until("both are told", async () => {
      const seen = await looking.inspect(name);
      return seen?.holders[0]?.since && seen.waiting.length > 0 ? seen : undefined;
    });
    const process = { host: hostname(), pid: globalThis.process.pid };
    expect(info?.holders).toMatchObject([
      { ownerId: hold.ownerId, client: { id: mine.id, label: "orders-1", ...process } },
    ]);
    const label = `${process.host}:${process.pid}`;
    expect(theirs.label).toBe(label);
    expect(info?.waiting).toMatchObject([
      { client: { id: theirs.id, label, ...process }, holds: [`${name}-other`] },
    ]);
    for (const since of [info?.holders[0]?.since, info?.waiting[0]?.since]) {
      expect((since as Date).getTime()).toBeGreaterThanOrEqual(begun - 5);
      expect((since as Date).getTime()).toBeLessThanOrEqual(Date.now());
    }
    const listed: LockInfo[] = [];
    for await (const each of looking.list({ match: `${name}*` })) listed.push(each);
    expect(listed.map((each) => each.holders[0]?.client?.id).sort()).toEqual([mine.id, theirs.id].sort());
    await hold.unlock();
    await (await waiter.done).unlock();
    await other.unlock();
    await until("nothing is told any more", async () => (await server.call("EXISTS", keyOf(mine))) === 0);
  });
});

test("a call that waits holds what it is made inside of, by whatever owner [B100]", async () => {
  await using mine = new LockClient(server.connect());
  await using theirs = new LockClient(server.connect(), { watchdogTimeout: QUICK });
  const [outer, own, wanted] = ["outer", "own", "wanted"].map((name) => theirs.getLock(name));
  const group = new MultiLock(theirs.getLock("of a group"), theirs.getLock("of a group too"));
  const hold = await mine.getLock("wanted").lock();
  const inner = () => wanted?.run(() => undefined);
  const outside = inner();
  const inside = outer?.run(() => theirs.scope(() => own?.run(() => group.run(inner))));
  const waiting = await until("both are told", async () => {
    const info = await mine.inspect("wanted");
    return info?.waiting.length === 2 ? info.waiting : undefined;
  });
  expect(waiting?.map(({ holds }) => [...holds].sort())).toEqual([
    [],
    ["of a group", "of a group too", "outer", "own"],
  ]);
  await hold.unlock();
  await Promise.all([outside, inside]);
});

test("short holds tell nothing, an idle client sends nothing, and close takes back what was told", async () => {
  const counter = await countCommands(server);
  const client = new LockClient(server.connect(), { watchdogTimeout: QUICK });
  const silent = new LockClient(server.connect(), { watchdogTimeout: QUICK, presence: false });
  for (let i = 0; i < 50; i++) await client.getLock("short").run(() => undefined);
  expect(await server.call("EXISTS", keyOf(client))).toBe(0);
  await counter.reset();
  const [hold, quiet] = [await client.getLock("kept").lock(), await silent.getLock("quiet").lock()];
  await until("it is told", async () => (await server.call("EXISTS", keyOf(client))) === 1);
  const ttl = Number(await server.call("PTTL", keyOf(client)));
  expect(ttl).toBeGreaterThan(0);
  expect(ttl).toBeLessThanOrEqual(Math.ceil((2 * QUICK) / 3));
  expect(Number(await server.call("PTTL", "holdfast_clients"))).toBeGreaterThan(0);
  expect(await server.call("EXISTS", keyOf(silent))).toBe(0);
  const fields = (await server.call("HGETALL", keyOf(client))) as string[];
  expect(fields.join(" ").length).toBeLessThan(400);
  expect(fields).toContain(`${hostname()}:${process.pid}`);
  await client.close({ timeout: 0 });
  expect(await server.call("EXISTS", keyOf(client))).toBe(0);
  expect(await server.call("ZSCORE", "holdfast_clients", client.id)).toBeNull();
  expect(hold.isHeld).toBe(false);
  await quiet.unlock();
  await silent.close();
  counter.stop();
});

test("what refused writes keep from being taken back is taken back after that, long before it expires [B220]", async () => {
  const start = Date.now();
  const wall = () => start + 50 * (Date.now() - start);
  const clock = {
    mono: () => 50 * systemClock.mono(),
    wall,
    after: (ms: number, callback: () => void) => systemClock.after(ms / 50, callback),
  };
  await using own = await startRedis();
  const options = { watchdogTimeout: 300_000, commandTimeout: 100_000, [INTERNALS]: { clock } };
  const client = new LockClient(own.connect(), options as LockClientOptions);
  const isTold = async () => (await own.call("EXISTS", keyOf(client))) === 1;
  const refusals = async () => {
    const info = String(await own.call("INFO", "errorstats"));
    return Number(/errorstat_NOREPLICAS:count=(\d+)/.exec(info)?.[1] ?? 0);
  };
  const hold = await client.getLock("told").lock({ lease: 3_600_000 });
  await until("it is told", isTold);
  await hold.unlock();
  await own.call("CONFIG", "SET", "min-replicas-to-write", "1");
  await until("it is refused to take that back", async () => (await refusals()) > 0);
  // Nobody hears that the client gives it up for now.
  await new Promise<void>((resolve) => clock.after(1.5 * options.commandTimeout, resolve));
  expect(await isTold()).toBe(true);
  await own.call("CONFIG", "SET", "min-replicas-to-write", "0");
  await until("it is taken back", async () => !(await isTold()));
  await client.close();
});

test("a process that dies is gone within two rounds", async () => {
  await using worker = await startWorker(bundle());
  const id = await worker.request<string>("hold", [server.url, "dead", 900]);
  const key = `holdfast_client:${id}`;
  await until("it is told", async () => (await server.call("EXISTS", key)) === 1);
  await worker.kill();
  await until("it is forgotten", async () => (await server.call("EXISTS", key)) === 0);
});

test("a user who may not write the key: off, told once, and locks are as ever", async () => {
  await server.call(
    "ACL",
    "SETUSER",
    "narrow",
    "on",
    ">narrow",
    "+@all",
    "allchannels",
    "~narrow*",
    "~*{narrow*",
  );
  const redis = server.connect({ username: "narrow", password: "narrow" });
  const client = new LockClient(redis, { watchdogTimeout: 3_600 });
  const errors: unknown[] = [];
  client.on("error", (event) => errors.push(event));
  const hold = await client.getLock("narrow").lock();
  await until("it is told", () => errors.length > 0);
  await until("renewed", () => client.stats().renewals >= 3);
  expect(errors).toMatchObject([{ cause: { code: "UNSUPPORTED" } }]);
  expect(await client.inspect("narrow")).toMatchObject({
    holders: [{ client: { id: client.id } }],
    waiting: [],
  });
  await hold.unlock();
  await client.close();
});

test("what is no presence disturbs nobody who looks [B79]", async () => {
  await using client = new LockClient(server.connect());
  const hold = await client.getLock("looked-at").lock();
  const ids = ["a", "b", "c", "d"];
  for (const id of ids) await server.call("ZADD", "holdfast_clients", "9e15", id);
  await server.call("SET", "holdfast_client:a", "text");
  await server.call("HSET", "holdfast_client:b", "label", "b", "host", "h", "pid", "x");
  await server.call(
    "HSET",
    "holdfast_client:c",
    "label",
    "c",
    "host",
    "h",
    "pid",
    "1",
    "holds",
    "{",
    "waits",
    "[1,[2]]",
  );
  // 1e300 is no time that a clock shows.
  const timeless = JSON.stringify([["looked-at", "lock", 0, 1e300, 0]]);
  await server.call(
    "HSET",
    "holdfast_client:d",
    "label",
    "d",
    "host",
    "h",
    "pid",
    "1",
    "holds",
    "[]",
    "waits",
    timeless,
  );
  expect(await client.inspect("looked-at")).toMatchObject({
    holders: [{ ownerId: hold.ownerId }],
    waiting: [],
  });
  await server.call("DEL", "holdfast_clients", ...ids.map((id) => `holdfast_client:${id}`));
  await hold.unlock();
});

test("WAIT_TIMEOUT names the holder as far as it is known", async () => {
  await using mine = new LockClient(server.connect());
  const lock = mine.getLock("busy");
  const hold = await lock.lock();
  const own = await failure(lock.lock({ wait: 2_500 }));
  expect(own.message).toMatch(/was not free within \d+ ms; held by this process itself; wait longer/);
  for (const [label, text] of [
    [undefined, "held by this process itself; wait longer"],
    ["stock-2", `held by ${mine.label} (pid ${process.pid}) for`],
  ] as const) {
    await using other = new LockClient(server.connect(), { label });
    await until("it is told", async () => (await server.call("EXISTS", keyOf(mine))) === 1);
    expect((await failure(other.getLock("busy").lock({ wait: 2_500 }))).message).toContain(text);
  }
  await hold.unlock();
  await server.call("HSET", "busy", "b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7", "1");
  await server.call("PEXPIRE", "busy", "60000");
  const java = await failure(lock.lock({ wait: 2_500 }));
  expect(java.message).toContain("held by owner b8a9c8e5-3c0c-4f5e-9f3a-1c2d3e4f5a6b:7; wait longer");
  await using worker = await startWorker(bundle());
  await worker.request<string>("hold", [server.url, "theirs", 1_500]);
  const named = await until("it is named", async () => {
    const { message } = await failure(mine.getLock("theirs").lock({ wait: 2_500 }));
    return message.includes("(pid") ? message : undefined;
  });
  expect(named).toMatch(/held by a worker \(pid \d+\) for \d+ s; wait longer/);
});

test("WAIT_TIMEOUT of a group names who holds a member, others before this process [B55]", async () => {
  await using mine = new LockClient(server.connect(), { label: "stock-1" });
  await using other = new LockClient(server.connect(), { label: "stock-2" });
  const timedOut = (...names: string[]) =>
    failure(new MultiLock(...names.map((name) => mine.getLock(name))).lock({ wait: 2_500 }));
  const own = await mine.getLock("shelf:1").lock();
  const theirs = await other.getLock("shelf:2").lock();
  await until("it is told", async () => (await server.call("EXISTS", keyOf(other))) === 1);
  const named = `held by stock-2 (pid ${process.pid}) for`;
  expect((await timedOut("shelf:2", "shelf:3")).message).toContain(named);
  expect((await timedOut("shelf:1", "shelf:2", "shelf:3")).message).toContain(named);
  expect((await timedOut("shelf:1", "shelf:3")).message).toContain(
    "held by this process itself; wait longer",
  );
  await Promise.all([own.unlock(), theirs.unlock()]);
});

test("kinds all: semaphores, permits and latches, of inspect and list", async () => {
  await using client = new LockClient(server.connect(), { prefix: "kinds" });
  await client.getSemaphore("s").trySetPermits(3);
  await client.getPermitExpirableSemaphore("p").trySetPermits(2);
  const id = await client.getPermitExpirableSemaphore("p").acquire();
  await client.getCountDownLatch("l").trySetCount(4);
  const hold = await client.getLock("k").lock();
  for (const name of ["s", "p", "l"]) expect(await client.inspect(name)).toBeNull();
  const all = { kinds: "all" } as const;
  expect(await client.inspect("s", all)).toMatchObject({
    name: "s",
    kind: "semaphore",
    permits: 3,
    waiting: [],
  });
  expect(await client.inspect("p", all)).toMatchObject({ kind: "permits", permits: 1, limit: 2 });
  const looking = new LockClient(server.connect(), { prefix: "kinds" });
  const latch = { name: "l", holders: [], waiters: [], waiting: [], ttl: -1, count: 4 };
  expect(await client.inspect("l", all)).toEqual({ ...latch, kind: "latch" });
  // A client that has not used the latch takes the number for a semaphore.
  expect(await looking.inspect("l", all)).toEqual({ ...latch, kind: "semaphore", permits: 4 });
  const waiter = await untilWaiting(client, () => client.getCountDownLatch("l").await());
  const told = await until("the waiter is told", async () => {
    const info = await looking.inspect("l", all);
    return info?.waiting.length ? info : undefined;
  });
  expect(told).toEqual({ ...latch, kind: "latch", waiting: [expect.objectContaining({ holds: [] })] });
  expect(told?.waiting).toMatchObject([{ client: { id: client.id } }]);
  await looking.close();
  expect(await client.inspect("none", all)).toBeNull();
  const names = async (options: object) => {
    const found: string[] = [];
    for await (const { name } of client.list(options)) found.push(name);
    return found.sort();
  };
  expect(await names({})).toEqual(["k"]);
  expect(await names(all)).toEqual(["k", "l", "p", "s"]);
  await expect(client.inspect("s", { kinds: "some" as "all" })).rejects.toThrow(TypeError);
  for (let i = 0; i < 4; i++) await client.getCountDownLatch("l").countDown();
  expect(await waiter.done).toBe(true);
  await client.getPermitExpirableSemaphore("p").release(id);
  await hold.unlock();
});

test("on a cluster the client's key and the index are two commands", async () => {
  await using cluster = await startCluster({ masters: 3 });
  await using client = new LockClient(cluster.connect(), { watchdogTimeout: QUICK });
  await using looking = new LockClient(cluster.connect(), { presence: false });
  const hold = await client.getLock("far").lock();
  const info = await until("it is told", async () => {
    const seen = await looking.inspect("far");
    return seen?.holders[0]?.client ? seen : undefined;
  });
  expect(info?.holders).toMatchObject([{ ownerId: hold.ownerId, client: { id: client.id } }]);
  await hold.unlock();
});

test.each([
  ["", RangeError],
  ["x".repeat(201), RangeError],
  [7, TypeError],
  [null, TypeError],
])("the label %j is refused", (label, error) => {
  const redis = server.connect();
  expect(() => new LockClient(redis, { label: label as string })).toThrow(error);
  expect(() => new LockClient(redis, { presence: "yes" as never })).toThrow(TypeError);
});
