/**
 * Contract section 6: what an error of the server or the connection says: its cause, the address, the key, the caller.
 */
import { once } from "node:events";
import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { LockClient, type LockClientOptions, type LockError, MultiLock, RedLock } from "../../src/index.js";
import { forFile, forTest, freePort, releasePort, startRedis, until } from "../support/index.js";
import { failure, setUser } from "./helpers.js";

const server = await forFile(startRedis());
afterEach(() => server.call("FLUSHALL"));

function connect(port: number, options: object = {}): Redis {
  const redis = forTest(new Redis({ host: "127.0.0.1", port, ...options }));
  redis.on("error", () => {});
  return redis;
}

function clientOn(redis: Redis, options: LockClientOptions = { commandTimeout: 800 }): LockClient {
  return forTest(new LockClient(redis, options));
}

/** Lends ports on which no server listens, until `use` has ended. */
async function withPorts(count: number, use: (...ports: number[]) => Promise<void>): Promise<void> {
  const ports = await Promise.all(Array.from({ length: count }, freePort));
  try {
    await use(...ports);
  } finally {
    for (const port of ports) releasePort(port);
  }
}

type Call = [name: string, call: (client: LockClient) => Promise<unknown>];

const CALLS: readonly Call[] = [
  ["lock", (client) => client.getLock("a").lock()],
  ["inspect", (client) => client.inspect("a")],
  ["tryAcquire", (client) => client.getSemaphore("a").tryAcquire(1, 200)],
];
const READY: Call = ["ready", (client) => client.ready()];

/** The name of this function shows in the stack of the error that `call` rejects with. */
async function namedCaller(call: () => Promise<unknown>): Promise<void> {
  await call();
}

/** The error of a call; its stack must name the caller. */
async function toldOf(call: () => Promise<unknown>): Promise<LockError> {
  const error = (await failure(namedCaller(call))) as LockError;
  expect(error.stack).toContain("namedCaller");
  return error;
}

describe("UNAVAILABLE", () => {
  /** The call fails because the server is silent, and its error names the server's address. */
  async function expectSilence(call: () => Promise<unknown>): Promise<void> {
    server.pause();
    try {
      const error = await toldOf(call);
      expect(error.code).toBe("UNAVAILABLE");
      expect((error.cause as Error).message).toContain(`127.0.0.1:${server.port}`);
    } finally {
      server.resume();
    }
  }

  test.for([...CALLS, READY])("%s on a refused connection has it as its cause [B40]", ([, call]) =>
    withPorts(1, async (port = 0) => {
      const redis = connect(port);
      const client = clientOn(redis);
      await once(redis, "error"); // otherwise a short wait could end before the connection is refused
      const error = await toldOf(() => call(client));
      expect(error.code).toBe("UNAVAILABLE");
      expect(error.message).toContain(`127.0.0.1:${port}`);
      expect(error.message).not.toContain('lock ""');
      expect(error.cause).toMatchObject({
        code: "ECONNREFUSED",
        message: expect.stringContaining(`127.0.0.1:${port}`),
      });
    }),
  );

  test.for([...CALLS, READY])("%s of a server that is silent names its address", async ([, call]) => {
    const redis = connect(server.port);
    const client = clientOn(redis);
    await until("it answers", () => client.ready().then(() => true));
    await expectSilence(() => call(client));
  });

  test("of an unlock that gets no answer has a cause and its caller", async () => {
    const client = clientOn(connect(server.port));
    const hold = await until("it is taken", () => client.getLock("a").lock());
    await expectSilence(() => hold.unlock());
  });

  test("the errors of a RedLock's members have causes, and QUORUM its caller", () =>
    withPorts(3, async (...ports) => {
      const lock = new RedLock(...ports.map((port) => clientOn(connect(port)).getLock("a")));
      const error = await toldOf(() => lock.lock());
      expect(error).toMatchObject({ code: "QUORUM" });
      for (const each of error.errors as LockError[])
        expect(each.cause).toMatchObject({ code: "ECONNREFUSED" });
    }));

  test("a failed query of a group has a cause and names its caller", () =>
    withPorts(1, async (port = 0) => {
      const client = clientOn(connect(port));
      const error = await toldOf(() => new MultiLock(client.getLock("a"), client.getLock("b")).isLocked());
      expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { code: "ECONNREFUSED" } });
    }));

  test("a connection that is up again is not blamed for what it suffered before", async () => {
    const port = await freePort();
    const redis = connect(port, { retryStrategy: () => 20 });
    const client = clientOn(redis, { commandTimeout: 800 });
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
    }
  });
});

describe("WRONG_DATA", () => {
  test.for(CALLS.filter(([name]) => name !== "inspect"))("of %s tells the caller", async ([, call]) => {
    const redis = connect(server.port);
    await redis.rpush("a", "somebody's");
    const error = await toldOf(() => call(clientOn(redis, {})));
    expect(error.code).toBe("WRONG_DATA");
  });
});

describe("a user that may not use a key", () => {
  const LOCKS: readonly Call[] = [
    ["lock", (client) => client.getLock("a").lock()],
    ["isLocked", (client) => client.getLock("a").isLocked()],
    ["tryAcquire", (client) => client.getSemaphore("a").tryAcquire()],
  ];

  test.for(LOCKS)("%s names the lock's key", async ([, call]) => {
    await setUser(server, "other", ">pw ~b* ~*{b* allchannels +@all");
    const error = await toldOf(() =>
      call(clientOn(connect(server.port, { username: "other", password: "pw" }))),
    );
    expect(error.code).toBe("UNSUPPORTED");
    expect(error.message).toMatch(/may not use .*"a"/);
  });

  test("the key beside the lock's that is missing is named, and the lock's own is not", async () => {
    await setUser(server, "half", ">pw ~a* allchannels +@all");
    const client = clientOn(connect(server.port, { username: "half", password: "pw" }));
    const error = await toldOf(() => client.getLock("a").lock());
    expect(error.code).toBe("UNSUPPORTED");
    expect(error.message).toContain('"redisson_unlock_latch:{a}');
    expect(error.message).not.toMatch(/may not use .*"a"/);
  });
});
