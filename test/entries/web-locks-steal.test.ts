/** `steal`: the holder loses the lock, and the stealing request goes before all waiting ones. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { createLockManager } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { bundledWorker } from "../faults/build-worker.js";
import { recordWarnings, startRedis, startWorker, until } from "../support/index.js";
import { failureOf, hold, never, newName, turn, webLocksScene } from "./web-locks-scene.js";

const { party, server } = await webLocksScene();
const bundle = bundledWorker("../entries/web-locks-worker.ts");
const steal = true;

/** The lock by which a client with long holds is told of a steal. */
const noticesOf = (id: string) => `-web-locks:${id}`;

/** Calls `asked` with the client's attempts to take its lock for notices, counted from 1. */
function watchNotices(client: LockClient, asked: (times: number) => void): void {
  const getLock = client.getLock.bind(client);
  let times = 0;
  client.getLock = (name) => {
    if (name === noticesOf(client.id)) asked(++times);
    return getLock(name);
  };
}

describe("in one process", () => {
  test.each(["e", "s", "ss", ""])(
    "a lock with the holders '%s' is taken, their requests reject, and it is free afterwards",
    async (held) => {
      const { isFree, hold, modes, request } = party();
      const holders = await Promise.all(
        [...held].map((mode) => hold({ mode: mode === "s" ? "shared" : "exclusive" })),
      );
      expect(await request({ steal }, modes)).toEqual(["e", ""]);
      for (const { done, release } of holders) {
        const error = await failure(done);
        expect(error).toBeInstanceOf(DOMException);
        expect(error).toMatchObject({ name: "AbortError", cause: { code: "LOCK_LOST", reason: "forced" } });
        // The stolen request ignores the result of its callback.
        await failure(release("late"));
      }
      expect(await isFree()).toBe(true);
    },
  );

  test("it goes before those that wait, which keep their order", async () => {
    const { hold, modes, request } = party();
    const first = await hold();
    const order: string[] = [];
    const waiting = [
      request({}, () => order.push("exclusive")),
      request({ mode: "shared" }, () => order.push("shared")),
    ];
    expect(await modes()).toEqual(["e", "es"]);
    await request({ steal }, () => order.push("stolen"));
    await Promise.all(waiting);
    expect(order).toEqual(["stolen", "exclusive", "shared"]);
    expect(await failureOf(first.done)).toBe("AbortError");
  });

  test("what was stolen can be stolen at once, and so can a request that has not called back yet", async () => {
    const { modes, request } = party();
    const called: number[] = [];
    const requests = [0, 1, 2, 3].map((n) =>
      request({ steal: n > 0 }, () => {
        called.push(n);
        return n < 3 ? never : "the last";
      }),
    );
    const ends = await Promise.allSettled(requests);
    for (const stolen of ends.slice(0, 3))
      expect(stolen).toMatchObject({ status: "rejected", reason: { name: "AbortError" } });
    expect(ends[3]).toEqual({ status: "fulfilled", value: "the last" });
    expect(called).toEqual([0, 1, 2, 3]);
    expect(await modes()).toEqual(["", ""]);
  });

  test("a callback that fails after the loss ends nothing", async () => {
    const { hold, modes, name, request } = party();
    let fail: (error: Error) => void = () => {};
    const failed = failureOf(request({}, () => new Promise((_resolve, reject) => (fail = reject))));
    await until("it is held", async () => (await modes())[0] === "e");
    await request({ steal }, () => {});
    fail(new Error("too late"));
    expect(await failed).toBe("AbortError");
    // The stolen request had nothing to give back, so the next holder keeps its lock.
    const next = await hold();
    expect(await party(name).isFree()).toBe(false);
    await next.release();
  });

  test("a lock of another kind that has the name is taken, too", async () => {
    const { client, name, request } = party();
    const other = await client.getLock(name).lock();
    expect(await request({ steal }, (lock) => lock?.name)).toBe(name);
    expect(other.isHeld).toBe(false);
  });
});

describe("from another process", () => {
  /** A process that holds the lock with this name. */
  async function startOther(name: string, watchdogTimeout: number) {
    const worker = await startWorker(bundle());
    const id = await worker.request<string>("connect", { url: server.url, watchdogTimeout });
    const { client } = party();
    const isListening = () => client.getLock(noticesOf(id)).isLocked();
    const lost = worker.next<{ name: string; reason: string }>("rejected");
    lost.catch(() => {}); // the end of the worker
    await worker.request("hold", name);
    return { worker, isListening, lost, [Symbol.asyncDispose]: () => worker[Symbol.asyncDispose]() };
  }

  test("it learns of it by message, long before its next renewal, again and again", async () => {
    const { hold, name } = party();
    await using other = await startOther(name, 300_000);
    await until("it listens", other.isListening);
    const stolen = await hold({ steal });
    // "taken": the lock is held by another, or was already free again.
    expect(await other.lost).toEqual({ name: "AbortError", reason: "taken" });
    const again = other.worker.next<{ name: string }>("rejected");
    const next = party();
    await other.worker.request("hold", next.name);
    await until("it listens", other.isListening);
    await next.request({ steal }, () => {});
    expect((await again).name).toBe("AbortError");
    await stolen.release();
    await until("it has nothing more", async () => !(await other.isListening()));
  });

  test("a lock that is stolen before its process listens is missed soon after", async () => {
    const { name, request } = party();
    await using other = await startOther(name, 300_000);
    await request({ steal }, () => {});
    expect((await other.lost).name).toBe("AbortError");
  });

  test("without a message it learns of it with its next renewal", async () => {
    const { client, name } = party();
    await using other = await startOther(name, 3_000);
    await until("it listens", other.isListening);
    expect(await client.getReadWriteLock(name).writeLock().forceUnlock()).toBe(true);
    expect((await other.lost).name).toBe("AbortError");
  });

  test("two processes that steal from each other all the time both go on, and the lock is free in the end", async () => {
    const { isFree, name, request } = party();
    await using other = await startOther(name, 30_000);
    const theirs = other.worker.request<number>("stealOften", { name, times: 20 });
    for (let i = 0; i < 20; i++)
      await request({ steal }, turn).catch((error: unknown) => {
        expect(error).toMatchObject({ name: "AbortError" });
      });
    expect(await theirs).toBe(20);
    expect(await isFree()).toBe(true);
  });
});

describe("the lock for notices", () => {
  test("is kept while the manager has a lasting hold, with one listener however often it is stolen from", async () => {
    const { client, manager } = party();
    const thief = party();
    const holder = async () => (await thief.client.inspect(noticesOf(client.id)))?.holders[0]?.ownerId;
    for (let i = 0; i < 50; i++) await manager.request(newName(), () => {});
    expect(await holder()).toBeUndefined();
    const warnings = recordWarnings();
    const kept = await hold(manager, newName());
    let last = await until("it listens", holder);
    for (let i = 0; i < 15; i++) {
      const name = newName();
      const { done } = await hold(manager, name);
      await thief.manager.request(name, { steal }, () => {});
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

  test("is taken outside of all requests, that which made the manager and those that hold locks [B260]", async () => {
    const store = new AsyncLocalStorage<string>();
    const { client } = party();
    const seen: unknown[] = [];
    watchNotices(client, () => seen.push(store.getStore()));
    const manager = store.run("makes the manager", () => createLockManager(client));
    const { release } = await store.run("holds", () => hold(manager, newName()));
    await until("it holds its lock for notices, and waits for it", () => seen.length === 2);
    expect(seen).toEqual([undefined, undefined]);
    await release();
  });

  test("is taken as soon as enough replicas answer, after too few have answered [B103]", async () => {
    await using replica = await startRedis({ replicaOf: server });
    const { client, hold, name } = party(newName(), { replicas: 1 });
    const thief = party(name);
    let asked = 0;
    watchNotices(client, (times) => {
      asked = times;
      if (times === 1) replica.pause();
    });
    const { done } = await hold();
    await until("it asks again", () => asked > 1);
    replica.resume();
    await until("it listens", () => thief.client.inspect(noticesOf(client.id)));
    await thief.request({ steal }, () => {});
    expect(await failureOf(done)).toBe("AbortError");
  });
});
