/**
 * ioredis goes on in the database where it is when Redis refuses a SELECT. Locks are taken in the database of their
 * connection all the same, or not at all.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { failure, forFile, forTest, startRedis, UNHURRIED } from "../support/index.js";

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
