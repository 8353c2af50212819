/** Locks on clients of node-redis for one server. */
import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, expect, onTestFinished, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient, MultiLock, RedLock } from "../../src/index.js";
import { failure, nextEvent, untilWaiting } from "../contract/helpers.js";
import { PLAIN } from "../contract/kinds.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import { forFile, startRedis, type TestClient, UNHURRIED, until } from "../support/index.js";
import { coreOfTheContract } from "../topology/core.js";
import { Clients, expectConnectedByFirstCall, expectLeftToItsUser, VERSIONS } from "./node-redis-support.js";

const clients = new Clients();

failOnUnhandledRejections();
const server = await forFile(startRedis());

describe.each(VERSIONS)("%s", (version, redis) => {
  const make = (options: object = {}): TestClient =>
    clients.add(redis.client({ url: server.url, ...options }));

  coreOfTheContract(`on ${version}`, { connect: () => fromNodeRedis(make()) });
  coreOfTheContract(`on ${version} with the other protocol`, {
    connect: () => fromNodeRedis(make({ RESP: version === "redis 5" ? 3 : 2 })),
    kinds: [PLAIN],
  });

  test("a client that is not connected is connected at the first call, and stays open when the LockClient closes", async () => {
    await expectConnectedByFirstCall(make());
  });

  test("a client that its user is connecting is waited for; one that was closed is not connected again", async () => {
    await expectLeftToItsUser(make(), true);
  });

  test("a LockClient that closes leaves no connection of its own", async () => {
    await using quiet = await startRedis();
    const client = clients.add(redis.client({ url: quiet.url }));
    const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
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

  test("listens to a client once, however many LockClients there are", async () => {
    const client = make();
    const before = client.listeners("ready").length;
    for (let i = 0; i < 12; i++) {
      const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
      await locks.getLock("many").run(() => {});
      await locks.close();
    }
    expect(client.listeners("ready").length).toBe(before + 1);
  });

  test("what the client's user has set for their own commands changes nothing", async () => {
    const client = make({
      commandOptions: { timeout: 1, typeMapping: { 36: Buffer, 43: Buffer, 58: String } },
      disableOfflineQueue: true,
    });
    const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
    const fenced = locks.getFencedLock("mapped");
    const [first, second] = [await fenced.run(({ token }) => token), await fenced.run(({ token }) => token)];
    expect(second).toBeGreaterThan(first);
    await locks.ready();
    const hold = await fenced.lock();
    expect(await locks.inspect("mapped")).toMatchObject({ kind: "fenced", holders: [{ count: 1 }] });
    await hold.unlock();
    await locks.close();
  });

  test("semaphores, permits, latches, groups, presence and lists", async () => {
    const [ours, theirs] = [make(), make()].map((client) => new LockClient(fromNodeRedis(client), UNHURRIED));
    if (!ours || !theirs) throw new Error("no clients");
    const semaphore = ours.getSemaphore(`desks ${version}`);
    await semaphore.trySetPermits(1);
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
    await Promise.all([ours.close(), theirs.close()]);
  });

  test("a RedLock over three servers, connected at its first call", async () => {
    const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
    const members = servers.map(
      ({ url }) => new LockClient(fromNodeRedis(clients.add(redis.client({ url })))),
    );
    const quorum = new RedLock(...members.map((member) => member.getLock("red")));
    await quorum.run(({ members: held }) => expect(held.length).toBeGreaterThan(1));
    await servers[0]?.kill();
    await quorum.run(({ members: held }) => expect(held.length).toBe(2));
    await Promise.all(members.map((member) => member.close({ timeout: 0 })));
    await Promise.all(servers.map((each) => each.stop()));
  });

  test("replicas that must acknowledge a grant", async () => {
    const replica = await startRedis({ replicaOf: server });
    const client = make();
    const enough = new LockClient(fromNodeRedis(client), {
      ...UNHURRIED,
      replicas: 1,
      replicasTimeout: 20_000,
    });
    await Promise.all(["a", "b", "c"].map((name) => enough.getLock(`copied ${name}`).run(() => {})));
    const tooMany = new LockClient(fromNodeRedis(client), {
      ...UNHURRIED,
      replicas: 2,
      replicasTimeout: 1_500,
    });
    const lock = tooMany.getLock("copied twice");
    expect(await failure(lock.lock())).toMatchObject({ code: "REPLICAS", acknowledged: 1, required: 2 });
    await until("the grant is undone", async () => !(await lock.isLocked()));
    await Promise.all([enough.close(), tooMany.close()]);
    await replica.stop();
  });

  test("a wrong password is told at once, and is a passing thing", async () => {
    await using guarded = await startRedis({ password: "right" });
    const client = clients.add(redis.client({ url: `redis://:wrong@${guarded.host}:${guarded.port}` }));
    const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
    const error = await failure(locks.getLock("guarded").lock());
    expect(error).toMatchObject({ code: "UNSUPPORTED" });
    expect(error.message).toMatch(/WRONGPASS|NOAUTH/);
    expect(error.message).not.toContain("wrong@");
    await guarded.call("CONFIG", "SET", "requirepass", "wrong");
    const taken = () => locks.getLock("guarded").run(() => true);
    await until("it is let in", taken);
    expect(await locks.getLock("guarded").isLocked()).toBe(false);
    await locks.close();
  });

  test("a server that is not there: UNAVAILABLE with the reason, and all is well once it is", async () => {
    const away = await startRedis();
    await away.kill();
    const client = clients.add(redis.client({ url: away.url }));
    const locks = new LockClient(fromNodeRedis(client), { commandTimeout: 1_000 });
    const error = await failure(locks.getLock("away").lock());
    expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { code: "ECONNREFUSED" } });
    await away.restart();
    await until("it is taken", () => locks.getLock("away").run(() => true));
    await locks.close({ timeout: 0 });
    await away.stop();
  });

  test("the key of other data is WRONG_DATA", async () => {
    const locks = new LockClient(fromNodeRedis(make()), UNHURRIED);
    await server.call("SET", "text", "x");
    expect(await failure(locks.getLock("text").lock())).toMatchObject({ code: "WRONG_DATA" });
    await locks.close();
  });

  test("a call in a scope that connects the client does not keep its scope for others", async () => {
    const client = make();
    const locks = new LockClient(fromNodeRedis(client), UNHURRIED);
    const lock = locks.getLock("scoped");
    await locks.scope(async () => {
      await lock.lock();
      await lock.unlock();
    });
    const acquired = nextEvent(locks, "acquired");
    await lock.run(() => {});
    expect((await acquired).nested).toBe(false);
    await locks.close();
  });

  test("a client that is given inside a request connects outside of it [B260]", async () => {
    const store = new AsyncLocalStorage<string>();
    const connection = store.run("gives it", () => fromNodeRedis(make()));
    const locks = new LockClient(connection, UNHURRIED);
    const seen: unknown[] = [];
    const note = () => seen.push(store.getStore());
    subscribe("net.client.socket", note);
    onTestFinished(() => void unsubscribe("net.client.socket", note));
    await locks.getLock("outside").run(() => {});
    expect([...new Set(seen)]).toEqual([undefined]);
    await locks.close();
  });

  test("clients with keyPrefix, pools and things that are no clients are refused", () => {
    const anything = (value: unknown) => () => fromNodeRedis(value as TestClient);
    expect(anything(undefined)).toThrow(TypeError);
    expect(anything(null)).toThrow(/not null/);
    expect(anything({})).toThrow(/createClient/);
    expect(anything(server.connect())).toThrow(/ioredis goes into new LockClient\(\) as it is/);
    const prefixed = redis.client({ keyPrefix: "shop:" });
    expect(anything(prefixed)).toThrow(/`prefix`/);
  });

  test.each([
    ["redis 4", { executeIsolated() {}, duplicate() {}, sendCommand() {} }],
    ["redis 4 in legacyMode", { executeIsolated() {}, duplicate() {}, sendCommand() {}, evalsha() {} }],
    ["redis 3", { internal_send_command() {}, duplicate() {}, evalsha() {} }],
  ])("a client with the methods of %s is refused as one that is too old [B270]", (_, client) => {
    expect(() => fromNodeRedis(client as never)).toThrow(
      /redis 5 or 6 makes; this is one of redis 4 or older/,
    );
  });

  test("a client that has not gone through fromNodeRedis is refused, with what to import", () => {
    const raw = () => new LockClient(make() as never);
    expect(raw).toThrow(TypeError);
    expect(raw).toThrow("import { fromNodeRedis } from 'holdfast/node-redis'");
  });
});
