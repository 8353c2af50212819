/** Contract section 6: wrong arguments of a lock's calls are refused before anything is sent. */
import type { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Hold, type Lock, LockClient } from "../../src/index.js";
import { type CommandCounter, countCommands, type RedisServer, startRedis } from "../support/index.js";
import { failure, warmUp } from "./helpers.js";

let server: RedisServer;
let redis: Redis;
let client: LockClient;
let lock: Lock;
let counter: CommandCounter;

beforeAll(async () => {
  server = await startRedis();
  redis = server.connect();
  client = new LockClient(redis);
  await client.ready();
  lock = client.getLock("a");
  await warmUp(lock);
  counter = await countCommands(server);
});
afterAll(async () => {
  counter?.stop();
  await client?.close({ timeout: 0 });
  await server?.stop();
});
beforeEach(() => counter.reset());
afterEach(async () => {
  await counter.settle();
  expect(counter.all()).toEqual([]); // the rule that all of these share
});

type Refusal = typeof TypeError | typeof RangeError;

async function refused(call: () => unknown, type: Refusal): Promise<void> {
  const error = await failure(call);
  expect(error.name).toBe(type.name);
  expect(error).toBeInstanceOf(type);
  expect(error.message).not.toBe("");
}

/** Passes a value where the types forbid it. */
const as = (value: unknown): never => value as never;
const never = (): never => {
  throw new Error("fn was called");
};

type Bad = readonly [title: string, value: unknown, type: Refusal];

const WAITS: readonly Bad[] = [
  ["negative", -1, RangeError],
  ["a little negative", -0.001, RangeError],
  ["-Infinity", Number.NEGATIVE_INFINITY, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["a string", "500", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 500n, TypeError],
  ["an object", {}, TypeError],
  ["a boolean", true, TypeError],
];

const LEASES: readonly Bad[] = [
  ["0", 0, RangeError],
  ["-1", -1, RangeError],
  ["0.5", 0.5, RangeError],
  ["1000.5", 1000.5, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["Infinity", Number.POSITIVE_INFINITY, RangeError],
  ["2^53", 2 ** 53, RangeError],
  ["a string", "1000", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 1000n, TypeError],
  ["a Date", new Date(), TypeError],
];

const SIGNALS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a string", "abort", TypeError],
  ["a plain object", {}, TypeError],
  ["an object that looks aborted", { aborted: true }, TypeError],
  ["the controller instead of its signal", new AbortController(), TypeError],
  ["an EventTarget", new EventTarget(), TypeError],
  ["a function", () => {}, TypeError],
];

const OPTIONS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a number", 500, TypeError],
  ["a string", "500", TypeError],
  ["a boolean", true, TypeError],
  ["an array", [], TypeError],
  ["a function", () => {}, TypeError],
  ["an unknown option", { timeout: 5 }, TypeError],
  ["an unknown option that is undefined", { leaseTime: undefined }, TypeError],
];

const OWNERS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a string", "me", TypeError],
  ["a plain object", {}, TypeError],
  ["a lock", "lock", TypeError],
  ["a client", "client", TypeError],
];

describe.each(WAITS)("wait: %s", (_, wait, type) => {
  test("lock", () => refused(() => lock.lock({ wait: as(wait) }), type));
  test("tryLock", () => refused(() => lock.tryLock(as(wait)), type));
  test("run", () => refused(() => lock.run(never, { wait: as(wait) }), type));
});

describe.each(LEASES)("lease: %s", (_, lease, type) => {
  test("lock", () => refused(() => lock.lock({ lease: as(lease) }), type));
  test("tryLock", () => refused(() => lock.tryLock(0, as(lease)), type));
  test("run", () => refused(() => lock.run(never, { lease: as(lease) }), type));
});

describe.each(SIGNALS)("signal: %s", (_, signal, type) => {
  test("lock", () => refused(() => lock.lock({ signal: as(signal) }), type));
  test("tryLock", () => refused(() => lock.tryLock(0, 1000, { signal: as(signal) }), type));
  test("run", () => refused(() => lock.run(never, { signal: as(signal) }), type));
});

describe.each(OPTIONS)("options: %s", (_, options, type) => {
  test("lock", () => refused(() => lock.lock(as(options)), type));
  test("tryLock", () => refused(() => lock.tryLock(0, 1000, as(options)), type));
  test("run", () => refused(() => lock.run(never, as(options)), type));
  test("unlock", () => refused(() => lock.unlock(as(options)), type));
  test("isHeldByCurrentOwner", () => refused(() => lock.isHeldByCurrentOwner(as(options)), type));
  test("getHoldCount", () => refused(() => lock.getHoldCount(as(options)), type));
});

describe("an option of another call", () => {
  test("tryLock takes wait and lease by position only", async () => {
    await refused(() => lock.tryLock(0, 1000, as({ wait: 5 })), TypeError);
    await refused(() => lock.tryLock(0, 1000, as({ lease: 5 })), TypeError);
    await refused(() => lock.tryLock(as({ wait: 5 })), TypeError);
  });
  test("unlock and the questions take owner only", async () => {
    const signal = new AbortController().signal;
    for (const options of [{ signal }, { wait: 1 }, { lease: 1 }]) {
      await refused(() => lock.unlock(as(options)), TypeError);
      await refused(() => lock.isHeldByCurrentOwner(as(options)), TypeError);
      await refused(() => lock.getHoldCount(as(options)), TypeError);
    }
  });
});

describe.each(OWNERS)("owner: %s", (_, given, type) => {
  const options = () => ({ owner: as(given === "lock" ? lock : given === "client" ? client : given) });
  test("lock", () => refused(() => lock.lock(options()), type));
  test("tryLock", () => refused(() => lock.tryLock(0, 1000, options()), type));
  test("run", () => refused(() => lock.run(never, options()), type));
  test("unlock", () => refused(() => lock.unlock(options()), type));
  test("isHeldByCurrentOwner", () => refused(() => lock.isHeldByCurrentOwner(options()), type));
  test("getHoldCount", () => refused(() => lock.getHoldCount(options()), type));
});

describe.each([
  ["absent", undefined],
  ["null", null],
  ["a promise", Promise.resolve()],
  ["options instead", { lease: 1000 }],
  ["a string", "fn"],
])("fn: %s", (_, fn) => {
  test("run", () => refused(() => lock.run(as(fn)), TypeError));
  test("client.scope", () => refused(() => client.scope(as(fn)), TypeError));
  test("owner.scope", () => refused(() => client.newOwner().scope(as(fn)), TypeError));
});

describe("wrong arguments reject, they do not throw, where the call returns a promise", () => {
  const calls: [name: string, call: () => Promise<unknown>][] = [
    ["lock", () => lock.lock(as(null))],
    ["tryLock", () => lock.tryLock(-1)],
    ["run", () => lock.run(as(null))],
    ["unlock", () => lock.unlock(as(null))],
    ["isHeldByCurrentOwner", () => lock.isHeldByCurrentOwner(as(null))],
    ["getHoldCount", () => lock.getHoldCount(as(null))],
    ["client.scope", () => client.scope(as(null))],
    ["client.close", () => client.close(as(null))],
  ];
  test.each(calls)("%s", async (_, call) => {
    let promise: Promise<unknown> | undefined;
    expect(() => {
      promise = call();
    }).not.toThrow();
    expect(await failure(promise ?? Promise.resolve())).toBeInstanceOf(Error);
  });
});

describe("a signal that is aborted already: its reason, and nothing is sent", () => {
  const reason = new Error("changed my mind");
  const signal = AbortSignal.abort(reason);
  test("lock", async () => expect(await failure(lock.lock({ signal }))).toBe(reason));
  test("tryLock", async () => expect(await failure(lock.tryLock(0, 1000, { signal }))).toBe(reason));
  test("run", async () => expect(await failure(lock.run(never, { signal }))).toBe(reason));
  test("a reason that is no error", async () => {
    expect(await failure(lock.lock({ signal: AbortSignal.abort("why") }))).toBe("why");
  });
  test("no reason: the AbortError of the platform", async () => {
    expect((await failure(lock.lock({ signal: AbortSignal.abort() }))).name).toBe("AbortError");
  });
});

describe("the arguments of extend", () => {
  let hold: Hold;
  beforeAll(async () => {
    hold = await client.getLock("extended").lock({ lease: 60_000 });
  });
  afterAll(() => hold.unlock());
  const cases: readonly Bad[] = [...LEASES, ["absent", undefined, TypeError]];
  test.each(cases)("%s", async (_, lease, type) => {
    const { remaining } = hold;
    await refused(() => hold.extend(as(lease)), type);
    expect(hold.isHeld).toBe(true);
    expect(hold.remaining).toBeGreaterThan(remaining - 5_000);
    expect(hold.remaining).toBeLessThanOrEqual(remaining);
  });
});

describe("the arguments of close leave the client open", () => {
  const bad: readonly Bad[] = [
    ["timeout negative", { timeout: -1 }, RangeError],
    ["timeout NaN", { timeout: Number.NaN }, RangeError],
    ["timeout a string", { timeout: "5" }, TypeError],
    ["timeout null", { timeout: null }, TypeError],
    ["timeout a BigInt", { timeout: 5n }, TypeError],
    ["an unknown option", { grace: 5 }, TypeError],
    ["null", null, TypeError],
    ["a number", 5, TypeError],
  ];
  test.each(bad)("%s", async (_, options, type) => {
    await refused(() => client.close(as(options)), type);
    await client.scope(() => undefined); // still open, and sends nothing
  });
});
