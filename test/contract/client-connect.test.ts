/** Contract section 1: connect, prefix, and when a client has a connection. */
import { beforeEach, describe, expect, test } from "vitest";
import { isLockError, LockClient } from "../../src/index.js";
import { allKeys, forFile, startRedis, UNHURRIED, until, untilGone } from "../support/index.js";
import {
  type Connection,
  connectionsOf,
  connectionsSince,
  failure,
  isBuilt,
  loadCjs,
  loadEsm,
  setUser,
  warmUp,
} from "./helpers.js";

const server = await forFile(startRedis());
const redis = server.connect();
await redis.ping();
beforeEach(() => redis.flushall());

/** Resolves when the server has no other clients than these. */
async function untilOnly(before: readonly Connection[]): Promise<void> {
  await until("no other connections", async () => (await connectionsSince(before, server)).length === 0);
}

/** All keys that are left on the server expire within a minute. */
async function onlyMarkers(): Promise<void> {
  for (const state of (await allKeys(redis)).values()) {
    expect(state.ttl).toBeGreaterThan(0);
    expect(state.ttl).toBeLessThanOrEqual(60_000);
  }
}

describe("LockClient.connect", () => {
  test("to a URL: it is synchronous, and the client owns the connection [§1 connect]", async () => {
    const before = await connectionsOf(server);
    {
      await using client = LockClient.connect(server.url, UNHURRIED);
      expect(client).toBeInstanceOf(LockClient);
      await client.ready();
      const hold = await client.getLock("a").lock();
      expect(await redis.hgetall("a")).toEqual({ [hold.ownerId]: "1" });
      await hold.unlock();
      expect(await connectionsSince(before, server)).not.toHaveLength(0);
    }
    await untilOnly(before);
  });

  test("by ioredis options, with options of the client", async () => {
    const before = await connectionsOf(server);
    {
      const target = { host: server.host, port: server.port, db: 1 };
      await using client = LockClient.connect(target, { ...UNHURRIED, watchdogTimeout: 20_000 });
      const hold = await client.getLock("a").lock();
      expect(hold.remaining).toBeLessThanOrEqual(20_000);
      expect(await redis.exists("a")).toBe(0);
      const second = server.connect({ db: 1 });
      expect(await second.exists("a")).toBe(1);
      second.disconnect();
      await hold.unlock();
    }
    await untilOnly(before);
  });

  test("its connection's errors are told by the error event", async () => {
    const client = LockClient.connect({ port: 1, host: "127.0.0.1" }, { commandTimeout: 100 });
    const heard = new Promise((resolve) => client.once("error", resolve));
    expect(await heard).toMatchObject({ cause: expect.any(Error) });
    await client.close();
  });
});

describe("ready()", () => {
  /** A client of a user who may use all keys and channels, but only these commands. */
  async function clientWith(commands: string): Promise<LockClient> {
    await setUser(server, "limited", `>secret ~* &* ${commands}`);
    const target = { port: server.port, username: "limited", password: "secret" };
    return LockClient.connect(target, UNHURRIED);
  }

  test("without ready(): a lock whose TTL the user may not set does not stay without one", async () => {
    const client = await clientWith("+@all -pexpire");
    expect(await failure(client.getLock("a").lock())).toMatchObject({ code: "UNSUPPORTED", lockName: "a" });
    await client.close({ timeout: 0 });
    await onlyMarkers();
  });
});

describe("prefix", () => {
  test("is put before every name, and names come without it", async () => {
    await using client = new LockClient(redis, { ...UNHURRIED, prefix: "app" });
    const lock = client.getLock("a");
    expect(lock.name).toBe("a");
    const hold = await lock.lock();
    expect(hold.lockName).toBe("a");
    expect(await redis.hgetall("app:a")).toEqual({ [hold.ownerId]: "1" });
    expect(await redis.exists("a")).toBe(0);
    const waiting = new Promise((resolve) => client.once("waiting", resolve));
    const second = lock.lock();
    expect(await waiting).toMatchObject({ lockName: "a" });
    await until("the waiter listens on the full name's channel", async () =>
      (await redis.pubsub("CHANNELS")).includes("redisson_lock__channel:{app:a}"),
    );
    await hold.unlock();
    await (await second).unlock();
    expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER", lockName: "a" });
    for (const key of await redis.keys("*")) expect(key).toContain("app:a");
  });

  test("that ends with a colon is one like any other [B106]", async () => {
    await using client = new LockClient(redis, { ...UNHURRIED, prefix: "app:" });
    const hold = await client.getLock("order").lock();
    expect(await redis.exists("app::order", "app:order")).toBe(1);
    expect(await client.inspect("order")).toMatchObject({ name: "order" });
    const names: string[] = [];
    for await (const { name } of client.list()) names.push(name);
    expect(names).toEqual(["order"]);
    await hold.unlock();
  });
});

describe.skipIf(!isBuilt)("isLockError works across copies", () => {
  test("for errors, codes and what is none [§6 is-lock-error]", async () => {
    const copies = [{ LockClient, isLockError }, await loadEsm(), loadCjs()];
    for (const maker of copies) {
      const client = new maker.LockClient(redis);
      const error = await failure(client.getLock("a").unlock());
      await client.close();
      for (const judge of copies) {
        expect(judge.isLockError(error)).toBe(true);
        expect(judge.isLockError(error, "NOT_OWNER")).toBe(true);
        expect(judge.isLockError(error, "LOCK_LOST")).toBe(false);
      }
    }
    for (const { isLockError: judge } of copies) {
      const coded = Object.assign(new Error("x"), { code: "NOT_OWNER" });
      for (const other of [undefined, null, "NOT_OWNER", {}, new Error("x"), coded])
        expect(judge(other)).toBe(false);
    }
  });
});

test("a client that nobody has used has no connection, and one whose locks are given back has no key", async () => {
  const before = await connectionsOf(server);
  await using client = new LockClient(redis, UNHURRIED);
  expect(await connectionsSince(before, server)).toEqual([]);
  await warmUp(client.getLock("a"));
  await untilGone(redis, "a");
});
