/** The documented cases of redlock 5, and those of its own tests, written anew on one master and on three. */
import { createRequire } from "node:module";
import { Redis as Redis5 } from "ioredis5";
import { describe, expect, test } from "vitest";
import DefaultRedlock, {
  ExecutionError,
  Lock,
  Redlock,
  type RedlockAbortSignal,
  type RedlockClient,
  ResourceLockedError,
  type Settings,
} from "../../src/entries/redlock.js";
import { isLockError, LockClient } from "../../src/index.js";
import { isBuilt } from "../contract/helpers.js";
import { freshName } from "../faults/harness.js";
import { forTest, PATIENCE, STEADY, until } from "../support/index.js";
import {
  countHeld,
  executionError,
  LOCKED,
  LONG,
  newRedlock,
  ONCE,
  onAll,
  PATIENT,
  untilAwaited,
  untilFree,
  useMasters,
  votesAgainst,
} from "./redlock-helpers.js";

const masters = await useMasters(3);

/** The votes of a grant are told when a hundredth of its lease is over, which is as long as a master may take. */
const LEASE = 5 * PATIENCE;
/** The longest lease in redlock's own tests; three times as long is still allowed. */
const LONGEST = Math.floor(Number.MAX_SAFE_INTEGER / 10);
/** A lock is extended a fifth of a second after it was taken; a process may then stall for seconds. */
const SOON: Partial<Settings> = { automaticExtensionThreshold: STEADY - 200, retryCount: 100 };

function aborted(signal: RedlockAbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.error);
    else signal.addEventListener("abort", () => resolve(signal.error), { once: true });
  });
}

describe.each([
  { count: 1, version: 6 as const },
  { count: 3, version: 5 as const },
])("on $count masters, ioredis $version", ({ count, version }) => {
  const quorum = Math.floor(count / 2) + 1;
  const servers = () => masters.slice(0, count);
  const make = (settings: Partial<Settings> = {}) => newRedlock(servers(), settings, version);
  const allRefuse = [Array(count).fill(LOCKED)];
  /** The time to live that at least a quorum has. */
  const ttl = async (name: string) =>
    (await onAll(servers(), "PTTL", name)).sort((a, b) => b - a)[quorum - 1] as number;

  test.each([1, 2])(
    "a call for %i resources takes them on each master, and its lock is extended by a new one and released",
    async (many) => {
      const redlock = make();
      const names = Array.from({ length: many }, freshName);
      // By this each connection is made.
      await (await redlock.acquire([freshName()], LONG)).release();
      const before = Date.now();
      const first = await redlock.acquire(names, LEASE);
      expect(first).toBeInstanceOf(Lock);
      expect(first.redlock).toBe(redlock);
      expect([first.resources, first.attempts.length]).toEqual([names, 1]);
      expect(first.value).toMatch(/^[0-9a-f-]{36}:\d+$/);
      // The drift takes off one percent and 2 ms; two clocks with whole milliseconds may differ by one more.
      expect(first.expiration).toBeGreaterThanOrEqual(before + LEASE * 0.99 - 2 - 2);
      expect(first.expiration).toBeLessThanOrEqual(Date.now() + LEASE * 0.99 - 2);
      const [stats] = await Promise.all(first.attempts);
      expect(stats).toMatchObject({ membershipSize: count, quorumSize: quorum });
      expect([stats?.votesFor, stats?.votesAgainst.size]).toEqual([redlock.clients, 0]);
      for (const name of names)
        await until("each master has it", async () => (await countHeld(servers(), name)) === count);

      const second = await first.extend(LONGEST);
      expect([second === first, second.value, second.resources]).toEqual([false, first.value, names]);
      expect(first.expiration).toBe(0);
      const old = await executionError(first.extend(LONG));
      expect(old).toMatchObject({
        attempts: [],
        message: expect.stringContaining("its extend() resolved with"),
      });
      for (const name of names)
        await until("each master keeps it", async () =>
          (await onAll(servers(), "PTTL", name)).every((ms) => ms > LONGEST - PATIENCE && ms <= LONGEST),
        );

      const released = await second.release();
      expect((await released.attempts[0])?.votesFor).toEqual(redlock.clients);
      expect(second.expiration).toBe(0);
      await untilFree(servers(), ...names);
      expect((await executionError(second.extend(LONG))).attempts).toEqual([]);
      expect(await votesAgainst(await executionError(second.release()))).toEqual(allRefuse);
    },
  );

  test("a locked resource is refused, also to its own Redlock, with the votes of one attempt and an event for each client", async () => {
    const [holder, other] = [make(ONCE), make(ONCE)];
    const name = freshName();
    const lock = await holder.acquire([name], LONG);
    for (const redlock of [other, holder]) {
      const heard: unknown[] = [];
      redlock.on("error", (error) => heard.push(error));
      const error = await executionError(redlock.acquire([name], LONG));
      expect(error).toMatchObject({ name: "ExecutionError", message: expect.stringContaining(name) });
      expect(await votesAgainst(error)).toEqual(allRefuse);
      expect((await error.attempts[0])?.votesFor.size).toBe(0);
      expect(heard.map((each) => each instanceof ResourceLockedError)).toEqual(Array(count).fill(true));
    }
    await lock.release();
    await (await other.acquire([name], LONG)).release();
  });

  test("a lock is a new owner's in a scope and a run too, and keeps this library's other locks of its name out", async () => {
    const redlock = make(ONCE);
    const name = freshName();
    const client = forTest(new LockClient(servers()[0]?.connect() as never));
    const ours = client.getLock(name);
    await client.scope(async () => {
      const lock = await redlock.acquire([name], LONG);
      await until("each master has it", async () => (await countHeld(servers(), name)) === count);
      expect(await ours.tryLock()).toBeNull();
      await executionError(redlock.acquire([name], LONG));
      await lock.release();
    });
    if (count === 1) await ours.run(() => executionError(redlock.acquire([name], LONG)));
  });

  test("a call waits for retryCount * (retryDelay + retryJitter), and with retryCount -1 for ever", async () => {
    const [holder, other] = [make(), make()];
    const name = freshName();
    const lock = await holder.acquire([name], LONG);
    const next = other.acquire([name], LONG, { retryCount: -1, retryDelay: 0, retryJitter: 0 });
    const begun = performance.now();
    await executionError(other.acquire([name], LONG, { retryCount: 3, retryDelay: 100, retryJitter: 50 }));
    expect(performance.now() - begun).toBeGreaterThanOrEqual(450 - 1);
    await lock.release();
    await (await next).release();
  });

  test("several resources are locked together or not at all, and no order of them dead-locks", async () => {
    const [one, other] = [make(PATIENT), make(PATIENT)];
    const [a, b, c] = [freshName(), freshName(), freshName()];
    const lock = await one.acquire([a, b], LONG);
    await executionError(other.acquire([c, b], LONG, ONCE));
    await untilFree(servers(), c);
    await lock.release();
    let inside = 0;
    const rounds = [one, other].map(async (redlock, i) => {
      for (let n = 0; n < 5; n++) {
        await redlock.using(i === 0 ? [a, b, c] : [c, b, a], LONG, async () => {
          expect(++inside).toBe(1);
          await countHeld(servers(), a);
          inside--;
        });
      }
    });
    await Promise.all(rounds);
    await untilFree(servers(), a, b, c);
  });

  test("an expired lock is neither extended nor released, and leaves its successor's alone", async () => {
    const [redlock, other] = [make(), make(PATIENT)];
    const name = freshName();
    const lock = await redlock.acquire([name], 500, { retryCount: 100 });
    await until("it has expired", () => lock.expiration < Date.now());
    expect((await executionError(lock.extend(LONG))).attempts).toEqual([]);
    const next = await other.acquire([name], LONG);
    const error = await executionError(lock.release());
    expect(isLockError(error.cause, "LOCK_LOST")).toBe(true);
    expect(await votesAgainst(error)).toEqual(allRefuse);
    expect(await countHeld(servers(), name)).toBeGreaterThanOrEqual(quorum);
    await next.release();
  });

  test("quit ends the given connections and the calls that wait, and leaves what is held to lapse", async () => {
    const [redlock, other] = [make(PATIENT), make(ONCE)];
    const [name, busy] = [freshName(), freshName()];
    const lock = await redlock.acquire([name], LONG);
    await other.acquire([busy], LONG);
    const waiting = executionError(redlock.acquire([busy], LONG));
    await untilAwaited(servers(), busy);
    await redlock.quit();
    for (const client of redlock.clients) expect(client.status).toBe("end");
    await waiting;
    await executionError(redlock.acquire([freshName()], LONG));
    await executionError(lock.release());
    await executionError(other.acquire([name], LONG));
    await redlock.quit();
  });

  test("using holds and extends the lock while its routine runs, and lets the next routine in behind it", async () => {
    const [redlock, other] = [make(), make(ONCE)];
    const name = freshName();
    let inside = 0;
    const visit = () =>
      redlock.using([name], STEADY, { ...SOON, retryCount: -1 }, async (signal) => {
        expect(++inside).toBe(1);
        for (let extensions = 0, last = await ttl(name); extensions < 2; ) {
          const now = await ttl(name);
          if (now > last) extensions++;
          last = now;
        }
        await executionError(other.acquire([name], LONG));
        expect([signal.aborted, signal.error]).toEqual([false, undefined]);
        inside--;
        return "what the routine returns";
      });
    expect(await Promise.all([visit(), visit()])).toEqual(Array(2).fill("what the routine returns"));
    await untilFree(servers(), name);
  });

  const loseAll = async (name: string) =>
    void (await Promise.all(servers().map((server) => server.call("DEL", name))));
  type Ending = (name: string, redlock: Redlock) => Promise<void>;
  test.each<[when: string, duration: number, threshold: number, end: Ending]>([
    ["the lock is gone at its extension", STEADY, STEADY - 200, loseAll],
    [
      "no quorum answers until the lock expires",
      3_000,
      2_500,
      async () => void (await Promise.all(masters.slice(0, quorum).map((server) => server.kill()))),
    ],
    ["quit is called", LONG, 500, (_name, redlock) => redlock.quit()],
  ])("the signal of using aborts and its call rejects when %s", async (_when, duration, threshold, end) => {
    const redlock = make();
    const name = freshName();
    const settings = { automaticExtensionThreshold: threshold, retryCount: 100 };
    let told: unknown;
    const routine = async (signal: RedlockAbortSignal) => {
      await end(name, redlock);
      told = await aborted(signal);
      expect(signal.reason).toBe(told);
      return "in vain";
    };
    const error = await executionError(redlock.using([name], duration, settings, routine));
    expect(error).toBe(told);
    expect(isLockError(error.cause)).toBe(true);
    if (end === loseAll) expect(isLockError(error.cause, "LOCK_LOST")).toBe(true);
  });

  test("what the routine of using throws comes before all else, and the lock is given back", async () => {
    const redlock = make();
    const name = freshName();
    const routine = async (signal: RedlockAbortSignal) => {
      await loseAll(name);
      throw await aborted(signal).then(() => new Error("the routine's"));
    };
    await expect(redlock.using([name], STEADY, SOON, routine)).rejects.toThrow("the routine's");
    const failing = redlock.using([name], LONG, () => {
      throw new Error("at once");
    });
    await expect(failing).rejects.toThrow("at once");
    await untilFree(servers(), name);
  });
});

test("of two masters both have to grant a lock", async () => {
  const [both, first] = [newRedlock(masters.slice(0, 2), ONCE), newRedlock(masters.slice(0, 1), ONCE)];
  const name = freshName();
  const lock = await both.acquire([name], LONG);
  expect(await countHeld(masters.slice(0, 2), name)).toBe(2);
  expect(await lock.attempts[0]).toMatchObject({ membershipSize: 2, quorumSize: 2 });
  await lock.release();
  const theirs = await first.acquire([name], LONG);
  await executionError(both.acquire([name], LONG));
  await untilFree(masters.slice(1), name);
  await theirs.release();
});

test("the class is the default export, and keeps the clients and settings that it was given", () => {
  expect(DefaultRedlock).toBe(Redlock);
  const redis = new Redis5({ lazyConnect: true });
  const redlock = new Redlock(new Set([redis, redis]));
  expect([...redlock.clients]).toEqual([redis]);
  expect(redlock.settings).toEqual({
    driftFactor: 0.01,
    retryCount: 10,
    retryDelay: 200,
    retryJitter: 100,
    automaticExtensionThreshold: 500,
  });
  expect(new Redlock([redis], { retryCount: 3 }).settings).toMatchObject({ retryCount: 3, retryDelay: 200 });
});

test.skipIf(!isBuilt)("in CommonJS the class is the default export, too", () => {
  const required = createRequire(import.meta.url)("../../dist/redlock.cjs") as Record<string, unknown>;
  expect(required.default).toBe(required.Redlock);
  expect(required.ExecutionError).toBeTypeOf("function");
});

test("driftFactor makes the expiration earlier, that of a call too", async () => {
  const redlock = newRedlock(masters.slice(0, 1), { driftFactor: 0.1 });
  const most = (share: number) => Date.now() + LONG * (1 - share);
  const lock = await redlock.acquire([freshName()], LONG);
  expect(lock.expiration).toBeLessThanOrEqual(most(0.1));
  const other = await redlock.acquire([freshName()], LONG, { driftFactor: 0.2 });
  expect(other.expiration).toBeLessThanOrEqual(most(0.2));
  expect(other.expiration).toBeGreaterThan(most(0.25));
  await Promise.all([lock.release(), other.release()]);
});

test("a listener that throws disturbs no call", async () => {
  const [redlock, other] = [newRedlock(masters, ONCE), newRedlock(masters)];
  redlock.on("error", () => {
    throw new Error("the listener's");
  });
  const name = freshName();
  const lock = await other.acquire([name], LONG);
  const error = await executionError(redlock.acquire([name], LONG));
  await Promise.all(error.attempts);
  await lock.release();
  await (await redlock.acquire([name], LONG)).release();
});

test("scripts of one's own cause a warning", async () => {
  const warned = new Promise<Error & { code?: string }>((resolve) => process.once("warning", resolve));
  new Redlock([new Redis5({ lazyConnect: true })], {}, { acquireScript: (text: string) => text });
  expect((await warned).code).toBe("HOLDFAST_REDLOCK_SCRIPTS");
});

test("a client that is refused leaves no listeners on the others [B157]", async () => {
  const [first, second] = masters.map((server) => server.connect());
  if (!first || !second) throw new Error("no connections");
  const before = first.eventNames().length;
  expect(() => new Redlock([first, second, {} as RedlockClient])).toThrow(TypeError);
  await until("nobody listens any more", () => first.eventNames().length === before);
});

const redis = new Redis5({ lazyConnect: true });
const lazy = new Redlock([redis]);
const noArray = new TypeError("redlock: it needs an array of clients, as in new Redlock([redis])");
const tooLarge = new RangeError("redlock: driftFactor must be below 0.65");
const made = (settings: object) => () => new Redlock([redis], settings);
const work = async () => {};

test.each<[what: string, call: () => unknown, error: RegExp | Error | typeof TypeError | typeof RangeError]>([
  ["no client", () => new Redlock([]), /at least one client/],
  ...[redis, "redis://localhost", 1, null, undefined].map(
    (clients) =>
      [`${clients && typeof clients} as clients`, () => new Redlock(clients as never), noArray] as [
        string,
        () => unknown,
        Error,
      ],
  ),
  ["a client that is none", () => new Redlock([{} as RedlockClient]), TypeError],
  ["keyPrefix", () => new Redlock([new Redis5({ lazyConnect: true, keyPrefix: "a:" })]), /keyPrefix/],
  ["a retryCount of -2", made({ retryCount: -2 }), RangeError],
  ["a retryDelay that is no number", made({ retryDelay: Number.NaN }), RangeError],
  ["a retryDelay that is a text", made({ retryDelay: "200" }), TypeError],
  ["a driftFactor of 1", made({ driftFactor: 1 }), RangeError],
  ["a driftFactor of 0.65", made({ driftFactor: 0.65 }), tooLarge],
  ["no resource", () => lazy.acquire([], LONG), TypeError],
  ["a resource without an array", () => lazy.acquire("a" as never, LONG), TypeError],
  ["an empty name", () => lazy.acquire([""], LONG), RangeError],
  ["a part of a millisecond", () => lazy.acquire(["a"], 1.5), /^Duration must be an integer value in milli/],
  ["no duration", () => lazy.acquire(["a"], undefined as never), TypeError],
  ["a call's retryCount of -3", () => lazy.acquire(["a"], LONG, { retryCount: -3 }), RangeError],
  ...[0.65, 2, Number.POSITIVE_INFINITY].flatMap((driftFactor): [string, () => unknown, Error][] => [
    [`an acquire's driftFactor ${driftFactor}`, () => lazy.acquire(["a"], LONG, { driftFactor }), tooLarge],
    [`a using's driftFactor ${driftFactor}`, () => lazy.using(["a"], LONG, { driftFactor }, work), tooLarge],
  ]),
  ["what is no lock", () => lazy.release({} as never), TypeError],
  ["a lock made by hand", () => lazy.release(new Lock(lazy, ["a"], "x", [], LONG)), ExecutionError as never],
  ["a duration below the threshold", () => lazy.using(["a"], 500, work), /automaticExtensionThreshold/],
  ["no routine", () => lazy.using(["a"], 1_000, {} as never), /routine/],
])("%s is refused before anything is sent [B232] [B261]", async (_what, call, error) => {
  await expect(async () => call()).rejects.toThrow(error);
  expect(redis.status).toBe("wait");
});
