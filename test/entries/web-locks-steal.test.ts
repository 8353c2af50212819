/** `steal`: the holder loses the lock, and the stealing request goes before all waiting ones. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { createLockManager, type LockManager } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { bundledWorker } from "../faults/build-worker.js";
import { recordWarnings, startRedis, startWorker, until } from "../support/index.js";
import { failureOf, hold, never, webLocksScene } from "./web-locks-scene.js";

const scene = webLocksScene();
const bundle = bundledWorker("../entries/web-locks-worker.ts");
const steal = true;

/** The lock by which a client with long holds is told of a steal. */
const noticeOf = ({ id }: LockClient) => `-web-locks:${id}`;

describe("in one process", () => {
  test("a lock that is free is granted", async () => {
    const manager = scene.manager();
    expect(await manager.request(scene.name(), { steal }, (lock) => lock?.mode)).toBe("exclusive");
  });

  test.each(["exclusive", "shared"] as const)(
    "a lock that is held %s is taken, and its requests reject",
    async (mode) => {
      const manager = scene.manager();
      const name = scene.name();
      const holders = [await hold(manager, name, { mode })];
      if (mode === "shared") holders.push(await hold(manager, name, { mode }));
      const held = await manager.request(name, { steal }, async () => (await manager.query()).held);
      expect(held).toHaveLength(1);
      for (const { done, release } of holders) {
        const error = await failure(done);
        expect(error).toBeInstanceOf(DOMException);
        expect(error).toMatchObject({ name: "AbortError", cause: { code: "LOCK_LOST", reason: "forced" } });
        // The stolen request ignores the result of its callback.
        await failure(release("late"));
      }
      expect(await manager.request(name, { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    },
  );

  test("it goes before those that wait, which keep their order", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name);
    const order: string[] = [];
    const waiting = [
      manager.request(name, () => order.push("exclusive")),
      manager.request(name, { mode: "shared" }, () => order.push("shared")),
    ];
    expect((await manager.query()).pending).toHaveLength(2);
    await manager.request(name, { steal }, () => order.push("stolen"));
    await Promise.all(waiting);
    expect(order).toEqual(["stolen", "exclusive", "shared"]);
    expect(await failureOf(first.done)).toBe("AbortError");
  });

  test("what was stolen can be stolen, also at once", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const called: number[] = [];
    const requests = [1, 2, 3].map((n) =>
      manager.request(name, { steal }, () => {
        called.push(n);
        return n < 3 ? never : "the last";
      }),
    );
    const [one, two, three] = await Promise.allSettled(requests);
    for (const stolen of [one, two]) {
      expect(stolen).toMatchObject({ status: "rejected", reason: { name: "AbortError" } });
    }
    expect(three).toEqual({ status: "fulfilled", value: "the last" });
    expect(called).toEqual([1, 2, 3]);
  });

  test("a request of the same moment that has not called back yet is granted and stolen from", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = manager.request(name, async () => {
      await never;
    });
    const failed = failureOf(first);
    expect(await manager.request(name, { steal }, () => "stolen")).toBe("stolen");
    expect(await failed).toBe("AbortError");
    expect((await manager.query()).held).toEqual([]);
  });

  test("a callback that fails after the loss ends nothing", async () => {
    const manager = scene.manager();
    const name = scene.name();
    let fail: (error: Error) => void = () => {};
    const request = manager.request(name, () => new Promise((_resolve, reject) => (fail = reject)));
    const failed = failureOf(request);
    await until("it is held", async () => (await manager.query()).held.length === 1);
    await manager.request(name, { steal }, () => {});
    fail(new Error("too late"));
    expect(await failed).toBe("AbortError");
    // The stolen request had nothing to give back, so the next holder keeps its lock.
    const next = await hold(manager, name);
    expect(await scene.manager().request(name, { ifAvailable: true }, (lock) => lock)).toBeNull();
    await next.release();
  });

  test("another client of the process is told at once", async () => {
    const name = scene.name();
    const first = await hold(scene.manager(), name);
    expect(await scene.manager().request(name, { steal }, () => "stolen")).toBe("stolen");
    expect(await failureOf(first.done)).toBe("AbortError");
  });
});

describe("from another process", () => {
  async function startOther(watchdogTimeout: number) {
    const worker = await startWorker(bundle());
    await worker.request("connect", { url: scene.server.url, watchdogTimeout });
    return worker;
  }

  test("it learns of it by message, long before its next renewal", async () => {
    await using worker = await startOther(300_000);
    const name = scene.name();
    const lost = worker.next<{ name: string; reason: string }>("rejected");
    const id = await worker.request<string>("hold", name);
    const mine = scene.client();
    await until("it listens", () => mine.getLock(`-web-locks:${id}`).isLocked());
    const stolen = await hold(createLockManager(mine), name, { steal });
    // "taken": the lock is held by another, or was already free again.
    expect(await lost).toEqual({ name: "AbortError", reason: "taken" });
    // The process listens again.
    const again = worker.next<{ name: string }>("rejected");
    const other = scene.name();
    await worker.request("hold", other);
    await until("it listens", () => mine.getLock(`-web-locks:${id}`).isLocked());
    await createLockManager(mine).request(other, { steal }, () => {});
    expect((await again).name).toBe("AbortError");
    await stolen.release();
    await until("it has nothing more", async () => !(await mine.getLock(`-web-locks:${id}`).isLocked()));
  });

  test("a lock that is stolen before its process listens is missed soon after", async () => {
    await using worker = await startOther(300_000);
    const name = scene.name();
    const lost = worker.next<{ name: string }>("rejected");
    await worker.request<string>("hold", name);
    await scene.manager().request(name, { steal }, () => {});
    expect((await lost).name).toBe("AbortError");
  });

  test("without a message it learns of it with its next renewal", async () => {
    await using worker = await startOther(4_500);
    const name = scene.name();
    const lost = worker.next<{ name: string }>("rejected");
    const id = await worker.request<string>("hold", name);
    const mine = scene.client();
    await until("it listens", () => mine.getLock(`-web-locks:${id}`).isLocked());
    const lock = mine.getReadWriteLock(name);
    expect(await lock.writeLock().forceUnlock()).toBe(true);
    expect((await lost).name).toBe("AbortError");
  });

  test("it goes before those who wait there, who are granted it when it is given back", async () => {
    await using worker = await startOther(30_000);
    const name = scene.name();
    const manager = scene.manager();
    await worker.request<string>("hold", name);
    const waiting = worker.request<string>("request", name);
    await until("it waits", () => worker.request<boolean>("isPending", name));
    const order: string[] = [];
    const stolen = await hold(manager, name, { steal });
    void waiting.then(() => order.push("theirs"));
    order.push("mine");
    await stolen.release();
    await waiting;
    expect(order).toEqual(["mine", "theirs"]);
  });

  test("two processes that steal from each other all the time: both go on, and the lock is free in the end", async () => {
    await using worker = await startOther(30_000);
    const name = scene.name();
    const manager: LockManager = scene.manager();
    const theirs = worker.request<number>("stealOften", { name, times: 50 });
    let stolen = 0;
    for (let i = 0; i < 50; i++) {
      const end = manager.request(name, { steal }, () => new Promise((resolve) => setImmediate(resolve)));
      await end.catch((error: unknown) => {
        expect(error).toMatchObject({ name: "AbortError" });
        stolen++;
      });
    }
    expect(stolen).toBeLessThanOrEqual(50);
    expect(await theirs).toBe(50);
    expect(await manager.request(name, { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
  });
});

test("a process is told again and again, without more listeners each time", async () => {
  const [victim, thief] = [scene.client(), scene.client()];
  const [manager, other] = [createLockManager(victim), createLockManager(thief)];
  const warnings = recordWarnings();
  const holder = async () => (await thief.inspect(noticeOf(victim)))?.holders[0]?.ownerId;
  const kept = await hold(manager, scene.name());
  let last = await until("it listens", holder);
  for (let i = 0; i < 15; i++) {
    const name = scene.name();
    const { done } = await hold(manager, name);
    await other.request(name, { steal }, () => {});
    expect(await failureOf(done)).toBe("AbortError");
    last = await until("it listens again", async () => {
      const next = await holder();
      return next === last ? undefined : next;
    });
  }
  await kept.release();
  await until("it does not any more", async () => (await holder()) === undefined);
  expect(warnings).toEqual([]);
});

test("a process listens outside of all requests, that which made the manager and those that hold locks [B260]", async () => {
  const store = new AsyncLocalStorage<string>();
  const client = scene.client();
  const getLock = client.getLock.bind(client);
  const seen: unknown[] = [];
  client.getLock = (name) => {
    if (name === noticeOf(client)) seen.push(store.getStore());
    return getLock(name);
  };
  const manager = store.run("makes the manager", () => createLockManager(client));
  const { release } = await store.run("holds", () => hold(manager, scene.name()));
  await until("it holds its lock for notices, and waits for it", () => seen.length === 2);
  expect(seen).toEqual([undefined, undefined]);
  await release();
});

test("who had no answer of enough replicas listens as soon as there is one [B103]", async () => {
  await using replica = await startRedis({ replicaOf: scene.server });
  const client = scene.client({ replicas: 1 });
  const looking = scene.client();
  const getLock = client.getLock.bind(client);
  let asked = 0;
  client.getLock = (name) => {
    if (name === noticeOf(client) && asked++ === 0) replica.pause();
    return getLock(name);
  };
  const name = scene.name();
  const { done } = await hold(createLockManager(client), name);
  await until("it asks again", () => asked > 1);
  replica.resume();
  await until("it listens", () => looking.inspect(noticeOf(client)));
  await createLockManager(looking).request(name, { steal }, () => {});
  expect(await failureOf(done)).toBe("AbortError");
});

test("a lock of another kind that has the name is taken, too", async () => {
  const client = scene.client();
  const name = scene.name();
  const other = await client.getLock(name).lock();
  expect(await createLockManager(client).request(name, { steal }, (lock) => lock?.name)).toBe(name);
  expect(other.isHeld).toBe(false);
});

test("a manager without a lasting hold keeps no lock for notices", async () => {
  const client = scene.client();
  const manager = createLockManager(client);
  const looking = scene.client();
  const name = scene.name();
  for (let i = 0; i < 50; i++) await manager.request(name, () => {});
  expect(await looking.inspect(noticeOf(client))).toBeNull();
  const first = await hold(manager, name);
  await until("it listens", () => looking.inspect(noticeOf(client)));
  const second = await hold(manager, scene.name());
  await first.release();
  expect(await looking.inspect(noticeOf(client))).not.toBeNull();
  await second.release();
  await until("it does not any more", async () => (await looking.inspect(noticeOf(client))) === null);
});
