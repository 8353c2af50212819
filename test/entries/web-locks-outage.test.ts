/** What requests of the Web Locks API do while Redis gives no answer, in virtual time. */
import { describe, expect, test } from "vitest";
import { createTestClient, createTestServer, type TestClient } from "../../src/entries/testing.js";
import {
  createLockManager,
  type LockManager,
  type LockMode,
  type LockOptions,
} from "../../src/entries/web-locks.js";
import { deferred, failure, watch } from "../contract/helpers.js";
import { forTest, until, type Watched } from "../support/index.js";

/** The `commandTimeout` of all clients here. */
const LIMIT = 3_000;
const NAME = "resource";
const OUTAGE = 20_000;

interface Process extends TestClient {
  readonly locks: LockManager;
  request(options: LockOptions, callback?: () => unknown): Promise<unknown>;
}

function processes(): [Process, Process] {
  const server = createTestServer();
  const made = () => {
    const given = createTestClient({ server, commandTimeout: LIMIT });
    const locks = createLockManager(forTest(given.client));
    const request = (options: LockOptions, callback = () => {}) => locks.request(NAME, options, callback);
    return { ...given, locks, request };
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

/** Holds the lock until `release`. */
async function hold({ request, settle }: Process) {
  const end = deferred();
  const done = request({}, () => end.promise);
  await settle();
  return { done, release: () => end.resolve(undefined) };
}

const outcomes = (requests: readonly Watched<unknown>[]) => requests.map(({ outcome }) => outcome);

const HOLDERS = ["another process", "the same process"];
const MODES: [LockMode, LockMode][] = [
  ["shared", "exclusive"],
  ["exclusive", "exclusive"],
  ["exclusive", "shared"],
];

test.each(HOLDERS.flatMap((holder) => MODES.map((modes) => ({ holder, modes }))))(
  "requests $modes behind one of an outage that is aborted wait on in their order, while $holder holds the lock [B257]",
  async ({ holder, modes }) => {
    const [here, elsewhere] = processes();
    const { request, settle, outage } = here;
    const { release } = await hold(holder === "another process" ? elsewhere : here);
    const controller = new AbortController();
    // Of the other mode than the next one, which so stands behind it.
    const mode = modes[0] === "shared" ? "exclusive" : "shared";
    const aborted = request({ mode, signal: controller.signal });
    await settle();
    const order: number[] = [];
    const waiting = modes.map((each, n) => request({ mode: each }, () => order.push(n)));
    await settle();
    await outage(OUTAGE);
    controller.abort("aborted");
    await expect(aborted).rejects.toBe("aborted");
    const states = waiting.map(watch);
    await pass(here, OUTAGE + LIMIT);
    expect(outcomes(states)).toEqual(["pending", "pending"]);
    release();
    await granted(here, waiting);
    expect(order).toEqual([0, 1]);
  },
);

test("a held lock is lost at its deadline in an outage that lasts, and those who wait for it go on waiting", async () => {
  const [here, elsewhere] = processes();
  const { done, release } = await hold(elsewhere);
  const lost = failure(done);
  const waiting = [{}, { mode: "shared" as const }].map((options) => here.request(options));
  await here.settle();
  const states = waiting.map(watch);
  const forLong = 10 * OUTAGE;
  await Promise.all([here.outage(forLong), elsewhere.outage(forLong)]);
  await pass(here, forLong / 2);
  expect(await lost).toMatchObject({
    name: "AbortError",
    cause: { code: "LOCK_LOST", reason: "unreachable" },
  });
  expect(outcomes(states)).toEqual(["pending", "pending"]);
  release();
  await granted(here, waiting);
});

describe("of requests that come in an outage", () => {
  test("the first one is rejected, and those behind it wait on in their order [B258]", async () => {
    const [here] = processes();
    await here.outage(OUTAGE);
    const order: number[] = [];
    const requests = [0, 1, 2, 3].map((n) => here.request({}, () => order.push(n)));
    const states = requests.map(watch);
    await pass(here, LIMIT);
    expect(outcomes(states)).toEqual(["UNAVAILABLE", "pending", "pending", "pending"]);
    await pass(here, OUTAGE);
    await granted(here, requests.slice(1));
    expect(order).toEqual([1, 2, 3]);
  });

  test.each<LockOptions>([{ ifAvailable: true }, { ifAvailable: true, mode: "shared" }, { steal: true }])(
    "each with %o is rejected within commandTimeout, however many there are [B258]",
    async (options) => {
      const [here] = processes();
      const { request, advance, outage } = here;
      await outage(OUTAGE);
      const took: number[] = [];
      let now = 0;
      const ended: Promise<unknown>[] = [];
      while (now < OUTAGE - LIMIT) {
        const began = now;
        const rejected = failure(request(options)).then((error) => {
          took.push(now - began);
          expect(error).toMatchObject({ code: "UNAVAILABLE" });
        });
        ended.push(rejected);
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
    expect(outcomes(states)).toEqual([
      ...["UNAVAILABLE", "UNAVAILABLE", "pending"],
      ...["UNAVAILABLE", "UNAVAILABLE", "UNAVAILABLE"],
    ]);
    await pass(here, OUTAGE);
    expect(await made[2]).toBe("exclusive");
  });
});

type End = (here: Process, controller: AbortController) => unknown;
test.each<[how: string, end: End, error: unknown]>([
  ["its signal aborts", (_, controller) => controller.abort({ code: "aborted" }), { code: "aborted" }],
  ["the client is closed", ({ client }) => client.close({ timeout: 0 }), { code: "CLIENT_CLOSED" }],
])("a request that waits on without an answer of Redis ends when %s", async (_how, end, expected) => {
  const [here] = processes();
  const controller = new AbortController();
  await here.outage(OUTAGE);
  const first = failure(here.request({}));
  const { signal } = controller;
  const watched = watch(here.request({ signal }));
  await pass(here, 2 * LIMIT);
  expect(await first).toMatchObject({ code: "UNAVAILABLE" });
  expect(watched.outcome).toBe("pending");
  const [ended] = await Promise.all([
    watched.promise.catch((error: unknown) => error),
    end(here, controller),
  ]);
  expect(ended).toMatchObject(expected as object);
});
