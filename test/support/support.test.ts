import { beforeEach, describe, expect, test } from "vitest";
import {
  allKeys,
  countCommands,
  hasFeaturesOf,
  keyState,
  redisCall,
  startRedis,
  until,
  untilGone,
} from "./index.js";
import { forFile } from "./lasting.js";

const server = await forFile(startRedis());
beforeEach(() => server.call("FLUSHALL"));

describe("startRedis", () => {
  test("gives a server of its own, with DEBUG", async () => {
    expect(server.port).not.toBe(6379);
    expect(server.version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(server.hasFeaturesOf("6.2.0")).toBe(true);
    expect(await server.connect().ping()).toBe("PONG");
    if (server.hasFeaturesOf("7.0.0")) expect(await server.call("DEBUG", "SLEEP", 0)).toBe("OK");
  });

  test("a paused server answers when it is resumed", async () => {
    const client = server.connect();
    await client.ping();
    server.pause();
    const reply = client.incr("n");
    await expect(redisCall(server, ["PING"], 50)).rejects.toThrow("no answer within 50 ms");
    server.resume();
    expect(await reply).toBe(1);
  });

  test("a killed server comes back empty on its port, with an append-only file as it was", async () => {
    await using forgetful = await startRedis();
    await using durable = await startRedis({ args: ["--appendonly", "yes", "--appendfsync", "always"] });
    for (const [one, expected] of [
      [forgetful, null],
      [durable, "v"],
    ] as const) {
      const client = one.connect();
      await client.set("k", "v");
      const { pid, port } = one;
      await one.kill();
      await expect(one.call("PING")).rejects.toThrow("ECONNREFUSED");
      await one.restart();
      expect(one.port).toBe(port);
      expect(one.pid).not.toBe(pid);
      expect(await client.get("k")).toBe(expected);
    }
  });

  test("compares versions, and counts Valkey as Redis 7.2.4", () => {
    expect(hasFeaturesOf({ engine: "redis", version: "7.0.15" }, "7.0.2")).toBe(true);
    expect(hasFeaturesOf({ engine: "redis", version: "6.2.14" }, "7.0.0")).toBe(false);
    expect(hasFeaturesOf({ engine: "valkey", version: "8.0.1" }, "7.4.0")).toBe(false);
    expect(hasFeaturesOf({ engine: "valkey", version: "8.0.1" }, "7.0.0")).toBe(true);
  });
});

test("countCommands sees what clients sent, whole, and not what scripts call", async () => {
  const client = server.connect();
  await client.ping();
  const counter = await countCommands(server);
  await client.set('a "b" \\ \r\n\x00', "ä");
  await client.eval("return redis.call('incr', KEYS[1])", 1, "n");
  await counter.settle();
  expect(counter.all()).toEqual([
    ["SET", 'a "b" \\ \r\n\x00', "ä"],
    ["EVAL", "return redis.call('incr', KEYS[1])", "1", "n"],
  ]);
  await counter.reset();
  await Promise.all(Array.from({ length: 500 }, () => client.incr("n")));
  await counter.settle();
  expect([counter.of("incr"), counter.of("incr", "set"), counter.all().length]).toEqual([500, 500, 500]);
  counter.stop();
});

test.each([3, 2] as const)("keyState and allKeys read every type, on RESP%i", async (protocol) => {
  const client = server.connect({ protocol });
  await client.multi().set("s", "text").hset("h", "__proto__", "1", "a", "2").rpush("l", "x", "y").exec();
  await client.multi().sadd("m", "b", "a").zadd("z", 2, "two", 1.5, "one").pexpire("h", 60_000).exec();
  const states = await allKeys(client);
  expect([...states.keys()]).toEqual(["h", "l", "m", "s", "z"]);
  expect(Object.entries(states.get("h")?.value ?? {})).toEqual([
    ["__proto__", "1"],
    ["a", "2"],
  ]);
  expect(states.get("h")?.ttl).toBeGreaterThan(50_000);
  expect(states.get("l")).toEqual({ type: "list", value: ["x", "y"], ttl: -1 });
  expect(states.get("m")).toEqual({ type: "set", value: ["a", "b"], ttl: -1 });
  expect(states.get("s")).toEqual({ type: "string", value: "text", ttl: -1 });
  expect(states.get("z")?.value).toEqual([
    ["one", 1.5],
    ["two", 2],
  ]);
  expect(await keyState(client, "none")).toEqual({ type: "none", value: null, ttl: -2 });
  await client.pexpire("s", 30);
  await untilGone(client, "s");
});

test("until gives the result, and names what it waited for when it fails", async () => {
  let looks = 0;
  expect(await until("three", () => ++looks === 3 && "seen")).toBe("seen");
  const options = { timeout: 20, every: 5 };
  await expect(until("rain", () => 0, options)).rejects.toThrow("not within 20 ms: rain (last seen: 0)");
  await expect(until("an answer", () => new Promise(() => {}), options)).rejects.toThrow("an answer");
  const broken = until("a throw", () => Promise.reject(new Error("broken")), options);
  await expect(broken).rejects.toMatchObject({
    message: expect.stringContaining("(broken)"),
    cause: new Error("broken"),
  });
});
