/** Contract sections 1 and 6: wrong names, clients and client options throw before anything is sent. */
import { Cluster, Redis } from "ioredis";
import { createClient } from "redis";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { countCommands, forFile, startRedis } from "../support/index.js";
import { openVirtual, SINGLE } from "../support/place/index.js";
import { as, connectionsOf, connectionsSince } from "./helpers.js";

type Refusal = typeof TypeError | typeof RangeError;

const server = await forFile(startRedis());
const redis = server.connect();
await redis.ping();
const counter = await forFile(countCommands(server));
beforeEach(() => counter.reset());

async function nothingSent(): Promise<void> {
  await counter.settle();
  expect(counter.all()).toEqual([]);
}

function throws(call: () => unknown, type: Refusal): Error {
  let thrown: unknown;
  try {
    call();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(type);
  expect((thrown as Error).name).toBe(type.name);
  return thrown as Error;
}

test.each([
  ["512 bytes", "a".repeat(512)],
  ["512 bytes in 256 characters", "é".repeat(256)],
  ["512 bytes in 128 characters", "😀".repeat(128)],
  ["braces of every kind, on a standalone server", "}a{b{}c"],
  ["blanks, line ends and NUL", " a\r\n\0\tb "],
  ["__proto__", "__proto__"],
  ["constructor", "constructor"],
])("a good name: %s", async (_, name) => {
  await using client = new LockClient(redis);
  for (const kind of SINGLE) {
    const lock = kind.make([client], name);
    expect(lock.name).toBe(name);
    const hold = await lock.lock();
    expect(hold.lockName).toBe(name);
    expect(await redis.hgetall(name)).toEqual(kind.fields(hold.ownerId, 1));
    await hold.unlock();
    expect(await redis.exists(name)).toBe(0);
  }
});

type Setting = readonly [option: string, value: unknown, type: Refusal];

function integers(option: string, least: number): Setting[] {
  const outOfRange = [least - 1, -1, least + 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];
  const wrongType = [String(least), null, BigInt(least), true, {}];
  return [
    ...outOfRange.map((value): Setting => [option, value, RangeError]),
    ...wrongType.map((value): Setting => [option, value, TypeError]),
  ];
}

const BAD_SETTINGS: readonly Setting[] = [
  ...integers("watchdogTimeout", 300),
  ...integers("pollCap", 1),
  ...integers("fairWaitTimeout", 1),
  ...integers("replicas", 0),
  ...integers("replicasTimeout", 1),
  ...integers("commandTimeout", 1),
  ["prefix", 5, TypeError],
  ["prefix", null, TypeError],
  ["prefix", {}, TypeError],
  ["prefix", "\ud800", RangeError],
  ["shardedPubSub", "yes", TypeError],
  ["shardedPubSub", null, TypeError],
  ["shardedPubSub", 1, TypeError],
  ["drift", -0.01, RangeError],
  ["drift", 2 / 3, RangeError],
  ["drift", 1, RangeError],
  ["drift", Number.POSITIVE_INFINITY, RangeError],
  ["drift", Number.NaN, RangeError],
  ["drift", "0.01", TypeError],
  ["drift", null, TypeError],
  ["leaseTime", 5, TypeError],
  ["keyPrefix", "x:", TypeError],
];

describe("client options", () => {
  afterEach(nothingSent);

  test.each(BAD_SETTINGS)("%s: %s", (option, value, type) => {
    const error = throws(() => new LockClient(redis, as({ [option]: value })), type);
    expect(error.message).toContain(option);
    throws(() => LockClient.connect(server.url, as({ [option]: value })), type);
  });

  test.each([[null], [5], ["x"], [[]], [true], [() => {}]])("options: %s", (options) => {
    throws(() => new LockClient(redis, as(options)), TypeError);
    throws(() => LockClient.connect(server.url, as(options)), TypeError);
  });

  test("an undefined option is an absent one", () => {
    const absent = { watchdogTimeout: undefined, prefix: undefined, drift: undefined, replicas: undefined };
    expect(() => new LockClient(redis, absent)).not.toThrow();
    expect(() => new LockClient(redis, undefined)).not.toThrow();
  });

  test("the least and the greatest values are taken", () => {
    const good: LockClientOptions[] = [
      {
        watchdogTimeout: 300,
        pollCap: 1,
        fairWaitTimeout: 1,
        replicasTimeout: 1,
        commandTimeout: 1,
        drift: 0,
      },
      { watchdogTimeout: 2 ** 53 - 1, pollCap: 2 ** 53 - 1, commandTimeout: 2 ** 53 - 1, drift: 0.5 },
      { drift: 0.666 },
      { watchdogTimeout: 3_000, drift: 0.665 },
      { watchdogTimeout: 300, drift: 0.659 },
    ];
    for (const options of good) expect(() => new LockClient(redis, options)).not.toThrow();
  });

  test.each([
    [{ drift: 0.7 }, "below 0.666", "30000", "0.7"],
    [{ drift: 0.665, watchdogTimeout: 300 }, "below 0.66,", "300", "0.665"],
    [{ drift: -1 }, "below 0.666", "30000", "-1"],
  ])(
    "a drift that leaves no time to renew a hold is refused, with the bound: %o [B15]",
    (options, ...said) => {
      const { message } = throws(() => new LockClient(redis, as(options)), RangeError);
      for (const word of said) expect(message).toContain(word);
      throws(() => LockClient.connect(server.url, as(options)), RangeError);
    },
  );

  test("a refused constructor leaves no listener on the user's connection", () => {
    const before = listeners(redis);
    throws(() => new LockClient(redis, as({ watchdogTimeout: 1 })), RangeError);
    expect(listeners(redis)).toEqual(before);
  });
});

function listeners(emitter: NodeJS.EventEmitter): [string, number][] {
  return emitter.eventNames().map((name) => [String(name), emitter.listenerCount(name)]);
}

describe("the connection", () => {
  afterEach(nothingSent);

  test.each([
    ["undefined", undefined],
    ["null", null],
    ["a URL", "redis://127.0.0.1"],
    ["options", { host: "127.0.0.1" }],
    ["a number", 6379],
    ["another client", { get() {}, set() {}, on() {} }],
    ["a client of node-redis", createClient()],
    ["one that cannot be duplicated", { evalsha() {}, eval() {}, options: {} }],
  ])("new LockClient refuses %s, and says what it takes", (_, value) => {
    expect(throws(() => new LockClient(as(value)), TypeError).message).toMatch(
      /must be an ioredis Redis or Cluster.*fromNodeRedis\(client\).*LockClient[.]connect takes a URL or options/,
    );
  });

  test.each([
    ["undefined", undefined],
    ["null", null],
    ["a number", 6379],
    ["another protocol", "http://127.0.0.1"],
    ["a bare host", "127.0.0.1"],
    ["an empty text", ""],
    ["an option url", { url: "redis://127.0.0.1" }],
    ["a URL object", new URL("redis://127.0.0.1")],
    ["a URL with a path", "redis://127.0.0.1:6379/abc"],
    ["nodes of a cluster", [{ host: "127.0.0.1" }]],
    ["a connection", new Redis({ lazyConnect: true })],
    ["a cluster", new Cluster([], { lazyConnect: true })],
    ["a client of the package redis", createClient()],
  ])("LockClient.connect refuses %s, and says what it takes [B46] [B275]", (_, value) => {
    expect(throws(() => LockClient.connect(as(value)), TypeError).message).toMatch(
      /URL \(a string.*number of a database.*ioredis options.*connection or Cluster.*new LockClient\(connection\)/,
    );
  });
});

const PREFIXED = { keyPrefix: "x:", lazyConnect: true } as const;
const NODES = [{ host: server.host, port: server.port }];

test.each<[string, () => unknown]>([
  ["of a connection", () => new LockClient(server.connect(PREFIXED))],
  ["of a cluster", () => new LockClient(new Cluster(NODES, PREFIXED))],
  [
    "of a cluster's nodes",
    () => new LockClient(new Cluster(NODES, { lazyConnect: true, redisOptions: PREFIXED })),
  ],
  ["in options of connect", () => LockClient.connect({ ...NODES[0], keyPrefix: "x:" })],
  ["in a URL", () => LockClient.connect(`${server.url}?keyPrefix=x:`)],
])(
  "a keyPrefix %s is refused with a TypeError that names `prefix`, and nothing is sent [§1 key-prefix]",
  async (_, make) => {
    const before = await connectionsOf(server);
    expect(throws(make, TypeError).message).toMatch(/\bprefix\b/);
    await nothingSent();
    expect(await connectionsSince(before, server)).toEqual([]);
  },
);

test("an empty keyPrefix is none", () => {
  expect(() => new LockClient(server.connect({ keyPrefix: "", lazyConnect: true }))).not.toThrow();
});

/** Of these a cluster would put the keys in different slots. */
const SPREAD = ["a{b", "{", "a}b", "}", "{}", "a{}b", "{}{a}", "}{", "a}b{", "{ab"];
const TOGETHER = ["{a}", "a{b}c", "}a{b}", "a{b}{c}", "{a}{}", "{{a}", "{a}}", "plain", "é{ü}"];

test("on a cluster a name whose keys would be in different slots is refused, counted with its prefix [§6 arguments]", () => {
  const { party } = openVirtual();
  const on = (prefix?: string) => party({ prefix }, { isCluster: true, slots: [], nodes: () => [] }).client;
  for (const name of SPREAD) throws(() => on().getLock(name), RangeError);
  for (const name of TOGETHER) expect(on().getLock(name).name).toBe(name);
  throws(() => on("{app").getLock("a"), RangeError);
  for (const [prefix, name] of [
    ["{app}", "a{"],
    ["{app", "a}"],
  ] as const)
    expect(on(prefix).getLock(name).name).toBe(name);
});
