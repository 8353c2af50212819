import { beforeEach, expect, test } from "vitest";
import { anyCommand, type FaultProxy, named, startProxy, startRedis } from "./index.js";
import { forFile, forTest } from "./lasting.js";

let proxy: FaultProxy;

const server = await forFile(startRedis());
beforeEach(async () => {
  await server.call("FLUSHALL");
  proxy = forTest(await startProxy(server));
});

test("frames survive every split, and pipelines and large values come through", async () => {
  const client = proxy.connect();
  const seen: string[] = [];
  const off = proxy.onCommand(({ command }) => seen.push(command[0] ?? ""));
  const large = "ä\r\n".repeat(200_000);
  const replies = await client
    .pipeline()
    .set("k", large)
    .get("k")
    .lrange("none", 0, -1)
    .hgetall("none")
    .exec();
  expect(replies?.map(([, reply]) => reply)).toEqual(["OK", large, [], {}]);
  expect(seen.slice(-4)).toEqual(["SET", "GET", "LRANGE", "HGETALL"]);
  off();
  const many = await Promise.all(Array.from({ length: 5_000 }, () => client.incr("n")));
  expect(many.at(-1)).toBe(5_000);
  expect([seen.includes("INCR"), proxy.count(named("incr"))]).toEqual([false, 5_000]);
  expect(proxy.count()).toBe(proxy.count(anyCommand));
});
