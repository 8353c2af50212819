/** Wrong arguments of semaphores and latches are refused before anything is sent. */
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { type Bad, LEASES, NAMES, OPTIONS, SIGNALS, WAITS } from "../contract/bad-values.js";
import { as, failure, refused, rejects, sendNothing } from "../contract/helpers.js";
import { countCommands, forFile, isPresence, startRedis } from "../support/index.js";
import { UNKNOWN } from "./helpers.js";

const server = await forFile(startRedis());
const client = await forFile(new LockClient(server.connect()));
await client.ready();
const semaphore = client.getSemaphore("semaphore");
const permits = client.getPermitExpirableSemaphore("permits");
const latch = client.getCountDownLatch("latch");
await semaphore.trySetPermits(5);
await permits.trySetPermits(5);
await latch.trySetCount(5);
const counter = await forFile(countCommands(server, { leavesOut: isPresence }));
sendNothing(() => counter);

const never = (): never => {
  throw new Error("fn was called");
};

const NO_NUMBERS: readonly Bad[] = [
  ["a string", "1", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 1n, TypeError],
  ["a boolean", true, TypeError],
  ["an object", {}, TypeError],
];

const NOT_WHOLE: readonly Bad[] = [
  ["-1", -1, RangeError],
  ["0.5", 0.5, RangeError],
  ["1.5", 1.5, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["Infinity", Number.POSITIVE_INFINITY, RangeError],
  ["2^53", 2 ** 53, RangeError],
];

/** For arguments that must be at least 1. */
const COUNTS: readonly Bad[] = [...NO_NUMBERS, ...NOT_WHOLE, ["0", 0, RangeError]];
/** For arguments that must be at least 0. */
const LIMITS: readonly Bad[] = [...NO_NUMBERS, ...NOT_WHOLE];

const IDS: readonly Bad[] = [
  ["undefined", undefined, TypeError],
  ["null", null, TypeError],
  ["a number", 5, TypeError],
  ["an object", {}, TypeError],
  ["a Buffer", Buffer.from(UNKNOWN, "hex"), TypeError],
  ["a String object", new String(UNKNOWN), TypeError],
];

describe("n", () => {
  test.each(COUNTS)("at least 1: %s", async (_, value, type) => {
    const n = as(value);
    await refused(() => semaphore.acquire(n), type);
    await refused(() => semaphore.tryAcquire(n), type);
    await refused(() => semaphore.release(n), type);
    await refused(() => semaphore.run(never, { permits: n }), type);
  });

  test.each(LIMITS)("a limit or a count: %s", async (_, value, type) => {
    const n = as(value);
    await refused(() => semaphore.trySetPermits(n), type);
    await refused(() => permits.trySetPermits(n), type);
    await refused(() => permits.setPermits(n), type);
    await refused(() => latch.trySetCount(n), type);
    await refused(() => semaphore.addPermits(n), type);
    await refused(() => permits.addPermits(n), type);
  });

  test("absent where it is needed", async () => {
    await refused(() => semaphore.trySetPermits(as(undefined)), TypeError);
    await refused(() => semaphore.addPermits(as(undefined)), TypeError);
    await refused(() => permits.trySetPermits(as(undefined)), TypeError);
    await refused(() => permits.setPermits(as(undefined)), TypeError);
    await refused(() => permits.addPermits(as(undefined)), TypeError);
    await refused(() => latch.trySetCount(as(undefined)), TypeError);
    await refused(() => permits.updateLeaseTime(UNKNOWN, as(undefined)), TypeError);
  });
});

test.each(LEASES)("lease: %s", async (_, value, type) => {
  const lease = as(value);
  await refused(() => permits.acquire({ lease }), type);
  await refused(() => permits.tryAcquire(0, lease), type);
  await refused(() => permits.updateLeaseTime(UNKNOWN, lease), type);
});

test.each(WAITS)("wait: %s", async (_, value, type) => {
  const wait = as(value);
  await refused(() => semaphore.tryAcquire(1, wait), type);
  await refused(() => semaphore.run(never, { wait }), type);
  await refused(() => permits.tryAcquire(wait), type);
  await refused(() => latch.await(wait), type);
});

test.each(SIGNALS)("signal: %s", async (_, value, type) => {
  const signal = as(value);
  await refused(() => semaphore.acquire(1, { signal }), type);
  await refused(() => semaphore.tryAcquire(1, 0, { signal }), type);
  await refused(() => semaphore.run(never, { signal }), type);
  await refused(() => permits.acquire({ signal }), type);
  await refused(() => permits.tryAcquire(0, 1_000, { signal }), type);
  await refused(() => latch.await(0, { signal }), type);
});

test.each(OPTIONS)("options: %s [B107]", async (_, value, type) => {
  const options = as(value);
  await refused(() => semaphore.acquire(1, options), type);
  await refused(() => semaphore.tryAcquire(1, 0, options), type);
  await refused(() => semaphore.run(never, options), type);
  await refused(() => permits.acquire(options), type);
  await refused(() => permits.tryAcquire(0, 1_000, options), type);
  await refused(() => latch.await(0, options), type);
});

test("an option of another call", async () => {
  await refused(() => semaphore.acquire(1, as({ wait: 5 })), TypeError);
  await refused(() => semaphore.tryAcquire(1, 0, as({ wait: 5 })), TypeError);
  await refused(() => semaphore.tryAcquire(1, 0, as({ lease: 5 })), TypeError);
  await refused(() => semaphore.run(never, as({ lease: 5 })), TypeError);
  await refused(() => permits.acquire(as({ wait: 5 })), TypeError);
  await refused(() => permits.tryAcquire(0, 1_000, as({ lease: 5 })), TypeError);
  await refused(() => latch.await(0, as({ wait: 5 })), TypeError);
  await refused(() => semaphore.acquire(as({ signal: new AbortController().signal })), TypeError);
});

test.each(IDS)("a permit's id: %s", async (_, value, type) => {
  const id = as(value);
  await refused(() => permits.release(id), type);
  await refused(() => permits.tryRelease(id), type);
  await refused(() => permits.updateLeaseTime(id, 1_000), type);
});

test.each([
  ["empty", ""],
  ["31 digits", UNKNOWN.slice(1)],
  ["33 digits", `${UNKNOWN}0`],
  ["no hex", `${UNKNOWN.slice(1)}g`],
  ["a blank at the end", `${UNKNOWN.slice(1)} `],
])("a text that can be no permit's id is one that nobody has: %s", async (_, id) => {
  expect(await failure(permits.release(id))).toMatchObject({ code: "NOT_OWNER", lockName: "permits" });
  expect(await permits.tryRelease(id)).toBe(false);
  expect(await permits.updateLeaseTime(id, 1_000)).toBe(false);
});

test.each([
  ["absent", undefined],
  ["null", null],
  ["a promise", Promise.resolve()],
  ["options instead", { permits: 1 }],
])("fn of run: %s", async (_, fn) => {
  await refused(() => semaphore.run(as(fn)), TypeError);
});

test("wrong arguments reject, they do not throw", async () => {
  const calls: (() => Promise<unknown>)[] = [
    () => semaphore.acquire(0),
    () => semaphore.run(as(null)),
    () => permits.acquire(as(null)),
    () => permits.release(as(null)),
    () => latch.await(-1),
    () => latch.trySetCount(-1),
    () => client.inspect(as(null)),
  ];
  for (const call of calls) await rejects(call);
});

test.each(NAMES)("names: %s", async (_, value, type) => {
  const name = as(value);
  for (const get of [
    () => client.getSemaphore(name),
    () => client.getPermitExpirableSemaphore(name),
    () => client.getCountDownLatch(name),
  ]) {
    expect(get).toThrow(type);
  }
  await refused(() => client.inspect(name), type);
});
