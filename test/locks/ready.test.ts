/** `client.ready()`: what it asks of the server, and which answers are refusals that say what is missing. In virtual time. */
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import { expectNothingLeft, failure, type Ran, type Scene, type Server, scene, watch } from "./scene.js";

/** As a proxy tells it, that says its own version first. */
const info = (version: string) =>
  `# Server\r\nproxy_redis_version:1.0\r\nredis_version:${version}\r\nrun_id:${"0".repeat(40)}\r\n`;

function open(options = {}): Scene {
  return scene({ commandTimeout: 1_000, ...options });
}

/** The server's answer to INFO. */
function answering(server: Server, text: string): void {
  server.instead = ({ name, args }) => (name === "INFO" && args[0] === "server" ? text : undefined);
}

/** The server refuses what `refuses` names. */
function refusing(server: Server, refuses: (ran: Ran) => boolean, text: string): void {
  server.instead = (ran) => {
    if (refuses(ran)) throw new ReplyError(text);
    return undefined;
  };
}

test("resolves, and leaves nothing", async () => {
  const place = open();
  expect(await place.a.client.ready()).toBeUndefined();
  const names = place.server.ran.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["INFO", "PING", "PUBLISH", "server/refused", "lock/acquire", "lock/release"]),
  );
  await expectNothingLeft(place);
});

test.each(["6.2.0", "6.10.1", "7.0.0", "10.1.0", "255.255.255"])(
  "a server of version %s will do",
  async (version) => {
    const { a, server } = open();
    answering(server, info(version));
    expect(await a.client.ready()).toBeUndefined();
  },
);

test.each(["6.1.9", "5.0.14", "2.8.24", "6.0.16"])("a server of version %s is too old", async (version) => {
  const { a, server } = open();
  answering(server, info(version));
  expect(await failure(a.client.ready())).toMatchObject({
    code: "UNSUPPORTED",
    lockName: "",
    message: expect.stringContaining(
      `the server is Redis ${version.split(".").slice(0, 2).join(".")}; 6.2 is the oldest that works`,
    ),
  });
  expect(server.took()).toEqual([]);
});

test("a server that tells no version is taken as it is", async () => {
  const { a, server } = open();
  answering(server, "# Server\r\n");
  expect(await a.client.ready()).toBeUndefined();
});

test("a user who may not ask for the version may use all the rest", async () => {
  const { a, server } = open();
  refusing(
    server,
    ({ name }) => name === "INFO",
    "NOPERM this user has no permissions to run the 'info' command",
  );
  expect(await a.client.ready()).toBeUndefined();
});

test("without an answer it is UNAVAILABLE in time", async () => {
  const { a, advance } = open();
  a.keep("requests");
  const ready = watch(a.client.ready());
  await advance(999);
  expect(ready.outcome).toBe("pending");
  await advance(1);
  expect(ready.outcome).toBe("UNAVAILABLE");
});

test("a client that is closed while nothing is heard of a channel ends it at once", async () => {
  const { a, advance } = open();
  await a.client.ready();
  a.keep("replies", a.connections[1]);
  const ready = watch(a.client.ready());
  await advance(0);
  await a.client.close({ timeout: 0 });
  expect(ready.error).toMatchObject({ code: "CLIENT_CLOSED", lockName: "" });
});

test("a closed client is refused", async () => {
  const { a, server } = open();
  await a.client.close();
  server.ran.length = 0;
  expect(await failure(a.client.ready())).toMatchObject({ code: "CLIENT_CLOSED" });
  expect(server.ran).toEqual([]);
});

const NO_KEY = "NOPERM No permissions to access a key";
const isProbe = ({ name, args }: Ran) => name === "EVAL" && args[0] === "return 1";

test.each([
  [
    "PING",
    (ran: Ran) => ran.name === "PING",
    "NOPERM this user has no permissions to run the 'ping' command",
  ],
  ["scripts by their text", isProbe, "NOPERM this user has no permissions to run the 'eval' command"],
  [
    "scripts by their hash",
    (ran: Ran) => ran.name === "EVALSHA",
    "NOPERM this user has no permissions to run the 'evalsha' command",
  ],
  [
    "PUBLISH",
    (ran: Ran) => ran.name === "PUBLISH",
    "NOPERM this user has no permissions to run the 'publish' command",
  ],
])("a user who may not use %s is told so", async (_, refuses, text) => {
  const { a, server } = open();
  refusing(server, refuses, text);
  expect(await failure(a.client.ready())).toMatchObject({
    code: "UNSUPPORTED",
    message: expect.stringContaining(text),
  });
});

test("commands that scripts may not call are named", async () => {
  const { a, server } = open();
  server.instead = ({ name }) => (name === "server/refused" ? ["hset", "zadd"] : undefined);
  expect(await failure(a.client.ready())).toMatchObject({
    code: "UNSUPPORTED",
    lockName: "",
    message: expect.stringContaining("the server forbids commands that scripts call: 'hset', 'zadd'"),
  });
});

test("an answer of another kind to its own script is passed on", async () => {
  const { a, server } = open();
  refusing(server, isProbe, "WRONGPASS invalid username-password pair");
  expect(await failure(a.client.ready())).toMatchObject({ code: "UNSUPPORTED" });
});

describe("a user who is confined to some names", () => {
  /** Every key that a probe names is refused but these. */
  const confine = (server: Server, may: (key: string) => boolean) =>
    refusing(server, (ran) => isProbe(ran) && !may(ran.args[2] ?? ""), NO_KEY);

  test("cannot be checked without a prefix, and is not refused", async () => {
    const { a, server } = open();
    confine(server, () => false);
    expect(await a.client.ready()).toBeUndefined();
    expect(server.took()).toEqual([]);
    expect(server.ran.some(({ name }) => name === "PUBLISH")).toBe(false);
  });

  test("has to have those behind the prefix", async () => {
    const { a, server } = open({ prefix: "app" });
    confine(server, () => false);
    const error = await failure(a.client.ready());
    expect(error).toMatchObject({ code: "UNSUPPORTED", lockName: "" });
    expect(error.message).toMatch(
      /the user of the connection may not use the key "app:holdfast-ready-[^"]+"/,
    );
  });

  test.each([
    "redisson_unlock_latch",
    "redisson_lock_queue",
    "redisson_lock_timeout",
    "redisson_lock_token",
    "redisson_lock__channel",
  ])("has to have the keys and channels beside a name: %s", async (beside) => {
    const { a, server } = open();
    confine(server, (key) => !key.includes(beside));
    const error = await failure(a.client.ready());
    expect(error).toMatchObject({ code: "UNSUPPORTED" });
    expect(error.message).toMatch(new RegExp(`may not use the key "${beside}[^"]*holdfast-ready-`));
  });
});

test("a user who may not publish to a channel is told which", async () => {
  const { a, server } = open();
  const isLockChannel = ({ name, args }: Ran) =>
    name === "PUBLISH" && /redisson_lock__channel/.test(args[0] ?? "");
  refusing(server, isLockChannel, "NOPERM No permissions to access a channel");
  const error = await failure(a.client.ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED", lockName: "" });
  expect(error.message).toMatch(
    /the user of the connection may not publish to the channel "redisson_lock__channel:\{holdfast-ready-/,
  );
});

test("a user who may not subscribe to a channel is told which", async () => {
  const { a, server } = open();
  const subscribe = server.subscribe.bind(server);
  server.subscribe = (kind, channel, subscriber) => {
    if (channel.startsWith("redisson_sc:")) throw new ReplyError("NOPERM No permissions to access a channel");
    subscribe(kind, channel, subscriber);
  };
  const error = await failure(a.client.ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED" });
  expect(error.message).toMatch(
    /may not subscribe to the channel "redisson_sc:\{holdfast-ready-[^"]+": .*No permissions to access a channel/,
  );
});

describe("a server that answers SUBSCRIBE with LOADING", () => {
  const LOADING = "LOADING Redis is loading the dataset in memory";

  test("for as long as that: ready() is UNAVAILABLE in time, and says why", async () => {
    const place = open();
    place.server.subscribe = () => {
      throw new ReplyError(LOADING);
    };
    const ready = watch(place.a.client.ready());
    await place.advance(999);
    expect(ready.outcome).toBe("pending");
    await place.advance(1);
    expect(ready.error).toMatchObject({ code: "UNAVAILABLE", lockName: "", cause: { message: LOADING } });
  });

  test("once for each channel: ready() resolves when it is listened to", async () => {
    const place = open();
    const { server } = place;
    const subscribe = server.subscribe.bind(server);
    const refused = new Set<string>();
    server.subscribe = (kind, channel, subscriber) => {
      if (refused.has(channel)) return subscribe(kind, channel, subscriber);
      refused.add(channel);
      throw new ReplyError(LOADING);
    };
    const ready = watch(place.a.client.ready());
    await place.advance(999);
    expect(ready.outcome).toBeUndefined();
    expect(refused.size).toBeGreaterThan(0);
    await expectNothingLeft(place);
  });
});

test.each([
  ["a script that fails", "server/refused", ""],
  ["a lock that cannot be taken", "lock/acquire", expect.stringMatching(/^holdfast-ready-/)],
])("%s fails it", async (_, script, lockName) => {
  const { a, server } = open();
  refusing(server, ({ name }) => name === script, "ERR something else");
  expect(await failure(a.client.ready())).toMatchObject({ code: "UNAVAILABLE", lockName });
});

test("a channel that nothing is heard of fails it in time", async () => {
  const { a, advance } = open();
  await a.client.ready();
  a.keep("replies", a.connections[1]);
  const ready = watch(a.client.ready());
  await advance(1_000);
  expect(ready.error).toMatchObject({ code: "UNAVAILABLE", lockName: "" });
});
