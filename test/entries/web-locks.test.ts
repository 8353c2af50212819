/** Web Locks as in the standard: arguments, callbacks, modes and their order, `ifAvailable`. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, test } from "vitest";
import { createLockManager, type LockManager, type LockMode } from "../../src/entries/web-locks.js";
import type { LockClient } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { until } from "../support/index.js";
import { failureOf, never, newName, turn, webLocksScene } from "./web-locks-scene.js";

const { party } = await webLocksScene();
const unreached = () => expect.unreachable("the callback should not run");
const signal = new AbortController().signal;

describe("arguments", () => {
  type Row = [what: string, given: (name: string) => unknown[], error: string];
  const all = (error: string, what: string, values: unknown[], given: (value: unknown) => unknown[]): Row[] =>
    values.map((value) => [
      `${what} ${typeof value} ${String(value)}`.slice(0, 60),
      () => given(value),
      error,
    ]);
  const withOptions = (options: unknown) => ["a", options, unreached];
  const callbacks = [undefined, null, 123, "abc", [], {}, Promise.resolve()];
  const signals = ["string", 12.34, false, {}, Symbol("a"), () => {}, globalThis, null];

  test.each<Row>([
    ["no name", () => [], "TypeError"],
    ["no callback", (name) => [name], "TypeError"],
    ["options in the place of the callback", (name) => [name, {}], "TypeError"],
    ["options behind the callback", (name) => [name, unreached, {}], "TypeError"],
    ...all("TypeError", "the callback", callbacks, (callback) => ["a", callback]),
    ...all("TypeError", "the callback behind options", callbacks, (callback) => ["a", {}, callback]),
    ...all("TypeError", "the options", [1, "shared", true, Symbol("a")], withOptions),
    ...all("TypeError", "the mode", ["foo", null, 1, "Shared"], (mode) => withOptions({ mode })),
    ...all("TypeError", "the signal", signals, (value) => withOptions({ signal: value })),
    ...all("TypeError", "the name", [undefined, null, 7, {}], (name) => [name, unreached]),
    ...all("RangeError", "the name", ["", "x".repeat(513), "\uD800"], (name) => [name, unreached]),
    ...all("NotSupportedError", "the reserved name", ["-", "-foo"], (name) => [name, unreached]),
    ["a reserved name with ifAvailable", () => ["-a", { ifAvailable: true }, unreached], "NotSupportedError"],
    ["steal with ifAvailable", () => withOptions({ steal: true, ifAvailable: true }), "NotSupportedError"],
    ["steal of a shared lock", () => withOptions({ steal: true, mode: "shared" }), "NotSupportedError"],
    ["signal with steal", () => withOptions({ signal, steal: true }), "NotSupportedError"],
    ["signal with ifAvailable", () => withOptions({ signal, ifAvailable: true }), "NotSupportedError"],
    [
      "an aborted signal with steal",
      () => withOptions({ signal: AbortSignal.abort(), steal: true }),
      "NotSupportedError",
    ],
  ])("request refuses %s", async (_what, given, error) => {
    const { manager, name } = party();
    const request = manager.request.bind(manager) as (...args: unknown[]) => Promise<unknown>;
    expect(await failureOf(request(...given(name)))).toBe(error);
  });

  test("a request takes any name of a lock, and no, unknown or few options; by default it is exclusive", async () => {
    const { manager, name } = party();
    const odd = ["\u0000", "abc\u0000def", "\uFFFF", "\n", "{", "__proto__"];
    for (const each of ["a", "a-", "é", "名", "a b", "x".repeat(512), ...odd])
      expect(await manager.request(each, (lock) => lock?.name)).toBe(each);
    const mode = (options: unknown) => manager.request(name, options as object, (lock) => lock?.mode);
    for (const options of [undefined, null, {}, { mode: undefined, other: 5 }, { mode: "exclusive" }])
      expect(await mode(options)).toBe("exclusive");
    expect(await mode({ mode: "shared" })).toBe("shared");
  });

  test("a client has one manager, and what is no client has none", () => {
    const { client, manager } = party();
    expect(createLockManager(client)).toBe(manager);
    expect(party().manager).not.toBe(manager);
    expect(String(manager)).toBe("[object LockManager]");
    for (const wrong of [undefined, null, {}, "client"])
      expect(() => createLockManager(wrong as LockClient)).toThrow(TypeError);
  });
});

describe("the callback", () => {
  test("gets a Lock, which can be read for ever and not be written", async () => {
    const { name, request } = party();
    const lock = await request({}, (granted) => granted);
    expect([lock?.name, lock?.mode, String(lock)]).toEqual([name, "exclusive", "[object Lock]"]);
    expect(() => Object.assign(lock as object, { name: "other" })).toThrow(TypeError);
    expect(lock?.name).toBe(name);
  });

  test("is called after request() has returned, without this, in the context of its caller", async () => {
    const { hold, request } = party();
    const store = new AsyncLocalStorage<string>();
    const first = await hold();
    let seen: unknown;
    const asked = store.run("mine", () =>
      request({}, function (this: unknown) {
        seen = [this, store.getStore()];
      }),
    );
    await store.run("another's", () => first.release());
    await asked;
    expect(seen).toEqual([undefined, "mine"]);
    let isReturned = false;
    const [granted, refused] = [1, 2].map(() =>
      request({ ifAvailable: true }, (lock) => [lock === null, isReturned]),
    );
    isReturned = true;
    expect([await granted, await refused]).toEqual([
      [false, true],
      [true, true],
    ]);
  });

  const error = { name: "test" };
  const throws = () => {
    throw error;
  };
  // biome-ignore lint/suspicious/noThenProperty: it is what is tested
  const thenable = { then: (resolve: (value: string) => void) => resolve("then") };
  test.each<[what: string, callback: () => unknown, outcome: PromiseSettledResult<unknown>]>([
    ["returns a value", () => 123, { status: "fulfilled", value: 123 }],
    ["resolves with a value", async () => 123, { status: "fulfilled", value: 123 }],
    ["returns a thenable", () => thenable, { status: "fulfilled", value: "then" }],
    ["throws", throws, { status: "rejected", reason: error }],
    ["rejects", async () => throws(), { status: "rejected", reason: error }],
    ["rejects with a thenable", () => Promise.reject(thenable), { status: "rejected", reason: thenable }],
  ])(
    "that %s: the request does, when the lock is free again, or the same for null",
    async (_what, callback, outcome) => {
      const { hold, name, request } = party();
      const settled = async (ifAvailable: boolean) =>
        (await Promise.allSettled([request({ ifAvailable }, callback)]))[0];
      expect(await settled(false)).toEqual(outcome);
      expect(await party(name).isFree()).toBe(true);
      const first = await hold();
      expect(await settled(true)).toEqual(outcome);
      await first.release();
    },
  );

  test("is not re-entrant, in a run or scope of its client neither", async () => {
    const { client, name, isFree, request } = party();
    const lock = client.getReadWriteLock(name);
    expect(await request({}, () => isFree())).toBe(false);
    expect(await client.scope(() => request({}, () => isFree()))).toBe(false);
    expect(await lock.writeLock().run(() => isFree())).toBe(false);
    const inScope = client.scope(async () => {
      await lock.readLock().lock();
      const granted = await isFree();
      await lock.readLock().unlock();
      return granted;
    });
    expect(await inScope).toBe(false);
    // The client's own calls do not re-enter the lock of a request either.
    expect(await request({}, () => client.scope(() => lock.writeLock().tryLock()))).toBeNull();
  });
});

describe("modes", () => {
  test("requests of one name wait in their order, shared ones together, and those of another name are granted at once", async () => {
    const { hold, manager, modes, request } = party();
    const first = await hold({ mode: "shared" });
    const second = await hold({ mode: "shared" });
    const granted: string[] = [];
    const note = (mode: LockMode, n: number) =>
      request({ mode }, async () => {
        granted.push(`${mode}-${n}`);
        await turn();
      });
    const wanted: LockMode[] = ["exclusive", "shared", "shared", "exclusive", "exclusive", "shared"];
    const requests = wanted.map(note);
    expect(await modes()).toEqual(["ss", "essees"]);
    await manager.request(newName(), () => granted.push("another name"));
    await Promise.all([first.release(), second.release()]);
    await Promise.all(requests);
    const [other, exclusive, ...rest] = granted;
    // Shared requests may be granted in any order.
    expect([other, exclusive, rest.slice(0, 2).sort(), rest.slice(2)].flat()).toEqual([
      "another name",
      ...["exclusive-0", "shared-1", "shared-2", "exclusive-3", "exclusive-4", "shared-5"],
    ]);
  });
});

describe("ifAvailable", () => {
  test("grants what is free, and calls back with null otherwise", async () => {
    const { hold, isFree, name, request } = party();
    expect(await request({ ifAvailable: true }, (lock) => lock?.name)).toBe(name);
    const first = await hold();
    expect(await request({ ifAvailable: true }, async (lock) => [lock, 123])).toEqual([null, 123]);
    expect(await party().isFree()).toBe(true);
    await first.release();
    // The lock is free as soon as the release was reported.
    expect(await isFree()).toBe(true);
  });

  test("grants what is shared next to other shared locks, unless an exclusive request waits", async () => {
    const { hold, isFree, request } = party();
    const first = await hold({ mode: "shared" });
    expect([await isFree("shared"), await isFree()]).toEqual([true, false]);
    const waiting = request({}, () => "waited");
    expect(await isFree("shared")).toBe(false);
    await first.release();
    expect(await waiting).toBe("waited");
    expect(await isFree("shared")).toBe(true);
  });

  test("answers several requests at once as if they were made one after the other", async () => {
    const { name, request } = party();
    const answers = (...modes: LockMode[]) =>
      Promise.all(
        modes.map((mode) =>
          request({ mode, ifAvailable: true }, async (lock) => {
            await turn();
            return lock !== null;
          }),
        ),
      );
    expect(await answers("exclusive", "exclusive", "shared")).toEqual([true, false, false]);
    expect(await answers("shared", "shared", "exclusive")).toEqual([true, true, false]);
    // An exclusive request that fails, because another process reads, keeps no shared request away.
    const elsewhere = await party(name).hold({ mode: "shared" });
    expect(await answers("exclusive", "shared")).toEqual([false, true]);
    const both = [answers("exclusive"), request({ mode: "shared" }, () => "behind it")];
    expect(await Promise.all(both)).toEqual([[false], "behind it"]);
    await elsewhere.release();
  });
});

describe("the client", () => {
  const all = async (manager: LockManager, name: string, code: string) => {
    for (const options of [{}, { mode: "shared" }, { ifAvailable: true }, { steal: true }] as const)
      expect(await failure(manager.request(name, options, () => never))).toMatchObject({ code });
  };

  test("that closes ends what waits with CLIENT_CLOSED, and what is held with AbortError; nothing is left", async () => {
    const { client, hold, manager, modes, name, request } = party();
    const busy = newName();
    const first = await hold();
    const elsewhere = await party(busy).hold();
    const pending = [
      request({}, () => never),
      request({ mode: "shared" }, () => never),
      manager.request(busy, { mode: "shared" }, () => never),
      manager.request(busy, () => never),
    ].map(failure);
    await modes();
    await client.close({ timeout: 0 });
    const names = [name, name, busy, busy];
    for (const [n, error] of (await Promise.all(pending)).entries())
      expect(error).toMatchObject({ code: "CLIENT_CLOSED", lockName: names[n] });
    expect(await failure(first.done)).toMatchObject({
      name: "AbortError",
      cause: { code: "LOCK_LOST", reason: "closed" },
    });
    await all(manager, name, "CLIENT_CLOSED");
    expect(await failure(manager.query())).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await party(name).isFree()).toBe(true);
    await elsewhere.release();
  });

  test("that closes waits for what is held to end by itself, and for no lock of its own", async () => {
    const { client, hold } = party();
    const looking = party().client;
    const first = await hold();
    const notices = `-web-locks:${client.id}`;
    await until("it listens", () => looking.inspect(notices));
    const closed = client.close({ timeout: 60_000 });
    expect(await first.release("in peace")).toBe("in peace");
    await closed;
    expect(await looking.inspect(notices)).toBeNull();
  });

  test("needs one round trip to take a free lock, one to give it back, and none to know that it has it itself", async () => {
    const { client, hold, isFree, request } = party();
    await request({}, () => {});
    const commandsOf = async (work: () => Promise<unknown>) => {
      const before = client.stats().commands;
      await work();
      return client.stats().commands - before;
    };
    expect(await commandsOf(() => request({}, () => {}))).toBe(2);
    expect(await commandsOf(() => request({ steal: true }, () => {}))).toBe(2);
    const first = await hold();
    expect(await commandsOf(() => isFree())).toBe(0);
    await first.release();
  });
});
