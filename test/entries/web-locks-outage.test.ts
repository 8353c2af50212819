/** What requests of the Web Locks API do while Redis gives no answer, in virtual time. */
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestClient, createTestServer, type TestClient } from "../../src/entries/testing.js";
import {
  createLockManager,
  type LockManager,
  type LockMode,
  type LockOptions,
} from "../../src/entries/web-locks.js";
import { RedisUnavailableError } from "../../src/index.js";
import { deferred, failure, watch } from "../contract/helpers.js";
import { until, type Watched } from "../support/index.js";

/** The `commandTimeout` of all clients here. */
const LIMIT = 3_000;
const NAME = "resource";
const OUTAGE = 20_000;

interface Process extends TestClient {
  readonly locks: LockManager;
}

function processes(): [Process, Process] {
  const server = createTestServer();
  const made = () => {
    const given = createTestClient({ server, commandTimeout: LIMIT });
    const { client } = given;
    onTestFinished(() => client.close({ timeout: 0 }));
    return { ...given, locks: createLockManager(client) };
  };
  return [made(), made()];
}

/** Lets so much time pass in steps, so that each timer finds what the timers before it have done. */
async function pass({ advance }: TestClient, ms: number): Promise<void> {
  for (let at = 0; at < ms; at += 500) await advance(500);
}

/** Lets time pass until all these are granted. */
async function granted({ advance }: TestClient, requests: Promise<unknown>[]): Promise<void> {
  const states = requests.map(watch);
  await until("all are granted", async () => {
    await advance(500);
    return states.every(({ state }) => state === "resolved");
  });
}

/** Holds the lock until the returned function is called. */
async function hold({ locks, settle }: Process): Promise<() => void> {
  const end = deferred();
  void locks.request(NAME, () => end.promise);
  await settle();
  return () => end.resolve(undefined);
}

describe.each([{ holder: "another process" }, { holder: "the same process" }])(
  "the lock is held by $holder",
  ({ holder }) => {
    test.each<[LockMode, LockMode]>([
      ["shared", "exclusive"],
      ["exclusive", "exclusive"],
      ["exclusive", "shared"],
    ])(
      "requests (%s, then %s) that stand behind one which is aborted in an outage wait on, in their order [B257]",
      async (...modes) => {
        const [here, elsewhere] = processes();
        const { locks, settle, outage } = here;
        const release = await hold(holder === "another process" ? elsewhere : here);
        const controller = new AbortController();
        const { signal } = controller;
        // Of the other mode than the next one, which so stands behind it.
        const aborted = locks.request(
          NAME,
          { mode: modes[0] === "shared" ? "exclusive" : "shared", signal },
          () => {},
        );
        await settle();
        const order: string[] = [];
        const waiting = modes.map((mode, n) =>
          locks.request(NAME, { mode }, () => order.push(`${mode} ${n}`)),
        );
        await settle();
        await outage(OUTAGE);
        controller.abort("aborted");
        await expect(aborted).rejects.toBe("aborted");
        const states = waiting.map(watch);
        await pass(here, OUTAGE + LIMIT);
        expect(states.map(({ outcome }) => outcome)).toEqual(["pending", "pending"]);
        release();
        await granted(here, waiting);
        expect(order).toEqual(modes.map((mode, n) => `${mode} ${n}`));
      },
    );
  },
);

describe("requests that come in an outage", () => {
  test("the first one is rejected, those behind it wait on in their order, as calls of the client do [B258]", async () => {
    const [here] = processes();
    const { locks, client, outage } = here;
    await outage(OUTAGE);
    const writeLock = client.getReadWriteLock("of the client").writeLock();
    const order: { request: number[]; call: number[] } = { request: [], call: [] };
    const requests = [0, 1, 2, 3].map((n) => locks.request(NAME, () => order.request.push(n)));
    const calls = [0, 1, 2, 3].map((n) => writeLock.run(() => order.call.push(n)));
    const states = [...requests, ...calls].map(watch);
    await pass(here, LIMIT);
    const expected = ["UNAVAILABLE", "pending", "pending", "pending"];
    expect(states.map(({ outcome }) => outcome)).toEqual([...expected, ...expected]);
    await pass(here, OUTAGE);
    await granted(here, [...requests.slice(1), ...calls.slice(1)]);
    expect(order).toEqual({ request: [1, 2, 3], call: [1, 2, 3] });
  });

  test.each<LockOptions>([{ ifAvailable: true }, { ifAvailable: true, mode: "shared" }, { steal: true }])(
    "%o: each is rejected within commandTimeout, however many there are [B258]",
    async (options) => {
      const [here] = processes();
      const { locks, advance, outage } = here;
      await outage(OUTAGE);
      const took: number[] = [];
      let now = 0;
      const ended: Promise<unknown>[] = [];
      while (now < OUTAGE - LIMIT) {
        const began = now;
        const request = failure(locks.request(NAME, options, () => {}));
        ended.push(
          request.then((error) => {
            took.push(now - began);
            expect(error).toMatchObject({ code: "UNAVAILABLE" });
          }),
        );
        await advance(1_000);
        now += 1_000;
      }
      await pass(here, LIMIT);
      await Promise.all(ended);
      expect(Math.max(...took)).toBeLessThanOrEqual(LIMIT);
    },
  );

  test("one behind a request with ifAvailable, or behind one that steals, is rejected only if it is such a one", async () => {
    const [here] = processes();
    const { locks, outage } = here;
    await outage(OUTAGE);
    const request = (name: string, options: LockOptions) =>
      locks.request(name, options, (lock) => lock?.mode);
    const made = [
      ...[{ ifAvailable: true }, { ifAvailable: true }, {}].map((options) => request("one", options)),
      ...[{}, { steal: true }, { steal: true }].map((options) => request("another", options)),
    ];
    const states = made.map(watch);
    await pass(here, LIMIT);
    // The first without an option has begun before the others came.
    expect(states.map(({ outcome }) => outcome)).toEqual([
      ...["UNAVAILABLE", "UNAVAILABLE", "pending"],
      ...["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"],
    ]);
    await pass(here, OUTAGE);
    expect(await made[2]).toBe("exclusive");
  });
});

describe("a request that waits on though Redis gives no answer", () => {
  /** It came behind another one, which was rejected. */
  async function waitingOn(here: Process, options: LockOptions = {}): Promise<Watched<unknown>> {
    await here.outage(OUTAGE);
    const first = here.locks.request(NAME, () => {});
    const watched = watch(here.locks.request(NAME, options, () => "granted"));
    expect(await failure(first)).toMatchObject({ code: "UNAVAILABLE" });
    return watched;
  }

  test("ends when its signal aborts", async () => {
    const [here] = processes();
    const controller = new AbortController();
    const waiting = waitingOn(here, { signal: controller.signal });
    await pass(here, 2 * LIMIT);
    const { promise, outcome } = await waiting;
    expect(outcome).toBe("pending");
    controller.abort("aborted");
    await expect(promise).rejects.toBe("aborted");
  });

  test("ends when the client is closed", async () => {
    const [here] = processes();
    const waiting = waitingOn(here);
    await pass(here, 2 * LIMIT);
    const { promise, outcome } = await waiting;
    expect(outcome).toBe("pending");
    await here.client.close({ timeout: 0 });
    expect(await failure(promise)).toMatchObject({ code: "CLIENT_CLOSED" });
  });

  test("asks again after a pause, also if it is told at once that there is no answer", async () => {
    const [here] = processes();
    const { client, locks, settle } = here;
    const end = deferred();
    const asked: number[] = [];
    const getReadWriteLock = client.getReadWriteLock.bind(client);
    client.getReadWriteLock = (name, options) => {
      const lock = getReadWriteLock(name, options);
      const side = lock.writeLock();
      const run = side.run.bind(side);
      const silent: typeof run = async (...given) => {
        if (asked.push(performance.now()) === 1) await end.promise;
        if (asked.length <= 4) throw new RedisUnavailableError(name);
        return run(...given);
      };
      side.run = silent;
      lock.writeLock = () => side;
      return lock;
    };
    const first = watch(locks.request(NAME, () => {}));
    const second = locks.request(NAME, () => "granted");
    await settle();
    end.resolve(undefined);
    expect(await second).toBe("granted");
    expect(first.outcome).toBe("UNAVAILABLE");
    const pauses = asked.slice(2).map((at, n) => at - (asked[n + 1] as number));
    for (const ms of pauses) expect(ms).toBeGreaterThan(100);
    expect(pauses).toHaveLength(3);
  });
});
