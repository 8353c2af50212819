import { expect, test } from "vitest";
import { serverRefused } from "../../src/scripts/generated.js";
import { text, useBench } from "./bench.js";

const bench = await useBench();
const KEYS = { probe: "holdfast_probe:{job}" };

/** Every command that any script calls, except publishing ones, in the words of their script. */
const COMMANDS = (
  "set pexpire pttl exists type time get getrange incr incrby decrby hset hget hgetall hkeys hlen hexists hrandfield hdel " +
  "zadd zcard zscore zincrby zrange zrevrange zrem zremrangebyscore rpush lpop ltrim llen lindex lrange del"
).split(" ");

const refusedTo = async (user: string, ...rules: string[]): Promise<unknown> => {
  await bench.put({});
  await bench.redis.acl("SETUSER", user, "reset", "on", "nopass", "+@all", "allkeys", ...rules);
  return bench.runner(serverRefused, bench.server.connect({ username: user, password: "any" }))(KEYS, {});
};

test("nothing is refused to a user who may do everything, and nothing is left or touched", async () => {
  await bench.put({ other: text("x", 60_000) });
  expect(await bench.runner(serverRefused)(KEYS, {})).toEqual([]);
  await bench.expect({ other: text("x", 60_000) });
  expect(await bench.heard()).toEqual([]);
});

test("each command that a user lacks is named alone, and no key is left without an end", async () => {
  for (const command of COMMANDS) {
    expect(await refusedTo(`no-${command}`, `-${command}`)).toEqual([command]);
    const left = command === "del" ? [KEYS.probe] : [];
    expect(await bench.redis.keys("*"), command).toEqual(left);
    for (const key of left) expect(await bench.redis.pttl(key)).toBeGreaterThan(0);
  }
});

test("without set nothing else is tried, which might make a key that stays", async () => {
  expect(await refusedTo("guest", "-set", "-del")).toEqual(["set"]);
  await bench.expect({});
});

test("several commands are named in the order in which they are tried", async () => {
  expect(await refusedTo("reader", "-hset", "-get", "-zrem")).toEqual(["get", "hset", "zrem"]);
});
