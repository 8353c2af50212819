import { describe, expect, onTestFinished, test } from "vitest";
import { Redlock } from "../../src/entries/redlock.js";
import { isLockError } from "../../src/index.js";
import { freshName, script } from "../faults/harness.js";
import {
  type FaultProxy,
  forTest,
  PATIENCE,
  type RedisServer,
  startCluster,
  startProxy,
  startRedis,
  until,
} from "../support/index.js";
import { STRANGER } from "../support/place/index.js";
import {
  countHeld,
  executionError,
  isAwaited,
  LOCKED,
  LONG,
  newRedlock,
  ONCE,
  PATIENT,
  untilAwaited,
  untilFree,
  useMasters,
  votesAgainst,
} from "./redlock-helpers.js";

const masters = await useMasters(3);
const [first, second, third] = masters as readonly [RedisServer, RedisServer, RedisServer];

describe("of three masters", () => {
  test("one that dies is missed by nobody; two let calls fail, each attempt tells by what, and one with retryCount -1 outlasts that", async () => {
    const [redlock, other] = [newRedlock(masters), newRedlock(masters, PATIENT)];
    const heard: unknown[] = [];
    redlock.on("error", (error) => heard.push(error));
    const before = await redlock.acquire([freshName()], LONG);
    await first.kill();
    await (await before.extend(LONG)).release();
    const name = freshName();
    let lock = await redlock.acquire([name], LONG);
    const [stats] = await Promise.all(lock.attempts);
    expect([stats?.votesFor.size, stats?.votesAgainst.size]).toEqual([2, 1]);
    expect(heard.length).toBeGreaterThanOrEqual(1);
    lock = await lock.extend(LONG);
    const next = other.acquire([name], LONG);
    await lock.release();
    await (await next).release();

    await second.kill();
    const outlasting = freshName();
    const settings = { retryCount: -1, retryDelay: 20, retryJitter: 5 };
    const acquired = redlock.acquire([outlasting], LONG, settings);
    // If a later call has failed, the first attempt of the one before has failed, too.
    const error = await executionError(redlock.acquire([freshName()], LONG, ONCE));
    expect(isLockError(error.cause)).toBe(true);
    expect(error.attempts.length).toBeGreaterThanOrEqual(1);
    for (const { votesFor, votesAgainst } of await Promise.all(error.attempts)) {
      expect(votesFor.size).toBeLessThanOrEqual(1);
      expect(votesFor.size + votesAgainst.size).toBe(3);
    }
    await Promise.all([first.restart(), second.restart()]);
    const late = await acquired;
    expect(late.attempts.length).toBeGreaterThan(1);
    expect((await votesAgainst(late))[0]?.length).toBeGreaterThan(1);
    await late.release();
  });

  test("one with other data is no hindrance, and keeps them", async () => {
    const name = freshName();
    await third.call("SET", name, "other");
    let lock = await newRedlock(masters).acquire([name], LONG);
    lock = await lock.extend(2 * LONG);
    for (const server of [first, second])
      expect(Number(await server.call("PTTL", name))).toBeGreaterThan(LONG);
    await lock.release();
    await untilFree([first, second], name);
    expect([await third.call("GET", name), await third.call("PTTL", name)]).toEqual(["other", -1]);
  });
});

describe.each([{ count: 1 }, { count: 3 }])(
  "on $count masters that take longer to answer than a call may wait",
  ({ count }) => {
    /** Wait for 10 ms at most. */
    const SHORT = { retryCount: 1, retryDelay: 10, retryJitter: 0 };
    const DELAY = 200;
    const servers = () => masters.slice(0, count);

    async function startBehindProxies() {
      const proxies = await Promise.all(servers().map(async (server) => forTest(await startProxy(server))));
      const redlock = new Redlock(proxies.map((proxy) => proxy.connect()));
      onTestFinished(() => redlock.quit());
      // By this each connection is made, and each master knows the scripts.
      await (await redlock.acquire([freshName()], LONG, PATIENT)).release();
      const delay = (proxy: FaultProxy) => {
        proxy.clear();
        proxy.delayReplies(DELAY);
      };
      proxies.forEach(delay);
      return { proxies, redlock };
    }

    test.each([1, 2])("%s free resources are locked at the first attempt [B178]", async (many) => {
      const { redlock } = await startBehindProxies();
      const names = Array.from({ length: many }, freshName);
      const lock = await redlock.acquire(names, LONG, SHORT);
      expect(lock.attempts).toHaveLength(1);
      await redlock.release(lock, PATIENT);
    });

    // In the first case the time is over at the first answer, in the second before the next one.
    test.each([1, 1.5])(
      "one that another has is refused after %s answers, and not for want of one [B178]",
      async (answers) => {
        const { proxies, redlock } = await startBehindProxies();
        const name = freshName();
        // On each of them, which a majority's lock is not on a busy machine.
        for (const server of servers()) {
          await server.call("HSET", name, STRANGER, "1");
          await server.call("PEXPIRE", name, String(LONG));
        }
        const settings = { ...SHORT, retryDelay: answers * DELAY };
        const error = await executionError(redlock.acquire([name], LONG, settings));
        expect(error.cause).toBeUndefined();
        expect(await votesAgainst(error)).toEqual([Array(count).fill(LOCKED)]);
        for (const proxy of proxies) proxy.clear();
        await executionError(redlock.acquire([name], LONG, ONCE));
        expect(Math.max(...proxies.map((proxy) => proxy.count(script("take"))))).toBe(1);
        for (const server of servers()) await server.call("DEL", name);
      },
    );
  },
);

test("quit ends the connection of a server that is silent [B140]", async () => {
  await using server = await startRedis();
  const redlock = newRedlock([server], ONCE);
  await (await redlock.acquire([freshName()], LONG)).release();
  server.pause();
  try {
    await redlock.quit();
    for (const client of redlock.clients) await until("it is ended", () => client.status === "end");
  } finally {
    server.resume();
  }
});

test("a key that redlock itself wrote is left alone, and named as the cause", async () => {
  const name = freshName();
  await first.call("SET", name, "redlock's", "PX", LONG);
  const error = await executionError(newRedlock([first]).acquire([name], LONG));
  expect(isLockError(error.cause, "WRONG_DATA")).toBe(true);
  expect(await votesAgainst(error)).toEqual([["WrongDataError"]]);
  expect(await first.call("GET", name)).toBe("redlock's");
});

test("on a cluster the resources of a call may lie in different slots", async () => {
  await using cluster = await startCluster();
  const redlock = new Redlock([cluster.connect()]);
  const other = new Redlock([cluster.connect()], ONCE);
  const lock = await redlock.acquire(["a", "b", "c", "d"], LONG);
  await executionError(other.acquire(["c"], LONG));
  await (await lock.extend(LONG)).release();
  await (await other.acquire(["c"], LONG)).release();
  await Promise.all([redlock.quit(), other.quit()]);
});

test("a release that no quorum confirms says so, and may be called again", async () => {
  const lock = await newRedlock([first], ONCE).acquire([freshName()], LONG);
  first.pause();
  const error = await executionError(lock.release());
  expect(isLockError(error.cause, "UNAVAILABLE")).toBe(true);
  first.resume();
  await until("it is released", () => lock.release().then(() => true));
});

const QUORUM = 2;

const isHeld = async (name: string) => (await countHeld(masters, name)) >= QUORUM;
async function expectHeld(...names: string[]): Promise<void> {
  for (const name of names) expect(await isHeld(name)).toBe(true);
}
const pass = (ms: number) => {
  const end = performance.now() + ms;
  return until(`${ms} ms are over`, () => performance.now() > end);
};

/** A call that has the first of two resources and waits for the second; `release` makes way for it. */
async function startWaiting(duration: number) {
  const [holder, caller] = [newRedlock(masters), newRedlock(masters, PATIENT)];
  const first = `a-${freshName()}`;
  const second = `b-${freshName()}`;
  const held = await holder.acquire([second], LONG);
  const acquired = caller.acquire([second, first], duration);
  await until("the first is held", () => isHeld(first));
  await untilAwaited(masters, second);
  return { first, second, acquired, release: () => held.release() };
}

test("a call waits for a resource while it keeps those whose names come before, and has all for the whole duration [B177]", async () => {
  const duration = 2 * PATIENCE;
  const { first, second, acquired, release } = await startWaiting(duration);
  await executionError(newRedlock(masters, ONCE).acquire([first], LONG));
  await pass(duration / 50);
  const before = Date.now();
  await release();
  const lock = await acquired;
  expect(lock.resources).toEqual([second, first]);
  // Of one percent the drift is made; one more may be gone of what is not extended.
  expect(lock.expiration).toBeGreaterThan(before + duration * 0.98 - 10);
  expect(lock.expiration).toBeLessThanOrEqual(Date.now() + duration * 0.99);
  await expectHeld(first, second);
  await lock.release();
});

test("a resource that is lost meanwhile is taken anew, and the others are free until then [B177]", async () => {
  const { first, second, acquired, release } = await startWaiting(PATIENCE);
  await Promise.all(masters.map((server) => server.call("DEL", first)));
  const thief = await newRedlock(masters, PATIENT).acquire([first], LONG);
  await pass(PATIENCE / 50);
  await release();
  await untilAwaited(masters, first);
  const rival = newRedlock(masters, ONCE);
  const free = await until("the second is free", () => rival.acquire([second], LONG));
  await free.release();
  await thief.release();
  const lock = await acquired;
  for (const name of [first, second]) expect(await countHeld(masters, name)).toBeGreaterThanOrEqual(QUORUM);
  await lock.release();
});

test("a waiting call keeps them for the duration at most, so a call that wants no more gets its turn [B177]", async () => {
  const { first, second, acquired, release } = await startWaiting(400);
  const other = await newRedlock(masters, PATIENT).acquire([first], LONG);
  // Without the first one it is in nobody's way.
  await until("it waits for the second no more", async () => !(await isAwaited(masters, second)));
  await other.release();
  await release();
  await (await acquired).release().catch(() => {}); // It may have expired by now.
});
