import { beforeEach, expect, test } from "vitest";
import { anyCommand, type FaultProxy, named, startProxy, startRedis, until } from "./index.js";
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

test("the server's end reaches the client, and a held request then fails", async () => {
  const own = await startRedis();
  const through = await startProxy(own);
  try {
    const client = through.connect();
    const held = through.holdRequest(named("INCR"));
    client.incr("n").catch(() => {});
    await held.fired;
    await client.ping();
    await own.kill();
    await until("the client has noticed", () => client.status === "reconnecting");
    await expect(held.deliver()).rejects.toThrow("closed the connection");
  } finally {
    await through.stop();
    await own.stop();
  }
});

test("a replica can be cut off its master", async () => {
  await using replica = await startRedis({ replicaOf: proxy });
  await server.call("SET", "k", 1);
  await until("the replica has the key", async () => (await replica.call("GET", "k")) === "1");
  proxy.stall();
  await server.call("SET", "k", 2);
  expect(await replica.call("GET", "k")).toBe("1");
  proxy.restore();
  await until("the replica has caught up", async () => (await replica.call("GET", "k")) === "2");
});
