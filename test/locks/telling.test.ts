/** What a client reports of its holds: events, figures, long holds, node:diagnostics_channel. In virtual time. */
import { channel, tracingChannel } from "node:diagnostics_channel";
import { describe, expect, test } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, type KindScene, NAME, scene, sceneOf, testIn, watch } from "./scene.js";

describe.each(byName(KINDS))("%s", (_, kind) => {
  const test = testIn((options) => sceneOf(kind, options));

  /** Everything that can happen to the calls of one lock. */
  const work = async ({ lock, rival, advance, a, settle }: KindScene) => {
    await advance(70);
    const theirs = await rival.lock();
    expect(await lock.tryLock()).toBeNull();
    const late = watch(lock.tryLock(200));
    const controller = new AbortController();
    const aborted = watch(lock.lock({ signal: controller.signal }));
    const waiting = watch(lock.lock({ lease: 90_000 }));
    await settle();
    expect(a.client.stats()).toMatchObject({ waiting: 3, held: 0 });
    await advance(200);
    controller.abort("enough");
    await advance(50);
    await theirs.unlock();
    await advance(100);
    expect([late.outcome, aborted.outcome]).toEqual([null, "enough"]);
    const outer = waiting.value ?? expect.fail("it was not granted");
    const inner = await lock.lock({ owner: outer });
    expect(a.client.stats()).toMatchObject({ waiting: 0, held: 2 });
    await advance(12_600);
    await inner.unlock();
    await outer.extend(100);
    await advance(100);
    await failure(outer.unlock());
    return outer.ownerId;
  };

  test("a nested hold that is lost before its call resolves is told as acquired first [B223]", async ({
    lock,
    a,
    settle,
  }) => {
    const told: unknown[] = [];
    for (const name of ["acquired", "lost"] as const)
      a.client.on(name, (event) => {
        if (event.kind === kind.kind) told.push("nested" in event ? [name, event.nested] : [name]);
      });
    const owner = a.client.newOwner();
    await lock.lock({ owner });
    const nested = watch(lock.lock({ owner }));
    await lock.forceUnlock();
    await settle();
    expect(nested.value?.isHeld).toBe(false);
    expect(told).toEqual([["acquired", false], ["lost"], ["acquired", true], ["lost"]]);
  });

  test("events tell all that happens to a call and to a hold", async (place) => {
    const { a } = place;
    a.listen();
    const ownerId = await work(place);
    const about = { lockName: NAME, kind: kind.kind };
    expect(a.heard("rejected")).toMatchObject([about]);
    expect(a.heard("gaveUp")).toMatchObject([
      { ...about, reason: "timeout", waited: 200 },
      { ...about, reason: "abort", waited: 200 },
    ]);
    expect(a.heard("waiting")).toHaveLength(3);
    const owners = new Set(a.heard("waiting").map((event) => event.ownerId));
    expect(owners.size).toBe(3);
    for (const { ownerId: gone } of a.heard("gaveUp")) expect(owners.has(gone)).toBe(true);
    const [outer, inner] = a.heard("acquired");
    expect(outer).toMatchObject({ ...about, ownerId, nested: false });
    expect(outer?.waited).toBeGreaterThanOrEqual(250);
    expect(inner).toEqual({ ...about, ownerId, waited: 0, nested: true });
    expect(a.heard("renewed")).toEqual([{ ...about, ownerId }]);
    expect(a.heard("released")).toEqual([{ ...about, ownerId, held: 12_600 }]);
    expect(a.heard("lost")).toMatchObject([{ ...about, ownerId, reason: "expired" }]);
    expect(a.heard("error")).toEqual([]);
  });

  test.for([
    ["and nobody listens", false],
    ["and somebody listens", true],
  ])("figures count the same, %s", async ([, isHeard], place) => {
    const { a } = place;
    if (isHeard) a.listen();
    await work(place);
    const stats = a.client.stats();
    expect(stats).toMatchObject({
      acquired: 2,
      nested: 1,
      rejected: 1,
      timedOut: 1,
      aborted: 1,
      released: 1,
      lost: 1,
      renewals: 1,
      held: 0,
      waiting: 0,
      wait: { count: 2 },
      hold: { count: 2 },
    });
    expect(stats.commands).toBeGreaterThan(6);
  });

  test("a grant beside a hold that is on its way back is told as no nested one", async (place) => {
    const { lock, a, settle } = place;
    a.listen("acquired");
    const outer = await lock.lock();
    for (const call of [lock.lock({ owner: outer }), outer.unlock()] as Promise<unknown>[]) void watch(call);
    await settle();
    expect(a.heard("acquired").map(({ nested }) => nested)).toEqual([false, false]);
    await a.client.close({ timeout: 0 });
  });

  test("a release that is asked for outside the library's hands is told once", async ({ lock, a }) => {
    a.listen("released", "acquired");
    await lock.run(() => 1);
    await lock.run((hold) => hold.unlock());
    expect([a.heard("acquired").length, a.heard("released").length]).toEqual([2, 2]);
  });

  test("a grant that no call was told of is told by no event, neither is its return", async (place) => {
    const { lock, a, settle } = place;
    await (await lock.lock()).unlock();
    a.listen();
    const controller = new AbortController();
    a.keep("replies");
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    controller.abort("enough");
    await a.letGo();
    await settle();
    expect(call.outcome).toBe("enough");
    expect(a.told.map(({ name }) => name)).toEqual(["gaveUp"]);
  });

  test.with({ warnAfter: 5_000 })(
    "a hold that lasts is told once, when it is that old; one that is over is not",
    async ({ lock, a, advance }) => {
      a.listen("longHold");
      const hold = await lock.lock();
      const other = await lock.lock({ owner: hold });
      const short = await lock.lock({ owner: hold, lease: 2_000 });
      await advance(4_999);
      await other.unlock();
      expect(a.heard("longHold")).toEqual([]);
      await advance(1);
      expect(a.heard("longHold")).toEqual([
        { lockName: NAME, kind: kind.kind, ownerId: hold.ownerId, held: 5_000 },
      ]);
      await advance(20_000);
      expect(a.heard("longHold")).toHaveLength(1);
      await hold.unlock();
      expect(short.isHeld).toBe(false);
    },
  );

  test("a listener that throws disturbs nothing", async ({ lock, a }) => {
    for (const name of ["acquired", "released", "lost"] as const)
      a.client.on(name, () => {
        throw new Error("of the listener");
      });
    const hold = await lock.lock();
    await hold.unlock();
    expect(hold.isHeld).toBe(false);
  });

  test("the channel of holds follows each from its grant to its end", async ({ lock, a, advance }) => {
    const seen: unknown[] = [];
    const note = (name: string) => (context: unknown) => seen.push([name, { ...(context as object) }]);
    const subscribers = {
      start: note("start"),
      end: note("end"),
      asyncStart: note("asyncStart"),
      asyncEnd: note("asyncEnd"),
      error: note("error"),
    };
    const holds = tracingChannel("holdfast:hold");
    holds.subscribe(subscribers);
    try {
      const hold = await lock.lock();
      const about = { clientId: a.client.id, lockName: NAME, kind: kind.kind, ownerId: hold.ownerId };
      expect(seen.splice(0)).toEqual([
        ["start", about],
        ["end", about],
      ]);
      await hold.unlock();
      const released = { ...about, outcome: "released" };
      expect(seen.splice(0)).toEqual([
        ["asyncStart", released],
        ["asyncEnd", released],
      ]);
      const brief = await lock.lock({ lease: 1_000 });
      seen.splice(0);
      await advance(1_000);
      const lost = { ...about, ownerId: brief.ownerId, outcome: "lost", error: brief.signal.reason };
      expect(seen).toEqual([
        ["error", lost],
        ["asyncStart", lost],
        ["asyncEnd", lost],
      ]);
    } finally {
      holds.unsubscribe(subscribers);
    }
  });

  test("the channel of calls follows each to its outcome", async ({ lock, rival, advance, a }) => {
    const seen: [string, Record<string, unknown>][] = [];
    const names = ["asyncEnd", "error"].map((name) => `tracing:holdfast:lock:${name}`);
    const listener = (context: unknown, name: string | symbol) =>
      seen.push([String(name).split(":").at(-1) ?? "", { ...(context as object) }]);
    for (const name of names) channel(name).subscribe(listener);
    try {
      const about = { clientId: a.client.id, lockName: NAME, kind: kind.kind };
      const hold = await lock.lock();
      expect(seen.splice(0)).toMatchObject([
        ["asyncEnd", { ...about, outcome: "acquired", ownerId: hold.ownerId }],
      ]);
      await hold.unlock();
      const theirs = await rival.lock();
      seen.splice(0);
      await lock.tryLock();
      expect(seen.splice(0)).toMatchObject([["asyncEnd", { ...about, outcome: "rejected" }]]);
      const late = watch(lock.lock({ wait: 100 }));
      await advance(100);
      expect(late.outcome).toBe("WAIT_TIMEOUT");
      expect(seen.splice(0)).toMatchObject([
        ["error", { outcome: "timeout", error: late.error }],
        ["asyncEnd", { outcome: "timeout" }],
      ]);
      await theirs.unlock();
    } finally {
      for (const name of names) channel(name).unsubscribe(listener);
    }
  });
});

const tracing = testIn(() => scene({ traceHolds: true, presence: true }));

tracing("the option traceHolds tells where a hold was taken", async ({ a, b, server }) => {
  const hold = await a.client.getLock(NAME).lock();
  await server.advance(2_000);
  const info = await b.client.inspect(NAME);
  expect(info?.holders[0]).toMatchObject({ ownerId: hold.ownerId, callSite: expect.stringMatching(/\S/) });
  await hold.unlock();
});

test("a renewal that fails for many is told of each, by a cause that names no other [B80]", async () => {
  const { a, server } = scene({ prefix: "shop", watchdogTimeout: 9_000, commandTimeout: 1_000 });
  const names = ["one", "two"];
  for (const name of names) await a.client.getLock(name).lock();
  const seats = a.client.getPermitExpirableSemaphore("seats");
  await seats.trySetPermits(1);
  await seats.acquire();
  a.listen("suspended");
  a.keep("requests");
  await server.advance(5_000);
  expect(a.heard("suspended").map(({ lockName }) => lockName)).toEqual([...names, "seats"]);
  for (const { cause } of a.heard("suspended")) {
    expect(cause).toMatchObject({ code: "UNAVAILABLE", lockName: "" });
    expect((cause as Error).message).toMatch(/^no usable answer from Redis in time: /);
  }
});

test("what the server said when it refused a call is the cause of its UNAVAILABLE, until the server answers [B174]", async () => {
  const { a, b, server } = scene({ commandTimeout: 1_000 });
  const refused = "NOREPLICAS Not enough good replicas to write.";
  const lock = a.client.getLock(NAME);
  const permits = a.client.getSemaphore("permits");
  await permits.trySetPermits(3);
  const hold = await lock.lock();
  server.instead = ({ name }) => {
    if (name.includes("/")) throw new ReplyError(refused);
    return undefined;
  };
  const other = a.client.getLock("other");
  const started: Promise<unknown>[] = [
    hold.unlock(),
    other.lock(),
    other.lock({ wait: 300 }),
    permits.release(),
    permits.tryAcquire(1, 300),
    a.client.getCountDownLatch("latch").trySetCount(2),
  ];
  const calls = started.map((call) => watch(call));
  await server.advance(1_000);
  for (const { error } of calls)
    expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { message: refused } });
  server.instead = () => undefined;
  await server.advance(1_000);
  a.keep("requests");
  const silent = watch(other.lock({ wait: 300 }));
  await server.advance(300);
  expect(silent.error).toMatchObject({ cause: { message: expect.stringMatching(/gave no answer$/) } });
  await a.letGo();
  expect(await b.client.getSemaphore("permits").availablePermits()).toBe(4);
});
