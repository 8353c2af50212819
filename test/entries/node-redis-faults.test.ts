/** Faults between node-redis and one server: replies and connections that are lost. */
import { once } from "node:events";
import { createRequire } from "node:module";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { fromNodeRedis } from "../../src/entries/node-redis.js";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import type { SubscriberConnection } from "../../src/redis/connection.js";
import { countOf, failure, untilWaiting } from "../contract/helpers.js";
import { failOnUnhandledRejections } from "../faults/harness.js";
import {
  type FaultProxy,
  forFile,
  freePort,
  type NodeRedis,
  named,
  nodeRedis,
  releasePort,
  startProxy,
  startRedis,
  type TestClient,
  UNHURRIED,
  until,
} from "../support/index.js";
import { Clients, VERSIONS } from "./node-redis-support.js";

const clients = new Clients();
let names = 0;

failOnUnhandledRejections();
const server = await forFile(startRedis());

/** The connection as the core sees it. */
const connectionOf = (user: TestClient) => fromNodeRedis(user) as unknown as SubscriberConnection;

/** A client of the library behind a proxy of its own. */
interface Bed extends AsyncDisposable {
  readonly proxy: FaultProxy;
  readonly user: TestClient;
  readonly locks: LockClient;
  readonly name: string;
}

/** Where version 6 keeps an account of its clients. */
interface Accounts {
  readonly ClientRegistry: { init(): void; readonly instance: { getAll(): Iterable<unknown> } };
}

/** A server that takes sockets and says nothing. */
async function listen(): Promise<AsyncDisposable & { server: Server; address: { port: number } }> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const address = { host: "127.0.0.1", port };
  return { server, address, [Symbol.asyncDispose]: async () => void server.close() };
}

async function bedOf(redis: NodeRedis, options: LockClientOptions = UNHURRIED): Promise<Bed> {
  const proxy = await startProxy(server);
  const user = clients.add(redis.client({ socket: { host: proxy.host, port: proxy.port } }));
  const locks = new LockClient(fromNodeRedis(user), options);
  await until("it has asked the server", () => locks.ready().then(() => true));
  const end = async (): Promise<void> => {
    proxy.restore();
    await locks.close({ timeout: 0 });
    user.destroy();
    await proxy.stop();
  };
  return { proxy, user, locks, name: `faults-${++names}.`, [Symbol.asyncDispose]: end };
}

describe.each(VERSIONS)("%s", (_, redis) => {
  const bed = (options?: LockClientOptions) => bedOf(redis, options);

  test("each command of a lock's life whose reply is lost counts once, and no loss is told", async () => {
    await using it = await bed();
    const lock = it.locks.getLock(it.name);
    const losingReply = async (call: () => Promise<unknown>) => {
      const { done } = it.proxy.cutReplyOf((command) => command.includes(it.name));
      await Promise.all([call(), done]);
    };
    await it.locks.scope(async () => {
      await losingReply(() => lock.lock());
      expect(await lock.getHoldCount()).toBe(1);
      await losingReply(() => lock.lock());
      expect(await countOf(server, it.name)).toBe(2);
      await losingReply(async () => lock.currentHold()?.extend(60_000));
      await losingReply(() => lock.unlock());
      await losingReply(() => lock.unlock());
    });
    expect(await lock.isLocked()).toBe(false);
  });

  test("an acquire that gets no answer in time rejects UNAVAILABLE, and what it granted is given back", async () => {
    await using it = await bed({ commandTimeout: 1_000 });
    const lock = it.locks.getLock(it.name);
    it.proxy.blackhole();
    expect(await failure(lock.lock())).toMatchObject({ code: "UNAVAILABLE", lockName: it.name });
    it.proxy.restore();
    // A call whose reply was lost may still have to be undone.
    await until("it can be taken", () => lock.run(() => true));
    expect(await countOf(server, it.name)).toBe(0);
  });

  test.each([
    ["a channel", "subscribe", "unsubscribe"],
    ["a sharded channel", "ssubscribe", "sunsubscribe"],
  ] as const)(
    "%s that is wanted again while the end of its subscription is on its way is heard [B81]",
    async (__, begin, end) => {
      await using it = await bed();
      const subscriber = connectionOf(it.user).duplicate();
      await subscriber.connect();
      const heard = once(subscriber as never, begin === "subscribe" ? "message" : "smessage");
      it.proxy.delayReplies(300, named(end.toUpperCase()));
      const first = subscriber[begin](it.name);
      const over = subscriber[end](it.name);
      await first;
      await subscriber[begin](it.name);
      await over;
      await server.call(begin === "subscribe" ? "PUBLISH" : "SPUBLISH", it.name, "1");
      expect(await heard).toEqual([it.name]);
      subscriber.disconnect();
    },
  );

  test("a socket that is taken is no connection before the server has answered [B61]", async () => {
    await using deaf = await listen();
    // These options send nothing else over a new socket.
    const user = clients.add(redis.client({ socket: deaf.address, RESP: 2, disableClientInfo: true }));
    const locks = new LockClient(fromNodeRedis(user), { commandTimeout: 500 });
    const why = { message: expect.stringContaining("no connection to") };
    expect(await failure(locks.getLock("a").lock())).toMatchObject({ code: "UNAVAILABLE", cause: why });
    await locks.close({ timeout: 0 });
    user.destroy();
  });

  test("an answer that takes longer than the socketTimeout of the user's client costs no connection [B194]", async () => {
    const { host, port } = server;
    const user = clients.add(redis.client({ socket: { host, port, socketTimeout: 100 } }));
    const own = connectionOf(user).duplicate();
    expect(await own.call("BLPOP", "nothing comes", "0.5")).toBe(null);
    own.disconnect();
  });

  test("a connection that ends on its way stays ended, whatever waited for it, and leaves no socket open [B164] [B165]", async () => {
    for (const isTaken of [false, true]) {
      await using deaf = await listen();
      const sockets = new Set<Socket>();
      const note = (socket: Socket) => sockets.add(socket.resume().on("close", () => sockets.delete(socket)));
      deaf.server.on("connection", note);
      const user = clients.add(redis.client({ socket: deaf.address }));
      const own = connectionOf(user).duplicate();
      const waiting = isTaken ? [own.subscribe("a"), own.unsubscribe("a")] : [own.connect()];
      const ended = Promise.all(waiting.map(failure));
      // The socket is opened in this turn of the event loop, and connects in a later one.
      if (isTaken) await until("the user's and the library's are taken", () => sockets.size === 2);
      else for (let i = 0; i < 50; i++) await null;
      own.disconnect();
      for (const error of await ended) expect(error).toMatchObject({ message: "disconnected" });
      expect(own.status).toBe("end");
      user.destroy();
      await until("all sockets that were opened are closed", () => sockets.size === 0);
    }
  });

  test("a client that its user has closed before it was ever connected stays closed [B167]", async () => {
    const port = await freePort();
    const user = clients.add(redis.client({ socket: { host: "127.0.0.1", port } }));
    const locks = new LockClient(fromNodeRedis(user), { commandTimeout: 500 });
    expect(await failure(locks.getLock("a").lock())).toMatchObject({ code: "UNAVAILABLE" });
    expect(user.isOpen).toBe(true);
    user.destroy();
    expect(await failure(locks.getLock("b").lock())).toMatchObject({ code: "UNAVAILABLE" });
    await locks.close();
    expect(user.isOpen).toBe(false);
    releasePort(port);
  });
});

describe("redis 6 through an outage", () => {
  const bed = (options?: LockClientOptions) => bedOf(nodeRedis(6), options);

  test("a waiter whose subscriber was killed is woken by the next release", async () => {
    await using it = await bed({ ...UNHURRIED, pollCap: 600_000 });
    await using other = await bed();
    for (let round = 0; round < 3; round++) {
      const hold = await other.locks.getLock(it.name).lock();
      const { done } = await untilWaiting(it.locks, () => it.locks.getLock(it.name).lock());
      await until("it listens", async () => it.proxy.count(named("SUBSCRIBE")) > round);
      await server.call("CLIENT", "KILL", "TYPE", "pubsub");
      await hold.unlock();
      await (await done).unlock();
      expect(await countOf(server, it.name)).toBe(0);
    }
  });
});

test("version 6 keeps no account of clients whose attempts to connect have failed", async () => {
  const load = createRequire(import.meta.url);
  const { ClientRegistry } = load("@redis/client/dist/lib/opentelemetry/client-registry.js") as Accounts;
  // Only with OpenTelemetry does it keep one at all.
  ClientRegistry.init();
  const registered = () => [...ClientRegistry.instance.getAll()].length;
  const port = await freePort();
  const user = clients.add(nodeRedis(6).client({ socket: { host: "127.0.0.1", port } }));
  const connection = connectionOf(user).duplicate();
  let attempts = 0;
  connection.on("error", () => attempts++);
  connection.connect().catch(() => {});
  await until("three attempts have failed", () => attempts >= 3);
  connection.disconnect();
  await until("only the user's client is left", () => registered() === 1);
  releasePort(port);
});
