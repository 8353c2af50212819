/** Locks on clients of node-redis for one server. */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, onTestFinished, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient, type LockClientOptions, MultiLock } from "../../src/index.js";
import { failure, nextEvent, untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, forTest, startRedis, type TestClient, UNHURRIED, until } from "../support/index.js";
import { Clients, expectLeftToItsUser, twoClients, VERSIONS } from "./node-redis-support.js";

const clients = new Clients();

failOnUnhandledRejections();
const server = await forFile(startRedis());

describe.each(VERSIONS)("%s", (version, redis) => {
  const make = (options: object = {}): TestClient =>
    clients.add(redis.client({ url: server.url, ...options }));
  const locksOn = (user: TestClient, options: LockClientOptions = UNHURRIED) =>
    forTest(new LockClient(fromNodeRedis(user), options));

  test("a client is connected by the first call and otherwise left to its user, whose close touches no lock", async () => {
    await expectLeftToItsUser(() => make());
  });

  test("a LockClient that closes leaves no connection of its own", async () => {
    await using quiet = await startRedis();
    const locks = locksOn(make({ url: quiet.url }));
    const lock = locks.getLock("busy");
    const hold = await lock.lock();
    const { done } = await untilWaiting(locks, () => lock.lock());
    const connections = async () =>
      String(await quiet.call("CLIENT", "LIST"))
        .trim()
        .split("\n").length - 1;
    // The user's connection, one for commands, and one for messages.
    await until("it has its own", async () => (await connections()) === 3);
    await hold.unlock();
    await (await done).unlock();
    await locks.close();
    await until("the user's own is left", async () => (await connections()) === 1);
  });

  test("a client is not listened to, however many LockClients it has", async () => {
    const client = make();
    const before = client.listeners("ready").length;
    for (let i = 0; i < 12; i++) {
      const locks = locksOn(client);
      await locks.getLock("many").run(() => {});
      await locks.close();
    }
    expect(client.listeners("ready").length).toBe(before);
  });

  test("what the client's user has set for their own commands changes nothing", async () => {
    const typeMapping = { 36: Buffer, 43: Buffer, 58: String };
    const locks = locksOn(make({ commandOptions: { timeout: 1, typeMapping }, disableOfflineQueue: true }));
    const fenced = locks.getFencedLock("mapped");
    const first = await fenced.run(({ token }) => token);
    await locks.ready();
    const hold = await fenced.lock();
    expect(hold.token).toBeGreaterThan(first);
    expect(await locks.inspect("mapped")).toMatchObject({ kind: "fenced", holders: [{ count: 1 }] });
    await hold.unlock();
  });

  test("semaphores, permits, latches, groups, presence and lists work", async () => {
    const [ours, theirs] = twoClients(() => fromNodeRedis(make()), UNHURRIED);
    const semaphore = ours.getSemaphore(`desks ${version}`);
    await semaphore.trySetPermits(1);
    // The server's errors arrive as such.
    expect(await failure(ours.getLock(semaphore.name).lock())).toMatchObject({ code: "WRONG_DATA" });
    await semaphore.acquire();
    const waiting = theirs.getSemaphore(`desks ${version}`).acquire();
    await semaphore.release();
    await waiting;
    const permits = ours.getPermitExpirableSemaphore(`spaces ${version}`);
    await permits.trySetPermits(1);
    await permits.release(await permits.acquire());
    const latch = ours.getCountDownLatch(`start ${version}`);
    await latch.trySetCount(1);
    const opened = theirs.getCountDownLatch(`start ${version}`).await();
    await latch.countDown();
    expect(await opened).toBe(true);
    const group = new MultiLock(ours.getLock(`one ${version}`), theirs.getFairLock(`two ${version}`));
    await group.run(async () => {
      const names: string[] = [];
      for await (const { name } of ours.list({ count: 2 })) names.push(name);
      expect(names).toEqual(expect.arrayContaining([`one ${version}`, `two ${version}`]));
      const told = async () => (await theirs.inspect(`one ${version}`))?.holders[0]?.client?.id === ours.id;
      await until("presence tells whose it is", told);
    });
  });

  test("a grant is acknowledged by replicas, and undone where they are too few", async () => {
    forTest(await startRedis({ replicaOf: server }));
    const client = make();
    const enough = locksOn(client, { ...UNHURRIED, replicas: 1, replicasTimeout: 20_000 });
    await Promise.all(["a", "b", "c"].map((name) => enough.getLock(`copied ${name}`).run(() => {})));
    const lock = locksOn(client, { ...UNHURRIED, replicas: 2, replicasTimeout: 500 }).getLock("copied twice");
    expect(await failure(lock.lock())).toMatchObject({ code: "REPLICAS", acknowledged: 1, required: 2 });
    await until("the grant is undone", async () => !(await lock.isLocked()));
  });

  test("a wrong password is told at once, and is a passing thing", async () => {
    await using guarded = await startRedis({ password: "right" });
    const lock = locksOn(make({ url: `redis://:wrong@${guarded.host}:${guarded.port}` })).getLock("guarded");
    const error = await failure(lock.lock());
    expect(error).toMatchObject({ code: "UNSUPPORTED", message: expect.stringMatching(/WRONGPASS|NOAUTH/) });
    expect(error.message).not.toContain("wrong@");
    await guarded.call("CONFIG", "SET", "requirepass", "wrong");
    await until("it is let in", () => lock.run(() => true));
    expect(await lock.isLocked()).toBe(false);
  });

  test("a server that is not there is UNAVAILABLE with the reason, and all is well once it is", async () => {
    await using away = await startRedis();
    await away.kill();
    const lock = locksOn(make({ url: away.url }), { commandTimeout: 1_000 }).getLock("away");
    const error = await failure(lock.lock());
    expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { code: "ECONNREFUSED" } });
    await away.restart();
    await until("it is taken", () => lock.run(() => true));
  });

  test("a call in a scope that connects the client does not keep its scope for others", async () => {
    const locks = locksOn(make());
    const lock = locks.getLock("scoped");
    await locks.scope(async () => {
      await lock.lock();
      await lock.unlock();
    });
    const acquired = nextEvent(locks, "acquired");
    await lock.run(() => {});
    expect((await acquired).nested).toBe(false);
  });

  test("a client that is given inside a request connects outside of it [B260]", async () => {
    const store = new AsyncLocalStorage<string>();
    const connection = store.run("gives it", () => fromNodeRedis(make()));
    const locks = forTest(new LockClient(connection, UNHURRIED));
    const seen: unknown[] = [];
    const note = () => seen.push(store.getStore());
    subscribe("net.client.socket", note);
    onTestFinished(() => void unsubscribe("net.client.socket", note));
    await locks.getLock("outside").run(() => {});
    expect([...new Set(seen)]).toEqual([undefined]);
  });

  const methods = (...names: string[]) => Object.fromEntries(names.map((name) => [name, () => {}]));
  const old = /redis 5 or 6 makes; this is one of redis 4 or older/;
  test.each<[what: string, client: () => unknown, told: RegExp]>([
    ["undefined", () => undefined, /not undefined/],
    ["null", () => null, /not null/],
    ["an object", () => ({}), /createClient/],
    ["a client of ioredis", () => server.connect(), /ioredis goes into new LockClient\(\) as it is/],
    ["a client with keyPrefix", () => redis.client({ keyPrefix: "shop:" }), /`prefix`/],
    ["one of redis 4", () => methods("executeIsolated", "duplicate", "sendCommand"), old],
    ["one in legacyMode", () => methods("executeIsolated", "duplicate", "sendCommand", "evalsha"), old],
    ["one of redis 3", () => methods("internal_send_command", "duplicate", "evalsha"), old],
  ])("fromNodeRedis refuses %s with what to do instead [B270]", (_, client, told) => {
    const given = client();
    expect(() => fromNodeRedis(given as never)).toThrow(TypeError);
    expect(() => fromNodeRedis(given as never)).toThrow(told);
  });

  test("a client that has not gone through fromNodeRedis is refused, with where it goes", () => {
    const raw = () => new LockClient(make() as never);
    expect(raw).toThrow(TypeError);
    expect(raw).toThrow("fromNodeRedis(client) of holdfast/node-redis");
  });
});
