/** The user of docs/production.md, created exactly as the page says on a real server, can do all that the library does. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { atLast } from "../../faults/harness.js";
import {
  forFile,
  type RedisServer,
  startCluster,
  startRedis,
  UNHURRIED,
  until,
} from "../../support/index.js";
import { SINGLE } from "../../support/place/kinds.js";
import { allPages, blocksOf, ROOT } from "./pages.js";
import { commandsOf } from "./runner.js";

/** The commands of the page: the user, its further rights for replicas or another database, and those on a cluster. */
const [acl = [], besideReplicas = [], onCluster = []] = allPages()
  .filter(({ file }) => file === "docs/production.md")
  .flatMap(blocksOf)
  .filter(({ language }) => language === "redis")
  .flatMap(commandsOf)
  .map(({ command }) => command);
const permitted = acl.filter((word) => word.startsWith("+")).map((word) => word.slice(1));

/** Commands that the client sends itself, and not only scripts. */
const SENT = ["eval", "evalsha", "publish", "subscribe", "unsubscribe", "ping", "info", "scan"];

/** Milliseconds of the watchdog: a renewal is still in time if this process stands still for four seconds. */
const WATCHDOG = 6_500;

/** Errors that the client could report to no call. */
const errors: unknown[] = [];

const USER = { username: "shop", password: "secret" };

function connect(prefix: string): LockClient {
  return LockClient.connect(
    { port: server.port, ...USER },
    { ...UNHURRIED, prefix, watchdogTimeout: WATCHDOG },
  );
}

const server = await forFile(startRedis());
await server.call(...acl);
const client = await forFile(connect("shop"));
await client.ready();
client.on("error", ({ cause }) => errors.push(cause));

/** Ends what a call waits for, once the call listens, and resolves with the call's result. */
async function handedOver<T>(waiter: Promise<T>, release: () => Promise<unknown>): Promise<T> {
  await until("it listens", async () => ((await server.call("PUBSUB", "CHANNELS")) as unknown[]).length > 0);
  await release();
  return waiter;
}

async function namesOf(asked: LockClient): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of asked.list()) names.push(name);
  return names;
}

/** What a server has refused, also inside scripts that went on. ioredis goes on without naming its connections. */
async function refusedBy(asked: RedisServer): Promise<unknown[]> {
  const entries = (await asked.call("ACL", "LOG")) as unknown[][];
  return entries.filter((entry) => !entry.some((field) => String(field).startsWith("client|")));
}

afterEach(async () => {
  expect(await refusedBy(server)).toEqual([]);
  expect(errors).toEqual([]);
});

test("it is allowed what the scripts call and the connection needs, and nothing else", () => {
  const scripts = readdirSync(join(ROOT, "lua"), { recursive: true, encoding: "utf8" }).filter((file) =>
    file.endsWith(".lua"),
  );
  const called = scripts.flatMap((file) => {
    const calls = readFileSync(join(ROOT, "lua", file), "utf8").matchAll(/redis\.p?call\('([A-Z]+)'/g);
    return [...calls].map(([, name = ""]) => name.toLowerCase());
  });
  expect(called).toContain("pexpire");
  expect([...permitted].sort()).toEqual([...new Set([...called, ...SENT])].sort());
});

test.each(SINGLE)(
  "$name: taken, nested, renewed, extended, waited for, given up, seen, forced",
  async (kind) => {
    const [lock, rival] = [kind.make([client], kind.name), kind.rival.make([client], kind.name)];
    const renewed = new Promise((resolve) => client.once("renewed", resolve));
    const hold = await rival.lock();
    const nested = await rival.lock({ owner: hold });
    await renewed;
    await nested.extend(5_000);
    await nested.unlock();
    const given = lock.lock({ signal: AbortSignal.timeout(50) });
    await expect(given).rejects.toMatchObject({ name: "TimeoutError" });
    const next = await handedOver(lock.lock({ lease: 60_000 }), () => hold.unlock());

    expect([await lock.isLocked(), await lock.getHoldCount({ owner: next })]).toEqual([true, 1]);
    expect(await lock.remainTimeToLive()).toBeGreaterThan(0);
    expect(await client.inspect(lock.name)).toMatchObject({ holders: [{ ownerId: next.ownerId, count: 1 }] });
    expect(await namesOf(client)).toEqual([lock.name]);
    expect(await lock.forceUnlock()).toBe(true);
    await expect(next.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  },
);

test("a semaphore, one whose permits have a lease, and a latch do all that they can", async () => {
  const semaphore = client.getSemaphore("desks");
  expect(await semaphore.trySetPermits(1)).toBe(true);
  await semaphore.acquire();
  expect(await atLast(() => semaphore.tryAcquire(1, 50))).toBe(false);
  await handedOver(semaphore.acquire(), () => semaphore.release());
  await semaphore.addPermits(2);
  expect([await semaphore.drainPermits(), await semaphore.availablePermits()]).toEqual([2, 0]);

  const spaces = client.getPermitExpirableSemaphore("spaces");
  expect(await spaces.trySetPermits(1)).toBe(true);
  const kept = await spaces.acquire();
  expect(await atLast(() => spaces.tryAcquire(50))).toBeNull();
  const next = await handedOver(spaces.acquire({ lease: 60_000 }), () => spaces.release(kept));
  await spaces.updateLeaseTime(next, 30_000);
  expect(await spaces.tryRelease(next)).toBe(true);
  await spaces.setPermits(2);
  await spaces.addPermits(1);
  const numbers = [spaces.availablePermits(), spaces.acquiredPermits(), spaces.getPermits()];
  expect(await Promise.all(numbers)).toEqual([3, 0, 3]);

  const latch = client.getCountDownLatch("start");
  expect(await latch.trySetCount(1)).toBe(true);
  expect(await latch.getCount()).toBe(1);
  expect(await handedOver(latch.await(), () => latch.countDown())).toBe(true);
});

test("with replicas and in another database, with what the page adds for them", async () => {
  await using replica = await startRedis({ replicaOf: server });
  await server.call(...besideReplicas);
  const options = { ...UNHURRIED, prefix: "shop", replicas: 1, replicasTimeout: 20_000 };
  await using careful = LockClient.connect({ port: server.port, db: 2, ...USER }, options);
  await careful.getLock("lock").run(async () => {
    expect(await replica.connect({ db: 2 }).exists("shop:lock")).toBe(1);
  });
});

test("on a cluster, with what the page adds for it", async () => {
  await using cluster = await startCluster();
  for (const node of cluster.nodes) for (const command of [acl, onCluster]) await node.call(...command);
  const redis = cluster.connect({ redisOptions: USER });
  await using own = new LockClient(redis, { ...UNHURRIED, prefix: "shop" });
  await own.ready();
  const lock = own.getLock("lock");
  const hold = await lock.lock();
  const waiting = new Promise((resolve) => own.once("waiting", resolve));
  const next = lock.lock();
  await waiting;
  expect(await namesOf(own)).toEqual(["lock"]);
  await hold.unlock();
  await (await next).unlock();
  expect((await Promise.all(cluster.nodes.map(refusedBy))).flat()).toEqual([]);
});

test("without the commands that show other tenants' names only list() is missing", async () => {
  await using own = await startRedis();
  await own.call(...acl);
  await own.call("ACL", "SETUSER", "shop", "-scan", "-info");
  await using confined = LockClient.connect(
    { port: own.port, ...USER, enableReadyCheck: false },
    { ...UNHURRIED, prefix: "shop" },
  );
  await confined.ready();
  const hold = await confined.getLock("lock").lock();
  expect(await confined.inspect("lock")).toMatchObject({ holders: [{ ownerId: hold.ownerId }] });
  await expect(confined.list().next()).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await hold.unlock();
});

test("names of others are refused", async () => {
  await using stranger = connect("bank");
  await expect(stranger.getLock("lock").lock()).rejects.toMatchObject({ code: "UNSUPPORTED" });
  const semaphore = stranger.getSemaphore("desks");
  await expect(semaphore.trySetPermits(1)).rejects.toMatchObject({ code: "UNSUPPORTED" });
  await server.call("ACL", "LOG", "RESET");
});
