/**
 * Answers that come after their call was given up or the client was closed: in virtual time, on the server in memory.
 */
import { channel } from "node:diagnostics_channel";
import { expect } from "vitest";
import { ReplyError } from "../../../src/entries/testing/reply.js";
import type { LockCallContext, LockClientOptions } from "../../../src/index.js";
import { type Scene, scene, testIn, watch } from "./virtual.js";

const callEnds = channel("tracing:holdfast:lock:asyncEnd");
const LEASES = "{job}:timeout";
/** The keys that permits leave on the server; a test deletes them, because it must leave nothing. */
const KEYS = ["job", LEASES];
const test = testIn(
  (options?: LockClientOptions) => scene({ commandTimeout: 300, ...options }),
  async ({ server }: Scene, body) => {
    await body();
    for (const key of KEYS) server.delete(key);
  },
);

/** The result of the call, which must be there without any time passing. */
async function soon<T>({ settle }: Scene, call: Promise<T>): Promise<T> {
  const watched = watch(call);
  await settle();
  expect(watched.state).toBe("resolved");
  return watched.value as T;
}

/** One permit of two, which the watchdog of the first client keeps. */
async function keptPermit(place: Scene) {
  const permits = place.a.client.getPermitExpirableSemaphore("job");
  await soon(place, permits.trySetPermits(2));
  return { permits, id: await soon(place, permits.acquire()) };
}

/** The remaining milliseconds of each permit's lease. */
const left = ({ server }: Scene): number[] =>
  [...(server.keys.get(LEASES, "zset") ?? new Map<string, number>()).values()].map(
    (end) => Number(end) - server.clock.wall(),
  );

test.for([[500], [3_600_000]] as const)(
  "a permit's lease of %i ms whose answer comes late is all that it has: the watchdog is done with it [B115]",
  async ([lease], place) => {
    const { a, advance } = place;
    const { permits, id } = await keptPermit(place);
    a.listen();
    a.keep("replies");
    const update = watch(permits.updateLeaseTime(id, lease));
    await advance(400);
    expect(update.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    expect(a.client.stats().held).toBe(0);
    expect(left(place)).toEqual([lease - 400]);
    await advance(60_000);
    expect(left(place)).toEqual([lease - 60_400]);
    await a.client.close({ timeout: 0 });
    expect(left(place)).toEqual([lease - 60_400]);
    expect(a.told).toEqual([]);
  },
);

test.with({ watchdogTimeout: 600 }).for([
  ["the deadline that it has", 60_000, 592],
  ["the end of the lease, if that is earlier", 200, 196],
] as const)(
  "a kept permit whose new lease gets no answer is lost at %s [B226]",
  async ([, lease, deadline], place) => {
    const { a, advance } = place;
    const { permits, id } = await keptPermit(place);
    a.listen("lost").keep("requests");
    const update = watch(permits.updateLeaseTime(id, lease));
    await advance(deadline - 1);
    expect(a.told).toEqual([]);
    await advance(2);
    expect(a.heard("lost")).toMatchObject([{ permitId: id, reason: "unreachable" }]);
    await advance(300);
    expect(update.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    expect(left(place)).toEqual([]);
    expect(await soon(place, permits.availablePermits())).toBe(2);
    expect(a.heard("lost")).toHaveLength(1);
  },
);

const renewing = test.with({ watchdogTimeout: 3_000, commandTimeout: 800 });

renewing(
  "a renewal that is tried again does not raise a lease that was made shorter meanwhile [B227]",
  async (place) => {
    const { a, server, advance } = place;
    const { permits, id } = await keptPermit(place);
    a.listen("lost");
    let isRefusing = true;
    server.instead = ({ name }) => {
      if (isRefusing && name === "permits/renew") throw new ReplyError("NOREPLICAS Not enough good replicas");
      return undefined;
    };
    // Renewed after 1,000 ms, and again after pauses of up to 250 ms.
    await advance(1_400);
    const update = watch(permits.updateLeaseTime(id, 500));
    isRefusing = false;
    await advance(300);
    expect(update.value).toBe(true);
    expect(left(place)).toEqual([expect.toSatisfy((ms: number) => ms > 0 && ms <= 500)]);
    await advance(500);
    expect(await soon(place, permits.availablePermits())).toBe(2);
    expect(a.told).toEqual([]);
  },
);

renewing("a new lease waits for a renewal no longer than its commandTimeout", async (place) => {
  const { a, advance } = place;
  const { permits, id } = await keptPermit(place);
  a.keep("requests");
  await advance(1_200);
  expect(a.onTheirWay).toBe(1);
  const update = watch(permits.updateLeaseTime(id, 500));
  await advance(799);
  expect(update.state).toBe("pending");
  await advance(2);
  expect(update.outcome).toBe("UNAVAILABLE");
  await a.letGo();
  expect(left(place)).toEqual([500]);
});

test("a new lease that is answered when its permit was lost is none: the permit is given back", async (place) => {
  const { a, advance } = place;
  const { permits, id } = await keptPermit(place);
  a.listen("lost").keep("replies");
  const update = watch(permits.updateLeaseTime(id, 200));
  await advance(250);
  expect(a.heard("lost")).toMatchObject([{ permitId: id, reason: "unreachable" }]);
  await a.letGo();
  expect(update.value).toBe(false);
  expect(await soon(place, permits.availablePermits())).toBe(2);
});

test("a kept permit whose new leases fail is kept by the watchdog again, once none is under way", async (place) => {
  const { a, server, advance } = place;
  const { permits, id } = await keptPermit(place);
  a.listen("lost", "renewed");
  server.instead = ({ name }) => {
    if (name === "permits/update") throw new ReplyError("NOPERM this user has no permissions");
    return undefined;
  };
  const updates = [1_000, 60_000].map((lease) => watch(permits.updateLeaseTime(id, lease)));
  await advance(0);
  expect(updates.map(({ outcome }) => outcome)).toEqual(["UNSUPPORTED", "UNSUPPORTED"]);
  await advance(100_000);
  expect(a.heard("lost")).toEqual([]);
  expect(a.heard("renewed").length).toBeGreaterThan(8);
  await soon(place, permits.release(id));
});

/** A semaphore of two permits. */
async function semaphoreOf(place: Scene) {
  const semaphore = place.a.client.getSemaphore("job");
  await soon(place, semaphore.trySetPermits(2));
  return semaphore;
}

test("a release of a semaphore is told once it is answered, though the call was given up [B116]", async (place) => {
  const { a, advance } = place;
  const semaphore = await semaphoreOf(place);
  a.listen().keep("requests");
  const release = watch(semaphore.release(2));
  await advance(400);
  expect(release.outcome).toBe("UNAVAILABLE");
  expect(a.told).toEqual([]);
  await a.letGo();
  expect(a.told).toEqual([{ name: "released", event: { lockName: "job", kind: "semaphore" } }]);
  expect(a.client.stats().released).toBe(1);
});

test("what a run had is told as released once that is answered, with how long it was held [B116]", async (place) => {
  const { a, advance, settle } = place;
  const semaphore = await semaphoreOf(place);
  a.listen("error", "released");
  const run = watch(semaphore.run(() => a.keep("requests")));
  await settle();
  expect(a.client.stats().held).toBe(0);
  await advance(400);
  expect(run.state).toBe("resolved");
  expect(a.told.map(({ name }) => name)).toEqual(["error"]);
  await a.letGo();
  expect(a.heard("released")).toEqual([{ lockName: "job", kind: "semaphore", held: expect.any(Number) }]);
});

/** Microtask ticks between an answer and the close: at some of them the grant is on its way to the caller. */
const TICKS = Array.from({ length: 25 }, (_, ticks) => [ticks] as const);

test.for(TICKS)(
  "closed %i ticks after a permit was granted, caller, event and channel say the same [B119]",
  async ([ticks], place) => {
    const { a, settle } = place;
    const permits = a.client.getPermitExpirableSemaphore("job");
    await soon(place, permits.trySetPermits(2));
    const outcomes: unknown[] = [];
    const onEnd = ({ outcome }: LockCallContext) => void outcomes.push(outcome);
    callEnds.subscribe(onEnd as never);
    a.listen("acquired", "gaveUp", "lost").keep("replies");
    const call = watch(permits.acquire());
    await settle();
    const arrived = a.letGo();
    for (let i = 0; i < ticks; i++) await undefined;
    await a.client.close({ timeout: 0 });
    await arrived;
    callEnds.unsubscribe(onEnd as never);
    const [told, isGranted] = [a.told.map(({ name }) => name), call.state === "resolved"];
    expect([told, outcomes]).toEqual(
      isGranted ? [["acquired", "lost"], ["acquired"]] : [["gaveUp"], ["closed"]],
    );
    expect(isGranted || call.outcome).toBe(isGranted || "CLIENT_CLOSED");
  },
);

test("renewals that are answered too late, each of them, keep a permit all the same [B243]", async (place) => {
  const { a, advance } = place;
  const { permits, id } = await keptPermit(place);
  a.listen("lost", "renewed");
  for (let past = 0; past < 60_000; past += 400) {
    a.keep("replies");
    for (let waited = 0; a.onTheirWay === 0 && waited < 30_000; waited += 100, past += 100)
      await advance(100);
    await advance(400);
    await a.letGo();
  }
  expect([a.heard("renewed"), a.heard("lost")]).toEqual([[], []]);
  await permits.release(id);
});
