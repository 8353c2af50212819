import { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { type FaultProxy, named, startProxy, startRedis, until } from "./index.js";
import { forFile, forTest } from "./lasting.js";

let proxy: FaultProxy;

const server = await forFile(startRedis());
beforeEach(async () => {
  await server.call("FLUSHALL");
  proxy = forTest(await startProxy(server));
});

function connect(): Redis {
  const client = forTest(new Redis({ port: proxy.port, retryStrategy: () => 1 }));
  client.on("error", () => {});
  return client;
}

test("a command whose reply is cut is executed, and again when the client sends it again", async () => {
  const fault = proxy.cutReplyOf(named("HINCRBY"));
  expect(await connect().call("hincrby", "h", "f", 1)).toBe(2);
  await fault.done;
  expect(fault.hits).toBe(1);
  expect(proxy.commands.filter(({ command }) => command[0] === "HINCRBY")).toEqual([
    { connection: 1, command: ["HINCRBY", "h", "f", "1"], fate: "cut" },
    { connection: 2, command: ["HINCRBY", "h", "f", "1"], fate: "passed" },
  ]);
});

test("a dropped request is not executed, while what went before it is answered", async () => {
  const client = connect();
  const fault = proxy.dropRequest((command) => command[0] === "INCR" && command[1] === "b");
  const replies = await Promise.all(["a", "b", "c"].map((key) => client.call("incr", key)));
  expect(replies).toEqual([1, 1, 1]);
  expect(fault.hits).toBe(1);
  expect(proxy.count((command) => command[0] === "INCR" && command[1] === "a")).toBe(1);
  expect(proxy.count((command) => command[0] === "INCR" && command[1] === "b")).toBe(2);
});

test("a held request arrives when it is delivered, late", async () => {
  const held = proxy.holdRequest(named("INCR"));
  expect(await connect().call("incr", "n")).toBe(1); // sent again on a new connection
  await held.fired;
  expect(held.command).toEqual(["INCR", "n"]);
  proxy.cut();
  proxy.restore();
  expect(await server.call("GET", "n")).toBe("1");
  expect(await held.deliver()).toBe(":2\r\n");
  expect(await server.call("GET", "n")).toBe("2");
  await expect(held.deliver()).rejects.toThrow("already");
});

test("replies can be delayed until restore", async () => {
  const client = connect();
  await client.call("ping");
  proxy.delayReplies(60_000, named("INCR"));
  const order: unknown[] = [];
  await client.call("get", "n").then((reply) => order.push(reply)); // not delayed
  const both = ["incr", "get"].map((name) => client.call(name, "n").then((reply) => order.push(reply)));
  await until("the server has executed it", async () => (await server.call("GET", "n")) === "1");
  expect(order).toEqual([null]);
  proxy.restore();
  await Promise.all(both);
  expect(order).toEqual([null, 1, "1"]);
  proxy.delayReplies(30);
  const start = performance.now();
  await client.call("get", "n");
  expect(performance.now() - start).toBeGreaterThan(28);
});

test("a black hole swallows both ways and resets what lost bytes when it ends", async () => {
  const client = connect();
  await client.call("ping");
  const idle = connect();
  await idle.call("ping");
  const connection = proxy.commands.at(-1)?.connection;
  proxy.blackhole();
  const reply = client.call("incr", "n");
  await until("it is swallowed", () => proxy.commands.some(({ fate }) => fate === "swallowed"));
  const late = connect();
  await until("a new client is connected all the same", () => late.status === "connect");
  expect(await server.call("EXISTS", "n")).toBe(0);
  proxy.restore();
  expect(await reply).toBe(1);
  expect(await late.call("incr", "n")).toBe(2);
  proxy.clear();
  await idle.call("ping");
  expect(proxy.commands).toMatchObject([{ connection, command: ["PING"] }]); // it was not reset
});

test("a stalled network loses nothing", async () => {
  const client = connect();
  await client.call("ping");
  proxy.stall();
  const reply = client.call("incr", "n");
  const late = connect();
  await until("a new client is connected", () => late.status === "connect");
  expect(await server.call("EXISTS", "n")).toBe(0);
  proxy.restore();
  expect(await reply).toBe(1);
  expect(await late.call("incr", "n")).toBe(2);
  expect(proxy.count(named("INCR"))).toBe(2);
});
