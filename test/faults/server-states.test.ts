/** Servers that refuse commands for a while: real servers, each in the state that makes them refuse. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { isLockError, LockClient, type LockClientOptions } from "../../src/index.js";
import { failure, nextEvent, untilWaiting } from "../contract/helpers.js";
import {
  findRedis,
  hasFeaturesOf,
  type RedisServer,
  startRedis,
  UNHURRIED,
  until,
  untilGone,
} from "../support/index.js";
import { failOnUnhandledRejections } from "./harness.js";

failOnUnhandledRejections();

const connect = (server: RedisServer, options: LockClientOptions): LockClient =>
  new LockClient(server.connect(), options);

const set = (server: RedisServer, name: string, value: string | number) =>
  server.call("CONFIG", "SET", name, value);

/** The server's error for a write; empty if it accepts the write. */
const saidBy = (server: RedisServer, probe = ["SET", "probe", 1, "PX", 1_000]): Promise<string> =>
  server.call(...probe).then(
    () => "",
    (error: Error) => error.message,
  );

interface State {
  readonly code: string;
  readonly args?: readonly string[];
  /** The command that the server refuses. Default a write. */
  readonly probe?: string[];
  begin(server: RedisServer): Promise<unknown>;
  end(server: RedisServer): Promise<unknown>;
}

/** Makes the server a replica of an address where no server answers. */
const orphan = (server: RedisServer) => server.call("REPLICAOF", "127.0.0.1", 1);
const promote = (server: RedisServer) => server.call("REPLICAOF", "NO", "ONE");

const STATES: readonly State[] = [
  {
    code: "BUSY",
    begin: async (server) => {
      await set(server, server.hasFeaturesOf("7.0") ? "busy-reply-threshold" : "lua-time-limit", 50);
      server
        .connect()
        .eval("while true do end", 0)
        .catch(() => {});
    },
    end: (server) => server.call("SCRIPT", "KILL"),
  },
  { code: "READONLY", begin: orphan, end: promote },
  {
    code: "MASTERDOWN",
    args: ["--replica-serve-stale-data", "no"],
    probe: ["GET", "probe"],
    begin: orphan,
    end: promote,
  },
  {
    code: "OOM",
    begin: (server) => set(server, "maxmemory", 1),
    end: (server) => set(server, "maxmemory", 0),
  },
  {
    code: "MISCONF",
    // A directory in which no file can be written, so the background save fails.
    args: ["--dir", "/proc"],
    begin: async (server) => {
      await set(server, "save", "3600 1000000");
      await server.call("BGSAVE");
    },
    end: (server) => set(server, "stop-writes-on-bgsave-error", "no"),
  },
  {
    code: "NOREPLICAS",
    begin: (server) => set(server, "min-replicas-to-write", 1),
    end: (server) => set(server, "min-replicas-to-write", 0),
  },
];

describe.concurrent.each(STATES)(
  "a server that says $code [F23] [F24]",
  ({ code, args = [], probe, begin, end }) => {
    test("grants nothing and half of nothing, and takes what is given back when it serves again", async () => {
      await using server = await startRedis({ args });
      await using ours = connect(server, UNHURRIED);
      await using theirs = connect(server, UNHURRIED);
      await using hasty = connect(server, { commandTimeout: 1_500 });
      await until("it has asked the server", () => hasty.ready().then(() => true));
      const hold = await ours.getLock("order").lock({ lease: 600_000 });
      const waiter = await untilWaiting(theirs, () => theirs.getLock("order").lock());
      await begin(server);
      await until(`it says ${code}`, async () => (await saidBy(server, probe)).startsWith(code));

      const refused = await failure(hasty.getLock("other").lock());
      expect(refused).toMatchObject({
        code: "UNAVAILABLE",
        cause: { message: expect.stringContaining(code) },
      });
      const unlocked = hold.unlock();
      await sleep(50); // by then the server has refused it, or takes it all the same
      await end(server);
      await unlocked;
      const next = await waiter.done;
      expect(next.isHeld).toBe(true);
      await next.unlock();
      const redis = server.connect();
      for (const name of ["order", "other"]) await untilGone(redis, name);
    });
  },
);

test("a demoted master that has lost the hold does not end it: it may lag behind its successor [F27]", async () => {
  await using server = await startRedis();
  await using client = connect(server, { ...UNHURRIED, commandTimeout: 500 });
  for (const lock of [client.getLock("order"), client.getReadWriteLock("document").readLock()]) {
    const hold = await lock.lock({ lease: 600_000 });
    await server.call("FLUSHALL");
    await orphan(server);
    await until("it says READONLY", async () => (await saidBy(server)).startsWith("READONLY"));
    expect(await failure(hold.extend(700_000))).toMatchObject({ code: "UNAVAILABLE" });
    expect(hold.isHeld).toBe(true);
    await promote(server);
    expect(await failure(hold.extend(700_000))).toMatchObject({ code: "LOCK_LOST" });
  }
});

test("a server that loads its data answers when it has it, and the hold is kept [F23]", async ({ skip }) => {
  const { engine, version } = await findRedis();
  if (!hasFeaturesOf({ engine, version }, "7.0.0"))
    skip(`${engine} ${version} cannot be told to answer while it loads so little`);
  await using server = await startRedis({
    args: ["--key-load-delay", "10000", "--loading-process-events-interval-bytes", "1024"],
  });
  await using ours = connect(server, UNHURRIED);
  await using theirs = connect(server, UNHURRIED);
  const hold = await ours.getLock("order").lock({ lease: 600_000 });
  const waiter = await untilWaiting(theirs, () => theirs.getLock("order").lock());
  for (let i = 0; i < 100; i++) await server.call("SET", `filler ${i}`, "x".repeat(1_100));
  await server.call("SAVE");
  let loading = false;
  const restarted = server.restart();
  const look = until("it says LOADING", async () => {
    loading ||= (await saidBy(server).catch(() => "")).startsWith("LOADING");
    return loading;
  });
  const other = ours.getLock("other").lock();
  await Promise.all([look, restarted]);
  await (await other).unlock();
  expect(hold.isHeld).toBe(true);
  await hold.unlock();
  await (await waiter.done).unlock();
});

test("a lock that is evicted is lost, and its holder is told at the next renewal [F25]", async () => {
  await using server = await startRedis({ args: ["--maxmemory-policy", "volatile-ttl"] });
  await using ours = connect(server, { ...UNHURRIED, watchdogTimeout: 6_000 });
  await using theirs = connect(server, UNHURRIED);
  const hold = await ours.getLock("order").lock();
  const told = nextEvent(ours, "lost");
  await set(server, "maxmemory", 1);
  await until("it has gone", async () => {
    await saidBy(server);
    return (await server.call("EXISTS", "order")) === 0;
  });
  await set(server, "maxmemory", 0);
  // At this moment there are two holders.
  const next = await theirs.getLock("order").lock();
  expect(await told).toMatchObject({ lockName: "order", reason: expect.stringMatching(/^(taken|expired)$/) });
  expect([hold.isHeld, hold.signal.aborted, next.isHeld]).toEqual([false, true, true]);
  expect(isLockError(await failure(hold.unlock()), "LOCK_LOST")).toBe(true);
  expect(await theirs.getLock("order").isHeldByCurrentOwner({ owner: next })).toBe(true);
  await next.unlock();
});
