/** Contract section 6: no error text, event or log contains a password, a URL or script arguments. */
import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Lock, LockClient, type LockClientOptions } from "../../src/index.js";
import {
  type FaultProxy,
  forFile,
  forTest,
  startProxy,
  startRedis,
  UNHURRIED,
  until,
} from "../support/index.js";
import { failure, recordEvents, type SeenEvent, setUser } from "./helpers.js";
import { expectClean, LEASE, PASSWORD, USER_PASSWORD, url } from "./secrets.js";

let proxy: FaultProxy;

const server = await forFile(startRedis({ password: PASSWORD }));
beforeEach(async () => {
  proxy = forTest(await startProxy(server));
});
afterEach(async () => {
  proxy.restore();
  await server.call("FLUSHALL");
});

interface Subject {
  readonly client: LockClient;
  readonly lock: Lock;
  readonly events: SeenEvent[];
}

function subjectOn(target: string, options: LockClientOptions): Subject {
  const client = forTest(LockClient.connect(target, options));
  return { client, lock: client.getLock("a"), events: recordEvents(client) };
}

const IMPATIENT = { commandTimeout: 600 };

/** A client through the proxy. */
function subject(user = "", password = PASSWORD, options: LockClientOptions = IMPATIENT): Subject {
  return subjectOn(url(user, password, proxy.port), options);
}

function isClean(what: unknown): void {
  const text =
    typeof what === "string" ? what : inspect(what, { depth: 10, showHidden: true, getters: true });
  expectClean(text);
  // A wire id is an argument too. The error of a holder may name it as ownerId, but no error here has an owner.
  expect(text).not.toMatch(/args: \[/);
}

/** Checks an error, all its parts, and all events so far. */
function areClean(error: Error, events: readonly SeenEvent[] = []): void {
  isClean(error);
  isClean(error.message);
  isClean(error.stack ?? "");
  isClean((error as { cause?: unknown }).cause);
  isClean(JSON.stringify({ ...error, cause: (error as { cause?: unknown }).cause }));
  for (const event of events) isClean(event);
}

describe("UNAVAILABLE", () => {
  test("the server cannot be reached", async () => {
    proxy.refuse();
    const { lock, client, events } = subject();
    for (const call of [
      () => lock.lock({ lease: LEASE }),
      () => lock.tryLock(0, LEASE),
      () => client.ready(),
    ]) {
      const error = await failure(call);
      expect(error).toMatchObject({ code: "UNAVAILABLE" });
      areClean(error, events);
    }
  });

  test("a renewal that fails, and the loss that follows", async () => {
    const { lock, events } = subject("", PASSWORD, { commandTimeout: 1_000, watchdogTimeout: 4_500 });
    const hold = await until("it is taken", () => lock.lock());
    proxy.blackhole();
    await until("it is lost", () => hold.signal.aborted);
    expect(events.map(({ name }) => name)).toContain("suspended");
    areClean(await failure(hold.unlock()), events);
    isClean(hold.signal.reason);
  });
});

describe("a wrong password", () => {
  test("calls, ready and the error event", async () => {
    const { lock, client, events } = subject("", USER_PASSWORD);
    areClean(await failure(lock.lock({ lease: LEASE })), events);
    areClean(await failure(client.ready()), events);
    await until("the connection's error was told", () => events.some(({ name }) => name === "error"));
    for (const event of events) isClean(event);
  });
});

describe("UNSUPPORTED", () => {
  test.each([
    ["no EVAL", "-eval -evalsha"],
    ["no HSET", "-hset"],
    ["no key of that name", "resetkeys ~x:*"],
  ])("a user who may not: %s", async (_, rules) => {
    await setUser(server, "limited", `>${USER_PASSWORD} ~* &* +@all ${rules}`);
    const { lock, events } = subject("limited", USER_PASSWORD, UNHURRIED);
    const error = await failure(lock.lock({ lease: LEASE }));
    expect(error).toMatchObject({ code: "UNSUPPORTED", lockName: "a" });
    areClean(error, events);
  });

  test("a user who may not listen to the channel", async () => {
    await setUser(server, "deaf", `>${USER_PASSWORD} ~* resetchannels +@all`);
    const { lock, events } = subject("deaf", USER_PASSWORD, UNHURRIED);
    await server.call("HSET", "a", "b0e5b1a2-0000-4000-8000-000000000000:1", "1");
    const error = await failure(lock.lock({ lease: LEASE }));
    expect(error).toMatchObject({ code: "UNSUPPORTED", lockName: "a" });
    areClean(error, events);
  });

  test("a server that lacks a command, which then quotes its arguments", async () => {
    await using odd = await startRedis({
      args: ["--rename-command", "EVAL", "", "--rename-command", "EVALSHA", ""],
    });
    const { lock, client, events } = subjectOn(odd.url, UNHURRIED);
    const error = await failure(lock.lock({ lease: LEASE }));
    expect(error).toMatchObject({ code: "UNSUPPORTED", lockName: "a" });
    expect(error.message).toMatch(/eval/i);
    areClean(error, events);
    areClean(await failure(client.ready()), events);
  });
});

test("a key that holds other data", async () => {
  const { lock, events } = subject();
  await server.call("SET", "a", "x");
  for (const call of [() => lock.lock({ lease: LEASE }), () => lock.isLocked(), () => lock.forceUnlock()]) {
    areClean(await failure(call), events);
  }
});

describe("arguments of connect", () => {
  test.each([
    ["another protocol", `http://:${PASSWORD}@127.0.0.1`],
    ["no protocol", `:${PASSWORD}@127.0.0.1:6379`],
    ["a port out of range", `redis://:${PASSWORD}@127.0.0.1:99999999`],
    ["a host that is none", `redis://:${PASSWORD}@bad host:6379`],
  ])("a URL with %s", async (_, target) => {
    areClean(await failure(() => LockClient.connect(target)));
  });

  test("a URL with a keyPrefix", async () => {
    areClean(await failure(() => LockClient.connect(`redis://:${PASSWORD}@127.0.0.1:1?keyPrefix=x:`)));
  });
});
