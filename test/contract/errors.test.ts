/**
 * Contract section 6: an error's text names the lock, the problem and the remedy, and ends with the guide's anchor of its
 * code. It has the cause and the caller. No text and no event has a password, a URL or script arguments.
 */
import { readFile } from "node:fs/promises";
import { inspect } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions, type LockError, MultiLock, RedLock } from "../../src/index.js";
import { forFile, forTest, freePort, releasePort, startRedis, until } from "../support/index.js";
import { failure, recordEvents, type SeenEvent } from "./helpers.js";
import { expectClean, LEASE, PASSWORD, USER_PASSWORD, url } from "./secrets.js";

const server = await forFile(startRedis({ password: PASSWORD }));
const guide = await readFile(new URL("../../docs/guide.md", import.meta.url), "utf8");
const told: SeenEvent[][] = [];
afterEach(async () => {
  server.resume();
  await server.call("FLUSHALL");
  for (const events of told.splice(0)) for (const event of events) isClean(event);
});

function isClean(what: unknown): void {
  const text =
    typeof what === "string" ? what : inspect(what, { depth: 10, showHidden: true, getters: true });
  expectClean(text);
  // A wire id is an argument too. The error of a holder may name it as ownerId, but no error here has an owner.
  expect(text).not.toMatch(/args: \[/);
}

/** Checks an error and all its parts. */
function isCleanError(error: Error & { cause?: unknown }): void {
  for (const part of [error, error.message, error.stack ?? "", error.cause]) isClean(part);
  isClean(JSON.stringify({ ...error, cause: error.cause }));
}

function open(options: LockClientOptions = {}, target = url("", PASSWORD, server.port)): LockClient {
  const client = forTest(LockClient.connect(target, options));
  told.push(recordEvents(client));
  return client;
}

/** A client of a user with these rights. */
async function userWith(...rights: string[]): Promise<LockClient> {
  await server.call("ACL", "SETUSER", "poor", "reset", "on", `>${USER_PASSWORD}`, ...rights);
  return open({}, url("poor", USER_PASSWORD, server.port));
}

/** A client of a server that is not there, as it knows by now. */
async function away(): Promise<LockClient> {
  const client = open({ commandTimeout: 300 }, url("", PASSWORD, 1));
  await new Promise((resolve) => client.once("error", resolve));
  return client;
}

/** A client of the server, which is silent from now on. */
async function silenced(): Promise<LockClient> {
  const client = open({ commandTimeout: 300 });
  await until("it is ready", () => client.ready().then(() => true));
  server.pause();
  return client;
}

type Call = (client: LockClient) => Promise<unknown>;
const take: Call = (client) => client.getLock("a").lock({ lease: LEASE });
const CALLS: readonly Call[] = [
  take,
  (client) => client.inspect("a"),
  (client) => client.getSemaphore("a").tryAcquire(1, 200),
  (client) => client.ready(),
];

const REFUSED = { code: "ECONNREFUSED", message: expect.stringContaining("127.0.0.1:1") };
const SILENT = { message: expect.stringContaining(`127.0.0.1:${server.port}`) };

interface Failing {
  readonly code: string;
  readonly cure: RegExp;
  /** What comes before the call that fails; it makes the client. */
  prepare?(): Promise<LockClient>;
  fail(client: LockClient): Promise<unknown>;
  readonly has?: object;
}

const RIGHTS = /; give the user the rights in docs\/guide\.md#rights/;
const FAILING: readonly Failing[] = [
  {
    code: "WAIT_TIMEOUT",
    fail: async (client) => {
      await client.getLock("a").lock({ lease: 60_000 });
      await client.getLock("a").lock({ wait: 1_000 });
    },
    cure: /was not free within \d+ ms;.* wait longer/,
  },
  {
    code: "WAIT_TIMEOUT",
    fail: (client) => client.getSemaphore("a").run(() => {}, { wait: 1_000 }),
    cure: /semaphore "a" had too few free permits.*trySetPermits\(\)/,
  },
  { code: "NOT_OWNER", fail: (client) => client.getLock("a").unlock(), cure: /hold\.unlock\(\)/ },
  {
    code: "NOT_OWNER",
    fail: async (client) => {
      const hold = await client.getLock("a").lock();
      await hold.unlock();
      await hold.extend(1_000);
    },
    cure: /was given back; take the lock again/,
  },
  {
    code: "NOT_OWNER",
    fail: (client) => client.getPermitExpirableSemaphore("a").release("0".repeat(32)),
    cure: /longer lease/,
  },
  {
    code: "LOCK_LOST",
    fail: async (client) => {
      const hold = await client.getLock("a").lock();
      await server.call("DEL", "a");
      await hold.unlock();
    },
    cure: /its key is gone \(forced from elsewhere, deleted.*check the work/,
  },
  {
    code: "UPGRADE_REFUSED",
    fail: (client) => {
      const lock = client.getReadWriteLock("a");
      return lock.readLock().run(() => lock.writeLock().lock());
    },
    cure: /give the read side back first/,
  },
  {
    code: "QUORUM",
    fail: async (client) => {
      const dead = [await away(), LockClient.connect({ port: 2 }, { commandTimeout: 100 })];
      forTest(dead[1] as LockClient);
      await new RedLock(...[client, ...dead].map((each) => each.getLock("a"))).lock();
    },
    cure: /too few of the 3 masters.*`errors`.*; bring the masters back/,
    has: { errors: Array(2).fill({ cause: { code: "ECONNREFUSED" } }) },
  },
  {
    code: "UNSUPPORTED",
    prepare: () => userWith("~*", "&*", "+@all", "-evalsha", "-eval"),
    fail: take,
    cure: new RegExp(`forbids a command: NOPERM.*${RIGHTS.source}`),
  },
  {
    code: "UNSUPPORTED",
    prepare: () => userWith("~b*", "~*{b*", "&*", "+@all"),
    fail: take,
    cure: new RegExp(`may not use "a".*${RIGHTS.source}`),
  },
  {
    code: "UNSUPPORTED",
    prepare: () => userWith("~a*", "&*", "+@all"),
    fail: take,
    cure: /may not use (?!"a")"redisson_unlock_latch:\{a\}/,
  },
  {
    code: "UNSUPPORTED",
    prepare: () => userWith("~*", "resetchannels", "+@all"),
    fail: async (client) => {
      await server.call("HSET", "a", "b0e5b1a2-0000-4000-8000-000000000000:1", "1");
      // The next call is told likewise.
      expect(await failure(take(client))).toMatchObject({ code: "UNSUPPORTED" });
      await take(client);
    },
    cure: new RegExp(`forbids the channel "redisson_lock__channel:{a}".*${RIGHTS.source}`),
  },
  {
    code: "UNSUPPORTED",
    prepare: async () => open({}, url("", USER_PASSWORD, server.port)),
    fail: take,
    cure: /refuses the user name or password.*; check the user name and password of the connection/,
  },
  ...[take, (client: LockClient) => client.getLock("a").forceUnlock(), ...CALLS.slice(1, 3)].map(
    (call): Failing => ({
      code: "WRONG_DATA",
      fail: async (client) => {
        await server.call("RPUSH", "a", "somebody's");
        await call(client);
      },
      cure: /WRONGTYPE.*another name.*prefix/,
    }),
  ),
  {
    code: "CLIENT_CLOSED",
    fail: async (client) => {
      await client.close();
      await take(client);
    },
    cure: /before close\(\)/,
  },
  {
    code: "REPLICAS",
    prepare: async () => open({ replicas: 1, replicasTimeout: 50 }),
    fail: take,
    cure: /look at the replicas/i,
  },
  ...CALLS.map(
    (call): Failing => ({
      code: "UNAVAILABLE",
      prepare: away,
      fail: call,
      cure: /127\.0\.0\.1:1\b.*try again later/,
      has: { cause: REFUSED },
    }),
  ),
  ...CALLS.map(
    (call): Failing => ({
      code: "UNAVAILABLE",
      prepare: silenced,
      fail: call,
      cure: /try again later/,
      has: { cause: SILENT },
    }),
  ),
  {
    code: "UNAVAILABLE",
    prepare: away,
    fail: (client) => new MultiLock(client.getLock("a"), client.getLock("b")).isLocked(),
    cure: /try again later/,
    has: { cause: REFUSED },
  },
  {
    code: "UNAVAILABLE",
    fail: async () => {
      const client = open({ commandTimeout: 300 });
      const hold = await until("it is taken", () => client.getLock("a").lock());
      server.pause();
      await hold.unlock();
    },
    cure: /try again later/,
    has: { cause: SILENT },
  },
];

/** The name of this function shows in the stack of the error that `call` rejects with. */
async function namedCaller(call: () => Promise<unknown>): Promise<void> {
  await call();
}

test.for(FAILING)(
  "$code says with $cure what to do, has cause and caller, and shows no secret [§6 codes] [§6 no-secrets] [B40] [B105] [B297]",
  async ({ code, prepare = async () => open(), fail, cure, has = {} }) => {
    const client = await prepare();
    const error = (await failure(namedCaller(() => fail(client)))) as LockError;
    expect(error).toMatchObject({ code, message: expect.stringMatching(cure), ...has });
    expect(error.stack).toContain("namedCaller");
    if (error.lockName) expect(error.message).toContain(`"${error.lockName}"`);
    else expect(error.message).not.toContain('lock ""');
    const anchor = `#${code.toLowerCase()}`;
    expect(error.message.endsWith(`. See docs/guide.md${anchor}`)).toBe(true);
    expect(guide).toContain(`(${anchor})`);
    isCleanError(error);
  },
);

test("a connection that is up again is not blamed for what it suffered before [§6 cause]", async () => {
  const port = await freePort();
  const client = forTest(LockClient.connect({ port, retryStrategy: () => 20 }, { commandTimeout: 800 })).on(
    "error",
    () => {},
  );
  await failure(client.getLock("a").lock());
  const late = await startRedis({ port });
  try {
    await until("it is ready", () => client.ready().then(() => true));
    await late.pause();
    const error = (await failure(client.getLock("a").lock())) as LockError;
    expect((error.cause as Error).message).not.toContain("ECONNREFUSED");
  } finally {
    await late.resume();
    await late.stop();
    releasePort(port);
  }
});

describe("no secret is shown [§6 no-secrets]", () => {
  test("by a renewal that fails, and the loss that follows", async () => {
    const client = open({ commandTimeout: 1_000, watchdogTimeout: 4_500 });
    const hold = await until("it is taken", () => client.getLock("a").lock());
    server.pause();
    await until("it is lost", () => hold.signal.aborted);
    server.resume();
    expect(told.flat().map(({ name }) => name)).toContain("suspended");
    isCleanError(await failure(hold.unlock()));
    isClean(hold.signal.reason);
  });

  test("by a server that lacks a command, which then quotes its arguments", async () => {
    await using odd = await startRedis({
      args: ["--rename-command", "EVAL", "", "--rename-command", "EVALSHA", ""],
    });
    const client = open({}, odd.url);
    for (const call of [take, (lacking: LockClient) => lacking.ready()]) {
      const error = await failure(call(client));
      expect(error).toMatchObject({ code: "UNSUPPORTED", message: expect.stringMatching(/eval/i) });
      isCleanError(error);
    }
  });

  test.each([
    ["another protocol", `http://:${PASSWORD}@127.0.0.1`],
    ["no protocol", `:${PASSWORD}@127.0.0.1:6379`],
    ["a port out of range", `redis://:${PASSWORD}@127.0.0.1:99999999`],
    ["a host that is none", `redis://:${PASSWORD}@bad host:6379`],
    ["a keyPrefix", `redis://:${PASSWORD}@127.0.0.1:1?keyPrefix=x:`],
  ])("by the refusal of a URL with %s", async (_, target) => {
    isCleanError(await failure(() => LockClient.connect(target)));
  });
});
