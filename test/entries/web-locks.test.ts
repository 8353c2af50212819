/** Web Locks as in the standard: arguments, callbacks, modes and their order, `ifAvailable`, `signal`. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { createLockManager, type LockMode, type LockOptions } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { as, deferred, watch } from "../contract/helpers.js";
import { recordWarnings, until } from "../support/index.js";
import { failureOf, hold, never, webLocksScene } from "./web-locks-scene.js";

const scene = webLocksScene();
const unreached = () => expect.unreachable("the callback should not run");

describe("arguments", () => {
  test("a name and a callback are needed, the callback comes last", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const request = (...given: unknown[]) => manager.request(...(given as [string, () => void]));
    for (const given of [[], [name], [name, {}], [name, unreached, {}], [name, {}, null]]) {
      expect(await failureOf(request(...given))).toBe("TypeError");
    }
    for (const callback of [undefined, null, 123, "abc", [], {}, Promise.resolve()]) {
      expect(await failureOf(request(name, callback))).toBe("TypeError");
      expect(await failureOf(request(name, {}, callback))).toBe("TypeError");
    }
    expect(await request(name, undefined, () => 1)).toBe(1);
    expect(await request(name, null, () => 2)).toBe(2);
    expect(await request(name, { mode: undefined, steal: undefined, other: 5 }, () => 3)).toBe(3);
    for (const options of [1, "shared", true, Symbol("a")]) {
      expect(await failureOf(request(name, options, unreached))).toBe("TypeError");
    }
  });

  test("mode is shared or exclusive, by default exclusive", async () => {
    const manager = scene.manager();
    const name = scene.name();
    for (const mode of ["foo", null, 1, "Shared"]) {
      expect(await failureOf(manager.request(name, { mode: as(mode) }, unreached))).toBe("TypeError");
    }
    const modeOf = (options: LockOptions) => manager.request(name, options, (lock) => lock?.mode);
    expect(await modeOf({ mode: "exclusive" })).toBe("exclusive");
    expect(await modeOf({ mode: "shared" })).toBe("shared");
    expect(await modeOf({})).toBe("exclusive");
  });

  test.each<[string, LockOptions]>([
    ["steal with ifAvailable", { steal: true, ifAvailable: true }],
    ["steal of a shared lock", { steal: true, mode: "shared" }],
    ["signal with steal", { signal: new AbortController().signal, steal: true }],
    ["signal with ifAvailable", { signal: new AbortController().signal, ifAvailable: true }],
    ["an aborted signal with steal", { signal: AbortSignal.abort(), steal: true }],
  ])("%s is not supported", async (_what, options) => {
    expect(await failureOf(scene.manager().request(scene.name(), options, unreached))).toBe(
      "NotSupportedError",
    );
  });

  test("names that begin with - are reserved, others need only be names of locks", async () => {
    const manager = scene.manager();
    for (const name of ["-", "-foo"]) {
      expect(await failureOf(manager.request(name, unreached))).toBe("NotSupportedError");
      expect(await failureOf(manager.request(name, { ifAvailable: true }, unreached))).toBe(
        "NotSupportedError",
      );
    }
    const odd = ["\u0000", "abc\u0000def", "\uFFFF", "\n", "{", "__proto__"];
    const names = ["a", "a-", "é", "名", "a b", "x".repeat(512), ...odd];
    for (const name of names) {
      const lock = await manager.request(name, (granted) => granted);
      expect(lock?.name).toBe(name);
    }
    for (const name of ["", "x".repeat(513), "\uD800"]) {
      expect(await failureOf(manager.request(name, unreached))).toBe("RangeError");
    }
    for (const name of [undefined, null, 7, {}]) {
      expect(await failureOf(manager.request(as(name), unreached))).toBe("TypeError");
    }
  });

  test("a manager is that of a client, the same at each call", () => {
    const client = scene.client();
    const manager = createLockManager(client);
    expect(createLockManager(client)).toBe(manager);
    expect(createLockManager(scene.client())).not.toBe(manager);
    expect(String(manager)).toBe("[object LockManager]");
    for (const wrong of [undefined, null, {}, "client"]) {
      expect(() => createLockManager(wrong as LockClient)).toThrow(TypeError);
    }
  });
});

describe("the callback", () => {
  test("gets a Lock, which can be read for ever and not be written", async () => {
    const lock = await scene.manager().request("resource", (granted) => granted);
    expect([lock?.name, lock?.mode, String(lock)]).toEqual(["resource", "exclusive", "[object Lock]"]);
    expect(() => Object.assign(lock as object, { name: "other" })).toThrow(TypeError);
    expect(lock?.name).toBe("resource");
  });

  test("is called after request() has returned, without this, in the context of its caller", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const store = new AsyncLocalStorage<string>();
    const first = await hold(manager, name);
    let seen: unknown;
    const request = store.run("mine", () =>
      manager.request(name, function (this: unknown) {
        seen = [this, store.getStore()];
      }),
    );
    await store.run("another's", () => first.release());
    await request;
    expect(seen).toEqual([undefined, "mine"]);
    let isReturned = false;
    const refused = manager.request(name, { ifAvailable: true }, () => expect(isReturned).toBe(true));
    const refusedToo = manager.request(name, { ifAvailable: true }, (lock) => [lock, isReturned]);
    isReturned = true;
    await refused;
    expect(await refusedToo).toEqual([null, true]);
  });

  test("what it returns or throws is what the request resolves or rejects with, when the lock is free again", async () => {
    const manager = scene.manager();
    const other = scene.manager();
    const name = scene.name();
    const isFree = () => other.request(name, { ifAvailable: true }, (lock) => lock !== null);
    const error = { name: "test" };
    expect(await manager.request(name, () => 123)).toBe(123);
    expect(await manager.request(name, async () => 123)).toBe(123);
    expect(await isFree()).toBe(true);
    const thrown = () => {
      throw error;
    };
    await expect(manager.request(name, thrown)).rejects.toBe(error);
    expect(await isFree()).toBe(true);
    await expect(manager.request(name, () => Promise.reject(error))).rejects.toBe(error);
    expect(await isFree()).toBe(true);
    let asked = false;
    // biome-ignore lint/suspicious/noThenProperty: it is what is tested
    const thrownThenable = { then: () => (asked = true) };
    const thrower = async () => {
      throw thrownThenable;
    };
    const caught = await manager.request(name, thrower).catch((reason: unknown) => [reason]);
    expect(caught).toEqual([thrownThenable]);
    expect(asked).toBe(false);
    // biome-ignore lint/suspicious/noThenProperty: it is what is tested
    const thenable = { then: (resolve: (value: string) => void) => resolve("then") };
    expect(await manager.request(name, () => thenable)).toBe("then");
  });

  test("the lock is held until what it returned settles", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const order: string[] = [];
    const { promise, resolve } = deferred();
    const first = manager.request(name, () => promise).then(() => order.push("returned"));
    const second = manager.request(name, () => order.push("second"));
    await until("the second waits", async () => (await manager.query()).pending.length === 1);
    expect(order).toEqual([]);
    void promise.then(() => order.push("settled"));
    resolve();
    await Promise.all([first, second]);
    expect(order[0]).toBe("settled");
    expect([...order].sort()).toEqual(["returned", "second", "settled"]);
  });

  test("the lock is held until what it returned rejects, too", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const order: string[] = [];
    let fail: (error: Error) => void = () => {};
    const first = manager.request(name, () => new Promise((_resolve, reject) => (fail = reject)));
    const failed = first.catch(() => order.push("rejected"));
    const second = manager.request(name, () => order.push("second"));
    await until("the second waits", async () => (await manager.query()).pending.length === 1);
    expect(order).toEqual([]);
    fail(new Error("test"));
    await Promise.all([failed, second]);
    expect([...order].sort()).toEqual(["rejected", "second"]);
  });

  test("is not re-entrant, in a run or scope of its client neither", async () => {
    const client = scene.client();
    const manager = createLockManager(client);
    const name = scene.name();
    const tried = () => manager.request(name, { ifAvailable: true }, (lock) => lock);
    expect(await manager.request(name, tried)).toBeNull();
    expect(await client.scope(() => manager.request(name, tried))).toBeNull();
    const lock = client.getReadWriteLock(name);
    expect(await lock.writeLock().run(tried)).toBeNull();
    const inScope = client.scope(async () => {
      await lock.readLock().lock();
      const granted = await tried();
      await lock.readLock().unlock();
      return granted;
    });
    expect(await inScope).toBeNull();
    // The client's own calls do not re-enter the lock of a request either.
    const inside = manager.request(name, () => client.scope(() => lock.writeLock().tryLock()));
    expect(await inside).toBeNull();
  });
});

describe("modes", () => {
  test("exclusive requests are granted one after the other, in their order", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const granted: number[] = [];
    let inside = 0;
    const requests = Array.from({ length: 20 }, (_, n) =>
      manager.request(name, async () => {
        granted.push(n);
        expect(++inside).toBe(1);
        await new Promise((resolve) => setImmediate(resolve));
        inside -= 1;
      }),
    );
    await Promise.all(requests);
    expect(granted).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  test("shared ones are granted together, an exclusive one behind them when all are done, of another name at once", async () => {
    const manager = scene.manager();
    const [a, b] = [scene.name(), scene.name()];
    const granted: string[] = [];
    const blocked = deferred();
    const shared = [1, 2, 3].map((n) =>
      manager.request(a, { mode: "shared" }, async () => {
        granted.push(`shared-${n}`);
        await blocked.promise;
      }),
    );
    const exclusive = manager.request(a, (lock) => granted.push(`${lock?.mode}`));
    await manager.request(b, () => granted.push("other name"));
    expect(granted).toEqual(["shared-1", "shared-2", "shared-3", "other name"]);
    blocked.resolve();
    await Promise.all([...shared, exclusive]);
    expect(granted.at(-1)).toBe("exclusive");
  });

  test("a shared request behind an exclusive one that waits has to wait, too", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name, { mode: "shared" });
    const granted: string[] = [];
    const note = (mode: LockMode, n: number) =>
      manager.request(name, { mode }, async () => {
        granted.push(`${mode}-${n}`);
        await new Promise((resolve) => setImmediate(resolve));
      });
    const requests = [
      note("exclusive", 1),
      note("shared", 2),
      note("shared", 3),
      note("exclusive", 4),
      note("exclusive", 5),
      note("shared", 6),
    ];
    const { held, pending } = await manager.query();
    expect(held).toHaveLength(1);
    expect(pending.map(({ mode }) => mode?.[0]).join("")).toBe("essees");
    await first.release();
    await Promise.all(requests);
    const expected = ["exclusive-1", "shared-2", "shared-3", "exclusive-4", "exclusive-5", "shared-6"];
    // Shared requests may be granted in any order.
    expect([granted[0], granted.slice(1, 3).sort(), granted.slice(3)].flat()).toEqual(expected);
  });

  test("an exclusive one between shared ones: what is held after each release", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const shared = () => Array.from({ length: 5 }, () => hold(manager, name, { mode: "shared" }));
    const modes = async () => (await manager.query()).held.map(({ mode }) => mode).join();
    const fiveShared = Array(5).fill("shared").join();
    const [before, between, behind] = [shared(), hold(manager, name), shared()];
    expect(await modes()).toBe(fiveShared);
    expect((await manager.query()).pending).toHaveLength(6);
    await Promise.all(before.map(async (each) => (await each).release()));
    await (await between).release();
    // Several answers of Redis grant these requests.
    await until("all behind it are held", async () => (await modes()) === fiveShared);
    await Promise.all(behind.map(async (each) => (await each).release()));
    expect(await modes()).toBe("");
  });

  test("names are apart", async () => {
    const manager = scene.manager();
    const [a, b] = [scene.name(), scene.name()];
    const first = await hold(manager, a);
    const second = await hold(manager, b);
    await Promise.all([first.release(), second.release()]);
    const granted: string[] = [];
    let inside: Promise<unknown> | undefined;
    await manager.request(a, async () => {
      const waits = manager.request(a, () => granted.push("the same"));
      await manager.request(b, () => granted.push("another"));
      inside = waits;
    });
    await inside;
    expect(granted).toEqual(["another", "the same"]);
  });
});

describe("ifAvailable", () => {
  const ifAvailable = true;

  test("grants what is free, and calls back with null otherwise", async () => {
    const manager = scene.manager();
    const name = scene.name();
    expect(await manager.request(name, { ifAvailable }, (lock) => lock?.name)).toBe(name);
    const first = await hold(manager, name);
    expect(await manager.request(name, { ifAvailable }, async (lock) => [lock, 123])).toEqual([null, 123]);
    const other = await manager.request(scene.name(), { ifAvailable }, (lock) => lock !== null);
    expect(other).toBe(true);
    await first.release();
    // The lock is free as soon as the release was reported.
    expect(await manager.request(name, { ifAvailable }, (lock) => lock !== null)).toBe(true);
  });

  test("what the callback throws for null is the request's, too", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name);
    const error = new Error("test");
    const thrown = () => {
      throw error;
    };
    await expect(manager.request(name, { ifAvailable }, thrown)).rejects.toBe(error);
    await expect(manager.request(name, { ifAvailable }, async () => thrown())).rejects.toBe(error);
    await first.release();
  });

  test("shared ones beside shared ones are granted, unless an exclusive one waits", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name, { mode: "shared" });
    const granted = (mode: LockMode) => manager.request(name, { mode, ifAvailable }, (lock) => lock !== null);
    expect(await granted("shared")).toBe(true);
    expect(await granted("exclusive")).toBe(false);
    const waiting = manager.request(name, () => "waited");
    expect(await granted("shared")).toBe(false);
    await first.release();
    expect(await waiting).toBe("waited");
    expect(await granted("shared")).toBe(true);
  });

  test("several at once: as if they were made one after the other", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const request = (mode: LockMode) =>
      manager.request(name, { mode, ifAvailable }, async (lock) => {
        await new Promise((resolve) => setImmediate(resolve));
        return lock !== null;
      });
    const first = [request("exclusive"), request("exclusive"), request("shared")];
    expect(await Promise.all(first)).toEqual([true, false, false]);
    const then = [request("shared"), request("shared"), request("exclusive")];
    expect(await Promise.all(then)).toEqual([true, true, false]);
    // An exclusive request that fails, because another process reads, keeps no shared request away.
    const elsewhere = await hold(scene.manager(), name, { mode: "shared" });
    expect(await Promise.all([request("exclusive"), request("shared")])).toEqual([false, true]);
    const both = [request("exclusive"), manager.request(name, { mode: "shared" }, () => "behind it")];
    expect(await Promise.all(both)).toEqual([false, "behind it"]);
    await elsewhere.release();
  });
});

describe("signal", () => {
  test("must be an AbortSignal", async () => {
    const manager = scene.manager();
    const name = scene.name();
    for (const signal of ["string", 12.34, false, {}, Symbol("a"), () => {}, globalThis, null]) {
      expect(await failureOf(manager.request(name, { signal: as(signal) }, unreached))).toBe("TypeError");
    }
  });

  test("that has aborted, or aborts at once: the request rejects with its reason, and holds nobody up", async () => {
    const manager = scene.manager();
    const name = scene.name();
    expect(await failureOf(manager.request(name, { signal: AbortSignal.abort() }, unreached))).toBe(
      "AbortError",
    );
    const before = AbortSignal.abort();
    await expect(manager.request(name, { signal: before }, unreached)).rejects.toBe(before.reason);
    const reason = "My dog ate it.";
    const aborted = manager.request(name, { signal: AbortSignal.abort(reason) }, unreached);
    await expect(aborted).rejects.toBe(reason);
    const controller = new AbortController();
    const request = manager.request(name, { signal: controller.signal }, unreached);
    controller.abort(reason);
    await expect(request).rejects.toBe(reason);
    expect(await manager.request(name, () => "next")).toBe("next");
  });

  test.each<LockMode>(["exclusive", "shared"])("ends the wait of a request that is %s", async (mode) => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name);
    const [one, two] = [new AbortController(), new AbortController()];
    const request = manager.request(name, { mode, signal: one.signal }, unreached);
    // Behind other requests of this process, which have not asked Redis either.
    const behind = manager.request(name, { mode: "shared", signal: two.signal }, unreached);
    const last = manager.request(name, { mode: "shared" }, () => "last");
    expect((await manager.query()).pending).toHaveLength(3);
    two.abort(new Error("two"));
    await expect(behind).rejects.toThrow("two");
    one.abort();
    await expect(request).rejects.toBe(one.signal.reason);
    expect(await failureOf(request)).toBe("AbortError");
    expect((await manager.query()).pending).toHaveLength(1);
    await first.release();
    expect(await last).toBe("last");
  });

  test("that aborts while an exclusive request waits lets shared ones behind it go", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name, { mode: "shared" });
    const controller = new AbortController();
    const waiting = manager.request(name, { signal: controller.signal }, unreached);
    const shared = manager.request(name, { mode: "shared" }, () => "together");
    expect((await manager.query()).pending).toHaveLength(2);
    controller.abort();
    expect(await failureOf(waiting)).toBe("AbortError");
    expect(await shared).toBe("together");
    await first.release();
  });

  test("that aborts between the grant and the callback: the request rejects, and the lock is given back uncalled [B180]", async () => {
    const client = scene.client();
    const manager = createLockManager(client);
    const [busy, name] = [scene.name(), scene.name()];
    const elsewhere = await hold(scene.manager(), busy);
    const controller = new AbortController();
    const { signal } = controller;
    client.on("acquired", ({ lockName }) => {
      // By then the request has the lock.
      if (lockName === name) setImmediate(() => controller.abort("too late"));
    });
    // To steal takes several answers; until then no later callback is called.
    const stolen = manager.request(busy, { steal: true }, () => "stolen");
    const request = manager.request(name, { signal }, unreached);
    const next = manager.request(name, () => "next");
    await expect(request).rejects.toBe("too late");
    expect(await next).toBe("next");
    expect(await stolen).toBe("stolen");
    expect(await failureOf(elsewhere.done)).toBe("AbortError");
    expect(await scene.manager().request(name, { ifAvailable: true }, (lock) => lock !== null)).toBe(true);
    expect((await manager.query()).held).toEqual([]);
  });

  test("changes nothing once the lock is granted, or when it has been released", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const controller = new AbortController();
    const first = await hold(manager, name, { signal: controller.signal });
    controller.abort();
    expect(await first.release("resolved ok")).toBe("resolved ok");
    const later = new AbortController();
    const second = await hold(manager, name, { signal: later.signal });
    const done = second.release("resolved ok");
    later.abort();
    expect(await done).toBe("resolved ok");
  });

  test("of many requests at once is listened to once, and ends them all", async () => {
    const manager = scene.manager();
    const name = scene.name();
    const first = await hold(manager, name);
    const warnings = recordWarnings();
    const controller = new AbortController();
    const { signal } = controller;
    const requests = Array.from({ length: 50 }, () => manager.request(name, { signal }, () => never));
    const states = requests.map(watch);
    expect((await manager.query()).pending).toHaveLength(50);
    controller.abort();
    await Promise.allSettled(requests);
    expect(states.every(({ state }) => state === "rejected")).toBe(true);
    expect((await manager.query()).pending).toEqual([]);
    await first.release();
    expect(warnings).toEqual([]);
  });
});
