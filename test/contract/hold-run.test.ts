/** Contract section 2: the rules of run. */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import {
  type FaultProxy,
  type RedisServer,
  startProxy,
  startRedis,
  until,
  untilGone,
} from "../support/index.js";
import { countOf, failure, recordEvents, watch } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  lock = client.getLock("a");
});
afterAll(async () => {
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => redis.flushall());

const LOST = { code: "LOCK_LOST", lockName: "a" };

async function throughProxy(): Promise<{ proxy: FaultProxy; subject: LockClient; through: Lock }> {
  const proxy = await startProxy(server);
  const subject = new LockClient(proxy.connect(), { commandTimeout: 600 });
  return { proxy, subject, through: subject.getLock("a") };
}

describe("fn's error always wins", () => {
  const error = new Error("mine");

  test("thrown or rejected; the lock is given back", async () => {
    expect(await failure(lock.run(() => Promise.reject(error)))).toBe(error);
    expect(
      await failure(
        lock.run(() => {
          throw error;
        }),
      ),
    ).toBe(error);
    expect(await redis.exists("a")).toBe(0);
  });

  test("what is thrown need be no error", async () => {
    expect(await failure(lock.run(() => Promise.reject("text")))).toBe("text");
    let thrown: unknown = "nothing";
    await lock
      .run(() => Promise.reject(undefined))
      .catch((reason: unknown) => {
        thrown = reason;
      });
    expect(thrown).toBeUndefined();
  });

  test("over a loss", async () => {
    const run = lock.run(async () => {
      await lock.forceUnlock();
      throw error;
    });
    expect(await failure(run)).toBe(error);
  });

  test("over a release that gets no answer", async () => {
    const { proxy, subject, through } = await throughProxy();
    const run = through.run(async () => {
      proxy.blackhole();
      throw error;
    });
    expect(await failure(run)).toBe(error);
    proxy.restore();
    await untilGone(redis, "a");
    await subject.close();
    await proxy.stop();
  });
});

describe("if fn succeeds and the hold was lost before the end, run rejects LOCK_LOST with fn's result", () => {
  test("expired on the server, noticed by the release", async () => {
    const run = lock.run(async () => {
      await redis.del("a");
      return { answer: 42 };
    });
    expect(await failure(run)).toMatchObject({ ...LOST, reason: "expired", result: { answer: 42 } });
  });

  test("taken", async () => {
    const run = lock.run(async () => {
      await redis.del("a");
      await redis.hset("a", "somebody:1", "1");
      return 42;
    });
    expect(await failure(run)).toMatchObject({ ...LOST, reason: "taken", result: 42 });
    expect(await redis.hgetall("a")).toEqual({ "somebody:1": "1" });
  });

  test("by its lease", async () => {
    const run = lock.run(
      async (hold) => {
        await until("it is lost", () => hold.signal.aborted);
        return "late";
      },
      { lease: 400 },
    );
    expect(await failure(run)).toMatchObject({ ...LOST, reason: "expired", result: "late" });
  });

  test("by force", async () => {
    const run = lock.run(async () => {
      expect(await lock.forceUnlock()).toBe(true);
      return "forced";
    });
    expect(await failure(run)).toMatchObject({ ...LOST, reason: "forced", result: "forced" });
  });

  test("though fn has met the loss itself and swallowed it", async () => {
    const run = lock.run(async (hold) => {
      await redis.del("a");
      await failure(hold.unlock());
      return "swallowed";
    });
    expect(await failure(run)).toMatchObject({ ...LOST, result: "swallowed" });
  });

  test("a nested run's loss is the outer one's too", async () => {
    const outer = lock.run(async () => {
      const inner = lock.run(async () => {
        await redis.del("a");
        return "inner";
      });
      expect(await failure(inner)).toMatchObject({ ...LOST, result: "inner" });
      return "outer";
    });
    expect(await failure(outer)).toMatchObject({ ...LOST, result: "outer" });
  });
});

describe("if only the release gets no answer", () => {
  test("run resolves, the release goes on in the background and `error` is emitted", async () => {
    const { proxy, subject, through } = await throughProxy();
    const events = recordEvents(subject);
    const result = await through.run(() => {
      proxy.blackhole();
      return "done";
    });
    expect(result).toBe("done");
    await until("the error", () => events.some(({ name }) => name === "error"));
    expect(events.filter(({ name }) => name === "error")).toHaveLength(1);
    expect(events.find(({ name }) => name === "error")?.payload).toMatchObject({
      lockName: "a",
      kind: "lock",
      cause: { code: "UNAVAILABLE" },
    });
    expect(await redis.exists("a")).toBe(1);
    proxy.restore();
    await untilGone(redis, "a");
    expect(events.some(({ name }) => name === "lost")).toBe(false);
    await subject.close();
    await proxy.stop();
  });
});

describe("hold.unlock() inside fn is allowed; run then gives nothing back", () => {
  test("and resolves", async () => {
    const result = await lock.run(async (hold) => {
      await hold.unlock();
      expect(await redis.exists("a")).toBe(0);
      return "done";
    });
    expect(result).toBe("done");
  });

  test("not awaited", async () => {
    const events = recordEvents(client);
    const result = await lock.run((hold) => {
      watch(hold.unlock());
      return "done";
    });
    expect(result).toBe("done");
    await untilGone(redis, "a");
    expect(events.filter(({ name }) => name === "released")).toHaveLength(1);
  });

  test("what others have taken since stays theirs", async () => {
    await using rival = new LockClient(redis);
    let theirs: Awaited<ReturnType<Lock["lock"]>> | undefined;
    await lock.run(async (hold) => {
      await hold.unlock();
      theirs = await rival.getLock("a").lock();
    });
    expect(theirs?.isHeld).toBe(true);
    expect(await countOf(server, "a")).toBe(1);
    await theirs?.unlock();
  });

  test("in a nested run the outer hold stays", async () => {
    await lock.run(async (outer) => {
      await lock.run((inner) => inner.unlock());
      expect(outer.isHeld).toBe(true);
      expect(await countOf(server, "a")).toBe(1);
    });
    expect(await redis.exists("a")).toBe(0);
  });

  test("a call after it inside fn takes the lock anew", async () => {
    await lock.run(async (hold) => {
      await hold.unlock();
      const second = await lock.lock({ wait: 5_000 });
      expect(second.ownerId).not.toBe(hold.ownerId);
      await second.unlock();
    });
    expect(await redis.exists("a")).toBe(0);
  });
});

test("a hold that fn keeps answers as one given back when the run is over", async () => {
  const hold = await lock.run((mine) => mine);
  expect(hold.isHeld).toBe(false);
  expect(hold.signal.aborted).toBe(false);
  expect(await failure(hold.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
  await hold.unlock(); // shares the outcome of the run's
});

test("the options of lock are those of run", async () => {
  await lock.run(async () => expect(await redis.pttl("a")).toBeLessThanOrEqual(5_000), { lease: 5_000 });
  await lock.run(async () => expect(await redis.pttl("a")).toBeGreaterThan(20_000));
  const hold = await lock.lock();
  expect(await failure(lock.run(() => "never", { wait: 40 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
  expect(await failure(lock.run(() => "never", { wait: 0 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
  await hold.unlock();
});
