/** Wrong arguments are refused before anything is sent: each call that takes an argument, with each value that is wrong for it. */
import { expect, test } from "vitest";
import { type Hold, type Lock, type LockClient, Owner } from "../../src/index.js";
import { failure, KINDS, openVirtual, type VirtualPlace } from "../support/place/index.js";
import {
  type Bad,
  COUNTS,
  FUNCTIONS,
  IDS,
  LEASES,
  LIMITS,
  NAMES,
  OPTIONS,
  SIGNALS,
  WAITS,
} from "./bad-values.js";

const ID = "0123456789abcdef0123456789abcdef";

const never = (): never => {
  throw new Error("fn was called");
};

interface Parts extends VirtualPlace {
  readonly locks: readonly Lock[];
  readonly held: Hold;
  readonly semaphore: ReturnType<LockClient["getSemaphore"]>;
  readonly permits: ReturnType<LockClient["getPermitExpirableSemaphore"]>;
  readonly latch: ReturnType<LockClient["getCountDownLatch"]>;
}

type Call = (value: never) => unknown;

/** The calls that take each argument. What all kinds of locks share is asked of one of each. */
const CALLS: Readonly<Record<string, { readonly bad: readonly Bad[]; calls(parts: Parts): Call[] }>> = {
  "a wait": {
    bad: WAITS,
    calls: ({ locks, semaphore, permits, latch }) => [
      ...locks.flatMap((lock): Call[] => [
        (wait) => lock.lock({ wait }),
        (wait) => lock.tryLock(wait),
        (wait) => lock.run(never, { wait }),
      ]),
      (wait) => semaphore.tryAcquire(1, wait),
      (wait) => semaphore.run(never, { wait }),
      (wait) => permits.tryAcquire(wait),
      (wait) => latch.await(wait),
    ],
  },
  "a lease": {
    bad: LEASES,
    calls: ({ locks, held, permits }) => [
      ...locks.flatMap((lock): Call[] => [
        (lease) => lock.lock({ lease }),
        (lease) => lock.tryLock(0, lease),
        (lease) => lock.run(never, { lease }),
      ]),
      (lease) => held.extend(lease),
      (lease) => permits.acquire({ lease }),
      (lease) => permits.tryAcquire(0, lease),
      (lease) => permits.updateLeaseTime(ID, lease),
    ],
  },
  "a signal [B89]": {
    bad: SIGNALS,
    calls: ({ locks, semaphore, permits, latch }) => [
      ...locks.flatMap((lock): Call[] => [
        (signal) => lock.lock({ signal }),
        (signal) => lock.tryLock(0, 1_000, { signal }),
        (signal) => lock.run(never, { signal }),
      ]),
      (signal) => semaphore.acquire(1, { signal }),
      (signal) => semaphore.tryAcquire(1, 0, { signal }),
      (signal) => semaphore.run(never, { signal }),
      (signal) => permits.acquire({ signal }),
      (signal) => permits.tryAcquire(0, 1_000, { signal }),
      (signal) => latch.await(0, { signal }),
    ],
  },
  "an owner": {
    bad: [
      ["null", null, TypeError],
      ["a string", "me", TypeError],
      ["a plain object", {}, TypeError],
      ["a lock", openVirtual().lock, TypeError],
      ["a client", openVirtual().client, TypeError],
    ],
    calls: ({ locks }) =>
      locks.flatMap((lock) => withOptions(lock).map((call) => (owner) => call({ owner } as never))),
  },
  "options [B107]": {
    bad: [
      ...OPTIONS,
      ["a signal where its option is meant", new AbortController().signal, TypeError],
      ["an owner where its option is meant", new Owner(), TypeError],
    ],
    calls: ({ client, locks, semaphore, permits, latch }) => [
      ...locks.flatMap(withOptions),
      (options) => semaphore.acquire(1, options),
      (options) => semaphore.tryAcquire(1, 0, options),
      (options) => semaphore.run(never, options),
      (options) => permits.acquire(options),
      (options) => permits.tryAcquire(0, 1_000, options),
      (options) => latch.await(0, options),
      (options) => client.inspect("a", options),
      (options) => client.list(options).next(),
      (options) => client.close(options),
    ],
  },
  "an option of another call": {
    bad: [
      ["wait", { wait: 5 }, TypeError],
      ["lease", { lease: 5 }, TypeError],
      ["permits", { permits: 5 }, TypeError],
    ],
    calls: ({ client, locks, semaphore, latch }) => [
      ...locks.flatMap((lock): Call[] => [
        (options) => lock.tryLock(0, 1_000, options),
        (options) => lock.tryLock(options),
        ...questions(lock),
      ]),
      (options) => semaphore.acquire(1, options),
      (options) => semaphore.acquire(options),
      (options) => semaphore.tryAcquire(1, 0, options),
      (options) => latch.await(0, options),
      (options) => client.list(options).next(),
    ],
  },
  "a function": {
    bad: FUNCTIONS,
    calls: ({ client, locks, semaphore }) => [
      ...locks.map(
        (lock): Call =>
          (fn) =>
            lock.run(fn),
      ),
      (fn) => semaphore.run(fn),
      (fn) => client.scope(fn),
      (fn) => client.newOwner().scope(fn),
    ],
  },
  "a number of permits [§5 arguments]": {
    bad: COUNTS,
    calls: ({ semaphore }) => [
      (n) => semaphore.acquire(n),
      (n) => semaphore.tryAcquire(n),
      (n) => semaphore.release(n),
      (permits) => semaphore.run(never, { permits }),
    ],
  },
  "a limit [§5 arguments]": {
    bad: [...LIMITS, ["absent", undefined, TypeError]],
    calls: ({ semaphore, permits, latch }) => [
      (n) => semaphore.trySetPermits(n),
      (n) => semaphore.addPermits(n),
      (n) => permits.trySetPermits(n),
      (n) => permits.setPermits(n),
      (n) => permits.addPermits(n),
      (n) => latch.trySetCount(n),
    ],
  },
  "a permit's id": {
    bad: IDS,
    calls: ({ permits }) => [
      (id) => permits.release(id),
      (id) => permits.tryRelease(id),
      (id) => permits.updateLeaseTime(id, 1_000 as never),
    ],
  },
  "a name": {
    bad: NAMES,
    calls: ({ client }) => [
      (name) => client.getLock(name),
      (name) => client.getFairLock(name),
      (name) => client.getFencedLock(name),
      (name) => client.getReadWriteLock(name),
      (name) => client.getSemaphore(name),
      (name) => client.getPermitExpirableSemaphore(name),
      (name) => client.getCountDownLatch(name),
      (name) => client.inspect(name),
    ],
  },
  "a time for close": {
    bad: WAITS,
    calls: ({ client }) => [(timeout) => client.close({ timeout })],
  },
  "what list looks for": {
    bad: [
      ["match: a number", { match: 5 }, TypeError],
      ["match: null", { match: null }, TypeError],
      ["count: 0", { count: 0 }, RangeError],
      ["count: 1.5", { count: 1.5 }, RangeError],
      ["count: a string", { count: "10" }, TypeError],
    ],
    calls: ({ client }) => [(options) => client.list(options).next()],
  },
};

/** The calls of a lock that take options. */
function withOptions(lock: Lock): Call[] {
  return [
    (options) => lock.lock(options),
    (options) => lock.tryLock(0, 1_000, options),
    (options) => lock.run(never, options),
    ...questions(lock),
  ];
}

/** Those that take nothing but an owner. */
function questions(lock: Lock): Call[] {
  return [
    (options) => lock.unlock(options),
    (options) => lock.isHeldByCurrentOwner(options),
    (options) => lock.getHoldCount(options),
  ];
}

/** Getters throw; all else rejects, and does not throw. */
const isGetter = (call: Call): boolean => /=>\s*client\.get/.test(String(call));

for (const [what, { bad, calls }] of Object.entries(CALLS)) {
  test(`${what} that is wrong is refused by each call before anything is sent [§6 arguments]`, async () => {
    const { client, server, ...place } = openVirtual();
    const held = await client.getLock("held").lock({ lease: 60_000 });
    const before = server.ran.length;
    const parts: Parts = {
      ...place,
      client,
      server,
      held,
      locks: KINDS.map((kind) => kind.make(kind.servers > 1 ? openVirtual(kind).a.clients : [client], "job")),
      semaphore: client.getSemaphore("semaphore"),
      permits: client.getPermitExpirableSemaphore("permits"),
      latch: client.getCountDownLatch("latch"),
    };
    for (const [title, value, type] of bad) {
      for (const call of calls(parts)) {
        const asked = `${String(call)}, with ${title}`;
        const error = await failure(
          isGetter(call) ? () => call(value as never) : rejected(call, value),
        ).catch((none: Error) => expect.fail(`${asked}: ${none.message}`));
        expect(error, asked).toBeInstanceOf(type);
        expect([error.name, error.message !== ""], asked).toEqual([type.name, true]);
      }
    }
    expect(server.ran.slice(before)).toEqual([]);
    expect([held.isHeld, held.remaining > 59_000]).toEqual([true, true]);
  });
}

/** The promise that a call returns: a call that throws fails the test. */
function rejected(call: Call, value: unknown): Promise<unknown> {
  const promise = call(value as never);
  expect(promise, String(call)).toBeInstanceOf(Promise);
  return promise as Promise<unknown>;
}

test("a bigint is named as what it is [§6 arguments] [B149]", async () => {
  const { lock } = openVirtual();
  expect((await failure(lock.lock({ lease: 5n as never }))).message).toContain(
    "lease must be a number, not 5n",
  );
});

test("a text that can be no permit's id is one that nobody has [§5 permits]", async () => {
  const permits = openVirtual().client.getPermitExpirableSemaphore("permits");
  for (const id of ["", ID.slice(1), `${ID}0`, `${ID.slice(1)}g`, `${ID.slice(1)} `]) {
    expect(await failure(permits.release(id))).toMatchObject({ code: "NOT_OWNER", lockName: "permits" });
    expect(await permits.tryRelease(id)).toBe(false);
    expect(await permits.updateLeaseTime(id, 1_000)).toBe(false);
  }
});

test("an option or argument that is undefined is absent [§6 arguments]", async () => {
  const { lock, excluded, client } = openVirtual();
  const nothing = { wait: undefined, lease: undefined, signal: undefined, owner: undefined };
  const hold = await lock.lock(nothing);
  expect(hold.remaining).toBeGreaterThan(20_000);
  expect(await excluded.tryLock(undefined, undefined, { signal: undefined, owner: undefined })).toBeNull();
  expect(await lock.getHoldCount(undefined)).toBe(0);
  await hold.unlock();
  expect(await lock.run(() => 5, undefined)).toBe(5);
  await client.close(undefined);
});

test("only properties that the caller wrote are options, not those of a polluted Object.prototype [§6 arguments] [B32]", async () => {
  const { lock, client, settle } = openVirtual();
  const semaphore = client.getSemaphore("one");
  await semaphore.trySetPermits(1);
  const held = await client.getLock("held").lock();
  const calls: readonly (readonly [
    name: string,
    value: unknown,
    call: (options?: object) => Promise<unknown>,
  ])[] = [
    ["lease", 1, (options) => lock.run(({ remaining }) => expect(remaining).toBeGreaterThan(1_000), options)],
    ["signal", AbortSignal.abort(new Error("not asked for")), (options) => lock.run(() => {}, options)],
    ["owner", held, async (options) => expect(await lock.getHoldCount(options)).toBe(0)],
    ["match", "nothing", async (options) => expect((await client.list(options).next()).done).toBe(false)],
    ["permits", 2, (options) => semaphore.run(() => {}, options)],
  ];
  for (const [name, value, call] of calls)
    for (const options of [Object.create({ [name]: value }) as object, {}, undefined]) {
      Object.defineProperty(Object.prototype, name, { value, configurable: true, enumerable: true });
      const done = call(options);
      delete (Object.prototype as unknown as Record<string, unknown>)[name];
      await settle();
      await done;
    }
  await held.unlock();
});
