/** Only properties that the caller wrote are options: not those of a polluted Object.prototype, nor inherited ones. */
import { expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { connectionLike, forFile, startRedis, UNHURRIED, until } from "../support/index.js";
import { untilWaiting, warmUp } from "./helpers.js";

let names = 0;

const server = await forFile(startRedis());
const client = await forFile(new LockClient(connectionLike(server.connect()), UNHURRIED));
await warmUp(client.getLock("warm"));

const fresh = () => `own-${++names}`;

/** Makes a call while every object has this property. */
function polluted<T>(name: string, value: unknown, call: () => T): T {
  Object.defineProperty(Object.prototype, name, {
    value,
    configurable: true,
    enumerable: true,
    writable: true,
  });
  try {
    return call();
  } finally {
    delete (Object.prototype as unknown as Record<string, unknown>)[name];
  }
}

type Way = (name: string, value: unknown, call: (options: object | undefined) => unknown) => unknown;

const WAYS: [string, Way][] = [
  ["polluted, without options", (name, value, call) => polluted(name, value, () => call(undefined))],
  ["polluted, with options", (name, value, call) => polluted(name, value, () => call({}))],
  ["inherited", (name, value, call) => call(Object.create({ [name]: value }))],
];

for (const [what, way] of WAYS) {
  const made = <T>(name: string, value: unknown, call: (options: object | undefined) => T): T =>
    way(name, value, call) as T;

  test(`${what}: lease [B32]`, async () => {
    const lock = client.getLock(fresh());
    const calls = [
      made("lease", 1, (options) => lock.lock(options)),
      made("lease", 1, (options) => client.getLock(fresh()).tryLock(undefined, undefined, options)),
    ];
    const holds = await Promise.all(calls);
    for (const hold of holds) expect(hold?.remaining).toBeGreaterThan(1_000);
    await made("lease", 1, (options) =>
      client.getLock(fresh()).run((hold) => expect(hold.remaining).toBeGreaterThan(1_000), options),
    );
    const permits = client.getPermitExpirableSemaphore(fresh());
    await permits.trySetPermits(1);
    const id = await made("lease", 1, (options) => permits.acquire(options));
    await permits.updateLeaseTime(id, 60_000);
    await permits.release(id);
    for (const hold of holds) await hold?.unlock();
  });

  test(`${what}: wait`, async () => {
    const lock = client.getLock(fresh());
    for (const call of [
      (options: object | undefined) => lock.lock(options),
      (options: object | undefined) => lock.run((hold) => hold, options),
    ]) {
      const hold = await lock.lock();
      const waiter = await untilWaiting(client, () => made("wait", 0, call));
      await hold.unlock();
      await (await waiter.done).unlock();
    }
  });

  test(`${what}: signal`, async () => {
    const signal = AbortSignal.abort(new Error("not asked for"));
    const semaphore = client.getSemaphore(fresh());
    await semaphore.trySetPermits(3);
    const hold = await made("signal", signal, (options) => client.getLock(fresh()).lock(options));
    await made("signal", signal, (options) => semaphore.acquire(1, options));
    expect(await made("signal", signal, (options) => semaphore.tryAcquire(1, 0, options))).toBe(true);
    const latch = client.getCountDownLatch(fresh());
    expect(await made("signal", signal, (options) => latch.await(0, options))).toBe(true);
    await hold.unlock();
  });

  test(`${what}: owner`, async () => {
    const lock = client.getLock(fresh());
    const hold = await lock.lock();
    expect(await made("owner", hold, (options) => lock.tryLock(0, undefined, options))).toBeNull();
    expect(await made("owner", hold, (options) => lock.getHoldCount(options))).toBe(0);
    await expect(made("owner", hold, (options) => lock.unlock(options))).rejects.toMatchObject({
      code: "NOT_OWNER",
    });
    await hold.unlock();
  });

  test(`${what}: what a client, a semaphore's run, a list and a close take`, async () => {
    const name = fresh();
    const redis = server.connect();
    await using other = made("prefix", "else", (options) => new LockClient(connectionLike(redis), options));
    const hold = await other.getLock(name).lock();
    expect(await redis.exists(name)).toBe(1);
    // A generator reads its arguments only at its first `next()`.
    const listed = await made("match", "nothing", (options) => other.list(options).next());
    expect(listed.done).toBe(false);
    const semaphore = client.getSemaphore(fresh());
    await semaphore.trySetPermits(1);
    expect(await made("permits", 2, (options) => semaphore.run(() => "ran", options))).toBe("ran");
    expect(() =>
      made("preferWriters", "no", (options) => other.getReadWriteLock("x", options)),
    ).not.toThrow();
    let closed = false;
    const closing = made("timeout", 0, (options) => other.close(options)).then(() => {
      closed = true;
    });
    await redis.ping();
    expect([closed, hold.signal.aborted]).toEqual([false, false]);
    await hold.unlock();
    await until("it is closed", () => closed);
    await closing;
  });
}
