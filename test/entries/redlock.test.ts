/** The interface of redlock: the examples of its documentation, written anew, on one, three and five masters. */
import type { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { describe, expect, test } from "vitest";
import DefaultRedlock, {
  ExecutionError,
  Lock,
  Redlock,
  type RedlockClient,
  ResourceLockedError,
} from "../../src/entries/redlock.js";
import { isLockError, LockClient } from "../../src/index.js";
import { freshName } from "../faults/harness.js";
import { useMasters } from "../groups/red-helpers.js";
import { startRedis, until } from "../support/index.js";
import {
  countHeld,
  executionError,
  LOCKED,
  LONG,
  newRedlock,
  ONCE,
  PATIENT,
  untilAwaited,
  votesAgainst,
} from "./redlock-helpers.js";

const masters = await useMasters(5);

describe.each([
  { count: 1, version: 6 as const },
  { count: 2, version: 6 as const },
  { count: 3, version: 5 as const },
  { count: 5, version: 6 as const },
])("$count masters, ioredis $version", ({ count, version }) => {
  const quorum = Math.floor(count / 2) + 1;
  const servers = () => masters.slice(0, count);

  test("a resource is locked and released", async () => {
    const redlock = newRedlock(servers(), {}, version);
    const name = freshName();
    const before = Date.now();
    const lock = await redlock.acquire([name], LONG);
    expect(lock).toBeInstanceOf(Lock);
    expect(lock.redlock).toBe(redlock);
    expect(lock.resources).toEqual([name]);
    expect(lock.value).toMatch(/^[0-9a-f-]{36}:\d+$/);
    // The drift takes off one percent and 2 ms; two clocks with whole milliseconds may differ by one more.
    expect(lock.expiration).toBeGreaterThanOrEqual(before + LONG * 0.99 - 2 - 2);
    expect(lock.expiration).toBeLessThanOrEqual(Date.now() + LONG * 0.99 - 2);
    const [stats] = await Promise.all(lock.attempts);
    expect(lock.attempts).toHaveLength(1);
    expect(stats).toMatchObject({ membershipSize: count, quorumSize: quorum });
    expect(stats?.votesFor).toEqual(redlock.clients);
    expect(stats?.votesAgainst.size).toBe(0);
    expect(await countHeld(servers(), name)).toBe(count);

    const released = await lock.release();
    expect(lock.expiration).toBe(0);
    expect((await released.attempts[0])?.votesFor).toEqual(redlock.clients);
    await until("it is free everywhere", async () => (await countHeld(servers(), name)) === 0);
  });

  test("a lock is extended: the new one replaces the old", async () => {
    const redlock = newRedlock(servers(), {}, version);
    const name = freshName();
    const first = await redlock.acquire([name], LONG / 10);
    const { expiration } = first;
    const second = await first.extend(LONG);
    expect(second).not.toBe(first);
    expect(second.expiration).toBeGreaterThan(expiration + LONG / 2);
    expect([second.value, second.resources]).toEqual([first.value, first.resources]);
    expect(first.expiration).toBe(0);
    expect((await executionError(first.extend(LONG))).attempts).toEqual([]);
    await second.release();
    expect((await executionError(second.extend(LONG))).attempts).toEqual([]);
    await until("it is free everywhere", async () => (await countHeld(servers(), name)) === 0);
  });

  test("a resource that is locked is refused, with the votes of each attempt, and the event error", async () => {
    const [holder, other] = [newRedlock(servers(), {}, version), newRedlock(servers(), ONCE, version)];
    const name = freshName();
    const heard: unknown[] = [];
    other.on("error", (error) => heard.push(error));
    const lock = await holder.acquire([name], LONG);
    const error = await executionError(other.acquire([name], LONG));
    expect(error.name).toBe("ExecutionError");
    expect(error.message).toContain(name);
    expect(await votesAgainst(error)).toEqual([Array(count).fill(LOCKED)]);
    expect((await error.attempts[0])?.votesFor.size).toBe(0);
    expect(heard).toHaveLength(count);
    for (const each of heard) expect(each).toBeInstanceOf(ResourceLockedError);
    await lock.release();
    await (await other.acquire([name], LONG)).release();
  });

  test("a waiter is woken by the release, long before retryDelay", async () => {
    const [holder, other] = [newRedlock(servers(), {}, version), newRedlock(servers(), PATIENT, version)];
    const name = freshName();
    const lock = await holder.acquire([name], LONG);
    const next = other.acquire([name], LONG);
    await untilAwaited(servers(), name);
    await lock.release();
    await (await next).release();
  });

  test("retryCount -1 waits for ever, and a wait is over after retryCount * (retryDelay + retryJitter)", async () => {
    const [holder, other] = [newRedlock(servers(), {}, version), newRedlock(servers(), {}, version)];
    const name = freshName();
    const lock = await holder.acquire([name], LONG);
    const next = other.acquire([name], LONG, { retryCount: -1, retryDelay: 0, retryJitter: 0 });
    const begun = performance.now();
    await executionError(other.acquire([name], LONG, { retryCount: 3, retryDelay: 100, retryJitter: 50 }));
    expect(performance.now() - begun).toBeGreaterThanOrEqual(450 - 1);
    await lock.release();
    await (await next).release();
  });

  test("several resources are locked together or not at all, and no order dead-locks", async () => {
    const [one, other] = [newRedlock(servers(), PATIENT, version), newRedlock(servers(), PATIENT, version)];
    const [a, b, c] = [freshName(), freshName(), freshName()];
    const lock = await one.acquire([a, b], LONG);
    expect(lock.resources).toEqual([a, b]);
    await executionError(other.acquire([c, b], LONG, ONCE));
    await until("nothing of it is left", async () => (await countHeld(servers(), c)) === 0);
    await lock.extend(LONG);
    await lock.release();
    let inside = 0;
    const rounds = [one, other].map(async (redlock, i) => {
      for (let n = 0; n < 5; n++) {
        await redlock.using(i === 0 ? [a, b, c] : [c, b, a], LONG, async () => {
          expect(++inside).toBe(1);
          await countHeld(servers(), a);
          inside--;
        });
      }
    });
    await Promise.all(rounds);
    await until("all are free", async () => {
      const left = await Promise.all([a, b, c].map((name) => countHeld(servers(), name)));
      return left.every((held) => held === 0);
    });
  });

  test("no count is lost where many read and then write", async () => {
    const [server] = servers();
    const name = freshName();
    const redis = server?.connect();
    const parties = Array.from({ length: 3 }, () => newRedlock(servers(), PATIENT, version));
    const add = async (redlock: Redlock) => {
      const lock = await redlock.acquire([name], LONG);
      const count = Number(await redis?.get(`count of ${name}`));
      await redis?.set(`count of ${name}`, count + 1);
      await lock.release();
    };
    await Promise.all(parties.flatMap((redlock) => Array.from({ length: 15 }, () => add(redlock))));
    expect(await redis?.get(`count of ${name}`)).toBe("45");
  });

  test("a lock that has expired is neither extended nor released, and its successor's stays", async () => {
    const [redlock, other] = [newRedlock(servers(), {}, version), newRedlock(servers(), PATIENT, version)];
    const name = freshName();
    const lock = await redlock.acquire([name], 500, { retryCount: 100 });
    await until("it has expired", () => lock.expiration < Date.now());
    expect((await executionError(lock.extend(LONG))).attempts).toEqual([]);
    const next = await other.acquire([name], LONG);
    const error = await executionError(lock.release());
    expect(isLockError(error.cause, "LOCK_LOST")).toBe(true);
    expect(await votesAgainst(error)).toEqual([Array(count).fill(LOCKED)]);
    expect(await countHeld(servers(), name)).toBeGreaterThanOrEqual(quorum);
    await next.release();
  });

  test("a second release finds nothing to release", async () => {
    const redlock = newRedlock(servers(), {}, version);
    const lock = await redlock.acquire([freshName()], LONG);
    await lock.release();
    expect(await votesAgainst(await executionError(lock.release()))).toEqual([Array(count).fill(LOCKED)]);
  });

  test("each acquire is a new owner, in a scope and in a run of that lock too", async () => {
    const redlock = newRedlock(servers(), ONCE, version);
    const name = freshName();
    const client = new LockClient(servers()[0]?.connect() as never);
    await client.scope(async () => {
      const lock = await redlock.acquire([name], LONG);
      await executionError(redlock.acquire([name], LONG));
      await lock.release();
      if (count > 1) return;
      await client.getLock(name).run(() => executionError(redlock.acquire([name], LONG)));
    });
    await client.close();
  });

  test("quit ends the given connections and the calls that wait; what is held lapses by itself", async () => {
    const [redlock, other] = [newRedlock(servers(), PATIENT, version), newRedlock(servers(), ONCE, version)];
    const [name, busy] = [freshName(), freshName()];
    await redlock.acquire([name], LONG);
    await other.acquire([busy], LONG);
    const waiting = executionError(redlock.acquire([busy], LONG));
    await untilAwaited(servers(), busy);
    await redlock.quit();
    for (const client of redlock.clients) expect(client.status).toBe("end");
    await waiting;
    await executionError(redlock.acquire([freshName()], LONG));
    await executionError(other.acquire([name], LONG));
    await redlock.quit();
  });
});

test.each([5, 6] as const)(
  "quit ends the connection of a server that is silent, ioredis %s [B140]",
  async (version) => {
    await using server = await startRedis();
    const redlock = newRedlock([server], ONCE, version);
    await (await redlock.acquire([freshName()], LONG)).release();
    server.pause();
    try {
      await redlock.quit();
      for (const client of redlock.clients) await until("it is ended", () => client.status === "end");
    } finally {
      server.resume();
    }
  },
);

test("the class is the default export, and stands on the clients that it was given", () => {
  expect(DefaultRedlock).toBe(Redlock);
  const redis = new Redis5({ lazyConnect: true });
  const redlock = new Redlock(new Set([redis, redis]));
  expect([...redlock.clients]).toEqual([redis]);
  expect(redlock.settings).toEqual({
    driftFactor: 0.01,
    retryCount: 10,
    retryDelay: 200,
    retryJitter: 100,
    automaticExtensionThreshold: 500,
  });
  expect(new Redlock([redis], { retryCount: 3 }).settings).toMatchObject({ retryCount: 3, retryDelay: 200 });
});

test("a key that redlock itself wrote is left alone, and named as the cause", async () => {
  const [server] = masters;
  const name = freshName();
  await server?.call("SET", name, "redlock's", "PX", LONG);
  const redlock = newRedlock(masters.slice(0, 1));
  const error = await executionError(redlock.acquire([name], LONG));
  expect(isLockError(error.cause, "WRONG_DATA")).toBe(true);
  expect(await votesAgainst(error)).toEqual([["WrongDataError"]]);
  expect(await server?.call("GET", name)).toBe("redlock's");
});

test("it excludes other locks of this library by the same name", async () => {
  const name = freshName();
  const redlock = newRedlock(masters.slice(0, 1), ONCE);
  const client = new LockClient(masters[0]?.connect() as never);
  const lock = await redlock.acquire([name], LONG);
  expect(await client.getLock(name).tryLock()).toBeNull();
  await lock.release();
  await client.getLock(name).run(() => executionError(redlock.acquire([name], LONG)));
  await client.close();
});

test("driftFactor makes expiration earlier, that of a call too", async () => {
  const redlock = newRedlock(masters.slice(0, 1), { driftFactor: 0.1 });
  const most = (share: number) => Date.now() + LONG * (1 - share);
  const lock = await redlock.acquire([freshName()], LONG);
  expect(lock.expiration).toBeLessThanOrEqual(most(0.1));
  const other = await redlock.acquire([freshName()], LONG, { driftFactor: 0.2 });
  expect(other.expiration).toBeLessThanOrEqual(most(0.2));
  expect(other.expiration).toBeGreaterThan(most(0.25));
  await Promise.all([lock.release(), other.release()]);
});

test("a client that is refused leaves no listeners on the others [B157]", async () => {
  const [first, second] = masters.map((server) => server.connect()) as [Redis, Redis];
  const before = first.eventNames().length;
  expect(() => new Redlock([first, second, {} as RedlockClient])).toThrow(TypeError);
  await until("nobody listens any more", () => first.eventNames().length === before);
});

test("scripts of one's own cause a warning", async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once("warning", resolve));
  new Redlock([new Redis5({ lazyConnect: true })], {}, { acquireScript: (text: string) => text });
  expect((await warned).code).toBe("HOLDFAST_REDLOCK_SCRIPTS");
});

test("a listener that throws disturbs no call", async () => {
  const [redlock, other] = [newRedlock(masters.slice(0, 3), ONCE), newRedlock(masters.slice(0, 3))];
  redlock.on("error", () => {
    throw new Error("the listener's");
  });
  const name = freshName();
  const lock = await other.acquire([name], LONG);
  const error = await executionError(redlock.acquire([name], LONG));
  await Promise.all(error.attempts);
  await lock.release();
  await (await redlock.acquire([name], LONG)).release();
});

test("wrong arguments are told before anything is sent [B232] [B261]", async () => {
  const redis = new Redis5({ lazyConnect: true });
  const redlock = new Redlock([redis]);
  expect(() => new Redlock([])).toThrow(/at least one client/);
  for (const clients of [redis, "redis://localhost", 1, null, undefined]) {
    expect(() => new Redlock(clients as never)).toThrow(
      new TypeError("redlock: it needs an array of clients, as in new Redlock([redis])"),
    );
  }
  expect(() => new Redlock([{} as RedlockClient])).toThrow(TypeError);
  expect(() => new Redlock([new Redis5({ lazyConnect: true, keyPrefix: "a:" })])).toThrow(/keyPrefix/);
  expect(() => new Redlock([redis], { retryCount: -2 })).toThrow(RangeError);
  expect(() => new Redlock([redis], { retryDelay: Number.NaN })).toThrow(RangeError);
  expect(() => new Redlock([redis], { retryDelay: "200" as never })).toThrow(TypeError);
  expect(() => new Redlock([redis], { driftFactor: 1 })).toThrow(RangeError);
  await expect(redlock.acquire([], LONG)).rejects.toThrow(TypeError);
  await expect(redlock.acquire("a" as never, LONG)).rejects.toThrow(TypeError);
  await expect(redlock.acquire([""], LONG)).rejects.toThrow(RangeError);
  await expect(redlock.acquire(["a"], 1.5)).rejects.toThrow(RangeError);
  await expect(redlock.acquire(["a"], undefined as never)).rejects.toThrow(TypeError);
  await expect(redlock.acquire(["a"], LONG, { retryCount: -3 })).rejects.toThrow(RangeError);
  const tooLarge = new RangeError("redlock: driftFactor must be below 0.65");
  expect(() => new Redlock([redis], { driftFactor: 0.65 })).toThrow(tooLarge);
  for (const driftFactor of [0.65, 2, Number.POSITIVE_INFINITY]) {
    await expect(redlock.acquire(["a"], LONG, { driftFactor })).rejects.toThrow(tooLarge);
    await expect(redlock.using(["a"], LONG, { driftFactor }, async () => {})).rejects.toThrow(tooLarge);
  }
  await expect(redlock.release({} as never)).rejects.toThrow(TypeError);
  await expect(redlock.using(["a"], 500, async () => {})).rejects.toThrow(/automaticExtensionThreshold/);
  await expect(redlock.using(["a"], 1_000, {} as never)).rejects.toThrow(/routine/);
  expect(redis.status).toBe("wait");
  const stranger = new Lock(redlock, ["a"], "of another process", [], Date.now() + LONG);
  await expect(redlock.release(stranger)).rejects.toThrow(ExecutionError);
});
