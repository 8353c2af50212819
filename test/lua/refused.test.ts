import { describe, expect, test } from "vitest";
import { serverRefused } from "../../src/scripts/generated.js";
import { forms, text, useBench } from "./bench.js";

const bench = await useBench();
const KEYS = { probe: "holdfast_probe:{job}" };

/** Every command that any script calls, except publishing ones, in the words of their script. */
const COMMANDS = (
  "set pexpire pttl exists type time get getrange incr incrby decrby hset hget hgetall hkeys hlen hexists hrandfield hdel " +
  "zadd zcard zscore zincrby zrange zrevrange zrem zremrangebyscore rpush lpop ltrim llen lindex lrange del"
).split(" ");

describe.each(forms(serverRefused))("server/refused, %s", (form) => {
  test("{}: everything is allowed, and nothing is left or touched", async () => {
    await bench.put({ other: text("x", 60_000) });
    expect(await bench.runner(serverRefused, form)(KEYS, {})).toEqual([]);
    await bench.expect({ other: text("x", 60_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test.each(COMMANDS)("{%s}: that is refused, and nothing else", async (command) => {
    await bench.put({});
    const limited = bench.runner(serverRefused, form, await bench.without(command));
    expect(await limited(KEYS, {})).toEqual([command]);
    const left = command === "del" ? [KEYS.probe] : [];
    expect(await bench.redis.keys("*")).toEqual(left);
    for (const key of left) expect(await bench.redis.pttl(key)).toBeGreaterThan(0);
  });

  test("{set}: without it nothing else is tried, which might make a key that stays", async () => {
    await bench.put({});
    const rules = ["reset", "on", "nopass", "+@all", "-set", "-del", "allkeys"];
    await bench.redis.acl("SETUSER", "guest", ...rules);
    const guest = bench.server.connect({ username: "guest", password: "any" });
    expect(await bench.runner(serverRefused, form, guest)(KEYS, {})).toEqual(["set"]);
    await bench.expect({});
  });

  test("{...}: several, in the order in which they are tried", async () => {
    await bench.put({});
    await bench.redis.acl(
      "SETUSER",
      "reader",
      "reset",
      "on",
      "nopass",
      "+@all",
      "-hset",
      "-get",
      "-zrem",
      "allkeys",
    );
    const limited = bench.runner(
      serverRefused,
      form,
      bench.server.connect({ username: "reader", password: "any" }),
    );
    expect(await limited(KEYS, {})).toEqual(["get", "hset", "zrem"]);
  });
});
