/** Web Locks between processes, at the end of a client, and while Redis is away. */
import { describe, expect, test } from "vitest";
import { createLockManager } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { bundledWorker } from "../faults/build-worker.js";
import { STEADY, startRedis, startWorker, UNHURRIED, until } from "../support/index.js";
import { failureOf, hold, never, webLocksScene } from "./web-locks-scene.js";

const scene = webLocksScene();
const bundle = bundledWorker("../entries/web-locks-worker.ts");

async function startOther() {
  const worker = await startWorker(bundle());
  await worker.request("connect", { url: scene.server.url });
  return worker;
}

describe("two processes", () => {
  test("exclude each other", async () => {
    await using one = await startOther();
    await using two = await startOther();
    const work = { name: scene.name(), key: "counted", times: 150 };
    await scene.server.call("SET", work.key, 0);
    await Promise.all([one.request("count", work), two.request("count", work)]);
    expect(Number(await scene.server.call("GET", work.key))).toBe(300);
  });

  test("shared locks are held by both together, and see nothing of an exclusive one", async () => {
    await using one = await startOther();
    await using two = await startOther();
    const name = scene.name();
    const manager = scene.manager();
    const first = await hold(manager, name, { mode: "shared" });
    const keys = ["one", "two"];
    const look = { name, keys, times: 60 };
    expect(await one.request("compare", { ...look, times: 1 })).toBe(0);
    await first.release();
    const looks = [one.request<number>("compare", look), two.request<number>("compare", look)];
    const redis = scene.server.connect();
    let isDone = false;
    const writing = (async () => {
      for (let n = 1; !isDone; n++) {
        await manager.request(name, async () => {
          await redis.set("one", n);
          await new Promise((resolve) => setImmediate(resolve));
          await redis.set("two", n);
        });
      }
    })();
    expect(await Promise.all(looks)).toEqual([0, 0]);
    isDone = true;
    await writing;
  });

  test("what a process held that died is granted to the next", async () => {
    await using one = await startWorker(bundle());
    await one.request("connect", { url: scene.server.url, watchdogTimeout: 3_000 });
    const name = scene.name();
    await one.request("hold", name);
    const waiting = scene.manager().request(name, () => "mine");
    await one.kill();
    expect(await waiting).toBe("mine");
  });
});

describe("a client that closes", () => {
  test("ends what waits with CLIENT_CLOSED, and what is held with AbortError; nothing is left", async () => {
    const client = scene.client();
    const manager = createLockManager(client);
    const [a, b] = [scene.name(), scene.name()];
    const first = await hold(manager, a);
    const elsewhere = await hold(scene.manager(), b);
    const pending = [
      manager.request(a, () => never),
      manager.request(a, () => never),
      manager.request(a, { mode: "shared" }, () => never),
      manager.request(b, { mode: "shared" }, () => never),
      manager.request(b, () => never),
    ].map((request, n) => failure(request).then((error) => ({ error, name: n < 3 ? a : b })));
    await manager.query();
    await client.close({ timeout: 0 });
    for (const { error, name } of await Promise.all(pending)) {
      expect(error).toMatchObject({ code: "CLIENT_CLOSED", lockName: name });
    }
    const lost = await failure(first.done);
    expect(lost).toMatchObject({ name: "AbortError", cause: { code: "LOCK_LOST", reason: "closed" } });
    expect(await failure(manager.request(a, () => never))).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await failure(manager.request(a, { steal: true }, () => never))).toMatchObject({
      code: "CLIENT_CLOSED",
    });
    expect(await failure(manager.query())).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await scene.manager().request(a, { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    await elsewhere.release();
  });

  test("waits for what is held to end by itself, and for no lock of its own", async () => {
    const client = scene.client();
    const manager = createLockManager(client);
    const looking = scene.client();
    const first = await hold(manager, scene.name());
    await until("it listens", () => looking.inspect(`-web-locks:${client.id}`));
    const closed = client.close({ timeout: 60_000 });
    expect(await first.release("in peace")).toBe("in peace");
    await closed;
    expect(await looking.inspect(`-web-locks:${client.id}`)).toBeNull();
  });
});

describe("while Redis is away", () => {
  test("waiters go on waiting, new requests reject, and a held lock is lost at its deadline", async () => {
    await using server = await startRedis();
    const connect = async (options: object): Promise<LockClient> => {
      const { LockClient } = await import("../../src/index.js");
      return new LockClient(server.connect(), options);
    };
    const holding = await connect({ watchdogTimeout: STEADY, commandTimeout: 3_000 });
    const client = await connect({ watchdogTimeout: STEADY, commandTimeout: 3_000 });
    const manager = createLockManager(client);
    const [a, b] = ["a", "b"];
    const first = await hold(createLockManager(holding), a);
    const order: string[] = [];
    const waiting = [
      manager.request(a, () => order.push("exclusive")),
      manager.request(a, { mode: "shared" }, () => order.push("shared")),
    ];
    expect((await manager.query()).pending).toHaveLength(2);
    server.pause();
    expect(await failure(manager.request(b, () => never))).toMatchObject({ code: "UNAVAILABLE" });
    expect(await failure(manager.request(b, { ifAvailable: true }, () => never))).toMatchObject({
      code: "UNAVAILABLE",
    });
    expect(await failure(manager.request(b, { steal: true }, () => never))).toMatchObject({
      code: "UNAVAILABLE",
    });
    const lost = await failure(first.done);
    expect(lost).toMatchObject({ name: "AbortError", cause: { code: "LOCK_LOST", reason: "unreachable" } });
    expect(order).toEqual([]);
    server.resume();
    await Promise.all(waiting);
    expect(order).toEqual(["exclusive", "shared"]);
    await until("what was given up has left nothing", () => manager.request(b, () => true));
    await holding.close({ timeout: 0 });
    await client.close({ timeout: 0 });
  });
});

test("a name that holds other data is refused, and the data stays", async () => {
  const manager = scene.manager();
  const name = scene.name();
  await scene.server.call("HSET", name, "field", "value");
  for (const options of [{}, { mode: "shared" }, { ifAvailable: true }, { steal: true }] as const) {
    expect(await failure(manager.request(name, options, () => never))).toMatchObject({ code: "WRONG_DATA" });
  }
  expect(await scene.server.call("HGETALL", name)).toEqual(["field", "value"]);
  expect(await failureOf(manager.request(name, () => never))).toBe("WrongDataError");
});

test("a free lock is one round trip to take and one to give back", async () => {
  const client = scene.client(UNHURRIED);
  const manager = createLockManager(client);
  await manager.request("warm-up", () => {});
  const commandsOf = async (work: () => Promise<unknown>) => {
    const before = client.stats().commands;
    await work();
    return client.stats().commands - before;
  };
  expect(await commandsOf(() => manager.request(scene.name(), () => {}))).toBe(2);
  expect(await commandsOf(() => manager.request(scene.name(), { steal: true }, () => {}))).toBe(2);
  const name = scene.name();
  const first = await hold(manager, name);
  const refused = () => manager.request(name, { ifAvailable: true }, () => {});
  expect(await commandsOf(refused)).toBe(0);
  await first.release();
});
