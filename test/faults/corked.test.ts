/**
 * The library corks its socket after the first command of a tick, so that the others travel together. It never
 * leaves the socket corked.
 */
import type { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { type Hold, LockClient } from "../../src/index.js";
import { forFile, forTest, ownConnections, startRedis } from "../support/index.js";

const server = await forFile(startRedis());

/** The client's own connection for commands. */
let redis: Redis;
let client: LockClient;
beforeEach(async () => {
  const given = server.connect();
  const own = ownConnections(given);
  client = forTest(new LockClient(given, { presence: false }));
  redis = own[0] as Redis;
  // One run each, so that from now on scripts are sent by EVALSHA, corked.
  for (const name of ["a", "b"]) await client.getLock(name).run(() => {});
});

const corked = (): number => redis.stream.writableCorked;

test("the first command of a tick goes at once, the others together when it is over [B9]", async () => {
  const first = client.getLock("a").lock();
  expect(corked()).toBe(0);
  const holds = Promise.all([first, client.getLock("b").lock()]);
  expect(corked()).toBe(1);
  expect(redis.stream.writableLength).toBeGreaterThan(0);
  for (const hold of await holds) await hold.unlock();
  expect(corked()).toBe(0);
});

test("a command that throws while it is sent holds nothing up", async () => {
  const send = redis.evalsha;
  redis.evalsha = () => {
    throw new Error("not sent");
  };
  const failed = expect(client.getLock("a").lock()).rejects.toThrow();
  redis.evalsha = send;
  expect(await redis.ping()).toBe("PONG");
  await failed;
});

test("a connection that gets a new socket within a tick is not held up", async () => {
  const ended = new Promise((resolve) => redis.once("end", resolve));
  redis.disconnect();
  await ended;
  const old = redis.stream;
  const holds: Promise<Hold>[] = [];
  const lock = (name: string): void => {
    holds.push(client.getLock(name).lock());
  };
  // ioredis sets the new socket in a promise's callback, and the tick ends when all of those callbacks have run.
  process.nextTick(() => void Promise.resolve().then(() => ["a", "b"].forEach(lock)));
  const connected = redis.connect();
  const replaced = new Promise<boolean>((resolve) => {
    process.nextTick(async () => {
      for (let i = 0; i < 50 && redis.stream === old; i++) await undefined;
      resolve(redis.stream !== old && old.writableCorked === 1);
      // A long row of commands is uncorked and corked again in between.
      for (let i = 0; i < 40; i++) lock(`c${i}`);
    });
  });
  expect(await replaced).toBe(true);
  await connected;
  expect(await redis.ping()).toBe("PONG");
  for (const hold of await Promise.all(holds)) await hold.unlock();
});
