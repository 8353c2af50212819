/**
 * A user's tests replace timers and clocks by fakes. Redis goes on in real time, and so does this library. No call
 * hangs, no hold is lost, and nothing delays the user's own connection.
 */
import type { Redis } from "ioredis";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LockClient } from "../../../src/index.js";
import { type RedisServer, startRedis } from "../../support/index.js";
import { Sandbox } from "./sandbox.js";
import { fakeEverything } from "./vitest-fakes.js";
import { workAll } from "./work.js";

const HOUR = 3_600_000;

let server: RedisServer;
let redis: Redis;
let other: Redis;
beforeEach(async () => {
  server = await startRedis();
  [redis, other] = [server.connect(), server.connect()];
  await Promise.all([redis.ping(), other.ping()]);
});
afterEach(async () => {
  await server.stop();
});

async function expectWork(library: { LockClient: typeof LockClient }): Promise<void> {
  const [client, rival] = [redis, other].map(
    (connection) => new library.LockClient(connection, { watchdogTimeout: 3_000 }),
  ) as [LockClient, LockClient];
  await Promise.all([client.ready(), rival.ready()]);
  await workAll([client, redis], [rival, other]);
  const held = await client.getLock("held at the end").lock();
  await client.close({ timeout: 50 });
  expect(held.isHeld).toBe(false);
  await rival.close();
  expect(await redis.ping()).toBe("PONG");
}

describe("Vitest's fakes", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test("all that they can replace is replaced: everything works [B9]", async () => {
    fakeEverything();
    await expectWork({ LockClient });
  });

  test("an hour that they skip does not end a hold", async () => {
    const client = new LockClient(redis);
    const hold = await client.getLock("job").lock();
    vi.useFakeTimers();
    vi.advanceTimersByTime(HOUR);
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeGreaterThan(1_000);
    await hold.extend(60_000);
    await hold.unlock();
    await client.close();
  });
});

describe("fakes of a realm with a `process` of its own, as Jest has them", () => {
  test("put in place after the import: everything works", async () => {
    const sandbox = new Sandbox();
    const library = await sandbox.load();
    sandbox.freeze();
    await expectWork(library);
  });

  test("put in place before the import: everything works [B306]", async () => {
    const sandbox = new Sandbox();
    sandbox.freeze();
    await expectWork(await sandbox.load());
  });
});
