/** Contract section 1: ready() finds what the server would refuse to this client's locks, semaphores and latches. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, expect, test } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { allKeys, forFile, forTest, startRedis, UNHURRIED, until } from "../support/index.js";
import { connectionsOf, failure } from "./helpers.js";

const LUA = fileURLToPath(new URL("../../lua", import.meta.url));
const called = new Set(
  readdirSync(LUA, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".lua"))
    .flatMap((file) => [...readFileSync(join(LUA, file), "utf8").matchAll(/redis\.p?call\('([A-Z]+)'/g)])
    .map(([, name = ""]) => name.toLowerCase()),
);
/** Commands that the client sends outside of scripts. */
const SENT = ["eval", "evalsha", "publish", "subscribe", "ping"];

const CHANNELS = [
  "redisson_lock__channel:{shop:",
  "redisson_rwlock:{shop:",
  "redisson_sc:{shop:",
  "redisson_countdownlatch__channel__{shop:",
];
/** The prefixes of the keys of a lock, semaphore or latch `shop:…`. */
const KEYS = [
  "shop:",
  "{shop:",
  "redisson_lock_token:{shop:",
  "redisson_lock_queue:{shop:",
  "redisson_lock_timeout:{shop:",
  "redisson_unlock_latch:{shop:",
  "holdfast_alive:{shop:",
  "holdfast_writers:{shop:",
  "holdfast_over:{shop:",
  // Channels are passed to scripts as keys.
  ...CHANNELS,
];

const server = await forFile(startRedis());
beforeEach(() => server.call("FLUSHALL"));

interface Rights {
  readonly commands?: readonly string[];
  readonly keys?: readonly string[];
  readonly channels?: readonly string[];
}

/** A client of a user with all rights to the names of `shop:`, unless others are given. */
async function connect(rights: Rights, options: LockClientOptions = { prefix: "shop" }): Promise<LockClient> {
  const { commands = [], keys = KEYS, channels = CHANNELS } = rights;
  const names = [...keys.map((key) => `~${key}*`), "resetchannels", ...channels.map((name) => `&${name}*`)];
  await server.call("ACL", "SETUSER", "shop", "reset", "on", ">secret", ...names, "+@all", ...commands);
  const client = forTest(
    LockClient.connect(
      { port: server.port, username: "shop", password: "secret" },
      { ...UNHURRIED, ...options },
    ),
  );
  client.on("error", () => {});
  return client;
}

/** ready() leaves nothing that stays: keys expire, and no channel has a listener. */
async function nothingStays(): Promise<void> {
  for (const { ttl } of (await allKeys(server.connect())).values()) expect(ttl).toBeGreaterThan(0);
  await until("no channel is listened to", async () =>
    (await connectionsOf(server)).every(({ subscribed }) => subscribed === 0),
  );
}

const without = (all: readonly string[], one: string) => all.filter((each) => each !== one);

test("a user with these rights is ready", async () => {
  await (await connect({})).ready();
  await nothingStays();
});

test.each([...called, ...SENT])(
  "without the command %s: UNSUPPORTED names it [§6 unsupported] [B34]",
  async (command) => {
    const error = await failure((await connect({ commands: [`-${command}`] })).ready());
    expect(error).toMatchObject({ code: "UNSUPPORTED" });
    expect(error.message).toContain(`'${command}`);
    await nothingStays();
  },
);

test("without the command wait, where replicas have to acknowledge: UNSUPPORTED names it [§6 unsupported] [B305]", async () => {
  const client = await connect({ commands: ["-wait"] }, { prefix: "shop", replicas: 1 });
  expect(await failure(client.ready())).toMatchObject({
    code: "UNSUPPORTED",
    message: expect.stringContaining("'wait"),
  });
});

test("a server that lacks a command of the scripts: UNSUPPORTED names it, to ready() and to calls [§6 unsupported] [B305]", async () => {
  await using poor = await startRedis({ args: ["--rename-command", "PEXPIRE", ""] });
  await using client = new LockClient(poor.connect());
  for (const call of [() => client.ready(), () => client.getLock("job").lock()]) {
    const message = expect.stringContaining("'pexpire'");
    expect(await failure(call())).toMatchObject({ code: "UNSUPPORTED", message });
  }
});

test.each(KEYS)("without the keys %s…: UNSUPPORTED names one", async (missing) => {
  const error = await failure((await connect({ keys: without(KEYS, missing) })).ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED" });
  expect(error.message).toContain(`"${missing}`);
  await nothingStays();
});

test.each(CHANNELS)("without the channels %s…: UNSUPPORTED names one", async (missing) => {
  const error = await failure((await connect({ channels: without(CHANNELS, missing) })).ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED" });
  expect(error.message).toContain(`"${missing}`);
  await nothingStays();
});

test("without a prefix: all keys and no channels is UNSUPPORTED", async () => {
  const error = await failure((await connect({ keys: [""], channels: [] }, {})).ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED" });
  expect(error.message).toContain('"redisson_lock__channel:{');
  await nothingStays();
});

test("without a prefix: all names of locks and none of the keys beside them is UNSUPPORTED", async () => {
  const error = await failure((await connect({ keys: ["shop:", "holdfast-ready-"] }, {})).ready());
  expect(error).toMatchObject({ code: "UNSUPPORTED" });
  expect(error.message).toMatch(/"(\{|redisson_|holdfast_)/);
  await nothingStays();
});

test("without a prefix: a user confined to some names is ready, as far as can be told", async () => {
  await (await connect({}, {})).ready();
  await nothingStays();
});
