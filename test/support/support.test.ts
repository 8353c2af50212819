import { beforeEach, expect, test } from "vitest";
import { allKeys, countCommands, keyState, startRedis, untilGone } from "./index.js";
import { forFile } from "./lasting.js";

const server = await forFile(startRedis());
beforeEach(() => server.call("FLUSHALL"));

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
