/**
 * ioredis goes on in the database where it is when Redis refuses a SELECT. Locks are taken in the database of their
 * connection all the same, or not at all.
 */
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import type { Connection } from "../../src/redis/connection.js";
import { Database } from "../../src/redis/database.js";
import { type Deferred, deferred } from "../support/deferred.js";
import { failure, forFile, forTest, startRedis, UNHURRIED, until } from "../support/index.js";

const server = await forFile(startRedis());
const direct = server.connect();

const USER = { username: "clerk", password: "secret" };
const WAYS = ["+@all", "-select"];

/** What the user may do beside all that locks need. */
const allow = (...rules: string[]) =>
  direct.call("ACL", "SETUSER", "clerk", "reset", "on", ">secret", "~*", "&*", ...rules);
const heldIn = async (db: number) => (await server.connect({ db }).exists("job")) === 1;
const connectAs = (db: number) => {
  const redis = server.connect({ db, ...USER });
  // ioredis tells of a refused SELECT by this event, and prints it if nobody listens.
  redis.on("error", () => {});
  return redis;
};

beforeEach(() => allow(...WAYS));
afterEach(() => direct.flushall());

const KINDS: [string, (db: number) => LockClient][] = [
  ["a given connection", (db) => forTest(new LockClient(connectAs(db), UNHURRIED))],
  [
    "LockClient.connect",
    (db) => forTest(LockClient.connect({ host: server.host, port: server.port, db, ...USER }, UNHURRIED)),
  ],
];

describe.for(KINDS)("%s", ([, connect]) => {
  test("that may not select its database is refused, until it may [B241]", async () => {
    const client = connect(3);
    const lock = client.getLock("job");
    expect(await failure(client.ready())).toMatchObject({ code: "UNSUPPORTED" });
    expect(await failure(lock.lock())).toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringContaining("select"),
    });
    // Nor is the other database shown.
    for (const call of [client.list().next(), client.inspect("job"), lock.isLocked()])
      expect(await failure(call)).toMatchObject({ code: "UNSUPPORTED" });
    expect(await direct.dbsize()).toBe(0);
    await allow("+@all");
    await lock.run(async () => expect([await heldIn(0), await heldIn(3)]).toEqual([false, true]));
  });

  test("with a database that the server lacks is refused", async () => {
    await allow("+@all");
    const lock = connect(99).getLock("job");
    expect(await failure(lock.tryLock())).toMatchObject({
      code: "UNSUPPORTED",
      message: expect.stringContaining("databases"),
    });
    expect(await direct.dbsize()).toBe(0);
  });

  test("that comes back, and may not select its database any more, is refused", async () => {
    await allow("+@all");
    const lock = connect(3).getLock("job");
    await lock.run(async () => expect(await heldIn(3)).toBe(true));
    await allow(...WAYS);
    await direct.call("CLIENT", "KILL", "USER", "clerk");
    expect(await failure(lock.lock())).toMatchObject({ code: "UNSUPPORTED" });
    // What was on its way may have been run where nobody looks for it, and is over with its lease.
    expect(await direct.pttl("job")).not.toBe(-1);
    await allow("+@all");
    await lock.run(async () => expect(await heldIn(3)).toBe(true));
  });
});

/** A connection to database 3, of which nothing is there but its events and the SELECTs that it was given. */
function bare(status: string) {
  const asked: Deferred<Error | undefined>[] = [];
  const select = async () => {
    const answer = deferred<Error | undefined>();
    asked.push(answer);
    const refusal = await answer.promise;
    if (refusal) throw refusal;
  };
  const connection = Object.assign(new EventEmitter(), { status, options: { db: 3 }, stream: {}, select });
  return { asked, connection, database: new Database(connection as unknown as Connection) };
}

test("what waits for a connection leaves no listener behind when the client is closed", () => {
  const { connection, database } = bare("connecting");
  const heard = () =>
    ["ready", "end", "close"].reduce((sum, event) => sum + connection.listenerCount(event), 0);
  void database.run(() => Promise.resolve());
  expect(heard()).toBeGreaterThan(0);
  database.close();
  expect(heard()).toBe(0);
});

test("a refusal that was on its way as a call began is not that call's", async () => {
  const { asked, connection, database } = bare("ready");
  const calls = [1, 2, 3].map((n) => database.run(() => Promise.resolve(n)));
  expect(asked).toHaveLength(1);
  asked[0]?.resolve(new Error("NOPERM"));
  expect(await failure(calls[0] as Promise<number>)).toMatchObject({ message: "NOPERM" });
  await until("it is asked once more for all others", () => asked.length === 2);
  asked[1]?.resolve(undefined);
  expect(await Promise.all(calls.slice(1))).toEqual([2, 3]);
  expect([asked.length, connection.listenerCount("close")]).toEqual([2, 0]);
});

test("a database that the user of a connection has selected in vain is not taken for granted", async () => {
  const redis = connectAs(0);
  const lock = forTest(new LockClient(redis, UNHURRIED)).getLock("job");
  await lock.run(async () => expect(await heldIn(0)).toBe(true));
  expect(await failure(redis.select(4))).toMatchObject({ message: expect.stringContaining("NOPERM") });
  expect(await failure(lock.lock())).toMatchObject({ code: "UNSUPPORTED" });
  await allow("+@all");
  await lock.run(async () => expect([await heldIn(0), await heldIn(4)]).toEqual([false, true]));
});

test("a server that is busy at first is waited for, and the lock is taken where it belongs", async () => {
  await allow("+@all");
  await direct.config("SET", "busy-reply-threshold", "1");
  const busy = failure(server.connect().eval("while true do end", 0));
  const said = () => direct.ping().then(String, String);
  await until("it is busy", async () => (await said()).includes("BUSY"));
  const redis = connectAs(3);
  const refused = new Promise((resolve) => redis.once("error", resolve));
  const lock = forTest(new LockClient(redis, UNHURRIED)).getLock("job");
  const call = lock.lock();
  await refused;
  await direct.script("KILL");
  await busy;
  const hold = await call;
  expect([await heldIn(0), await heldIn(3)]).toEqual([false, true]);
  await hold.unlock();
  await direct.config("SET", "busy-reply-threshold", "5000");
});
