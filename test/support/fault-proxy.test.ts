import { Redis } from "ioredis";
import { Redis as Redis5 } from "ioredis5";
import { beforeEach, describe, expect, test } from "vitest";
import { type FaultProxy, named, startProxy, startRedis, until } from "./index.js";
import { forFile, forTest } from "./lasting.js";

let proxy: FaultProxy;

const server = await forFile(startRedis());
beforeEach(async () => {
  await server.call("FLUSHALL");
  proxy = forTest(await startProxy(server));
});

/** What both ioredis versions have in common, as far as these tests use it. */
interface Client {
  readonly status: string;
  call(command: string, ...args: (string | number)[]): Promise<unknown>;
  subscribe(channel: string): Promise<unknown>;
  on(event: string, listener: (...args: string[]) => void): unknown;
  disconnect(): void;
}

/** All other options have ioredis' defaults. */
const retryStrategy = (): number => 1;

const versions: [name: string, create: (port: number) => Client][] = [
  ["ioredis 6", (port) => new Redis({ port, retryStrategy })],
  ["ioredis 6 on RESP2", (port) => new Redis({ port, retryStrategy, protocol: 2 })],
  ["ioredis 5", (port) => new Redis5({ port, retryStrategy })],
];

describe.each(versions)("%s", (_, create) => {
  function connect(): Client {
    const client = forTest(create(proxy.port));
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

  test("a reply can be cut more than once, and a fault be taken back", async () => {
    const fault = proxy.cutReplyOf(named("INCR"), 2);
    expect(await connect().call("incr", "n")).toBe(3);
    await fault.done;
    const cancelled = proxy.cutReplyOf(named("INCR"));
    cancelled.cancel();
    expect(await connect().call("incr", "n")).toBe(4);
    expect(cancelled.hits).toBe(0);
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

  test("the confirmation of a subscription can be delayed, and messages go through behind it", async () => {
    const subscriber = connect();
    const heard: string[] = [];
    subscriber.on("message", (_channel, message) => heard.push(message));
    await subscriber.call("ping");
    proxy.delayReplies(60_000, named("SUBSCRIBE"));
    let confirmed = false;
    const subscribed = subscriber.subscribe("news").then(() => (confirmed = true));
    await until(
      "the server has subscribed it",
      async () => (await server.call("PUBLISH", "news", "one")) === 1,
    );
    expect([confirmed, heard]).toEqual([false, []]);
    proxy.restore();
    await subscribed;
    await server.call("PUBLISH", "news", "two");
    await until("both messages are heard", () => heard.length === 2);
    expect(heard).toEqual(["one", "two"]);
  });

  test("a lost confirmation of a subscription makes the client subscribe again", async () => {
    const fault = proxy.cutReplyOf(named("SUBSCRIBE"));
    const subscriber = connect();
    await subscriber.subscribe("news");
    expect(fault.hits).toBe(1);
    expect(proxy.count(named("SUBSCRIBE"))).toBe(2);
    // Commands and messages of the same connection are told apart.
    await subscriber.call("ping");
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

  test("refusal lasts until restore, a cut is over at once", async () => {
    const client = connect();
    await client.call("ping");
    let closings = 0;
    client.on("close", () => closings++);
    proxy.refuse();
    await until("the client was turned away again", () => closings > 2);
    expect(proxy.openConnections).toBe(0);
    const reply = client.call("incr", "n");
    proxy.restore();
    expect(await reply).toBe(1);
    proxy.cut();
    expect(await client.call("incr", "n")).toBe(2);
  });
});
