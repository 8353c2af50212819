/** Contract section 8: what a client reports of its calls and holds: events, figures, long holds, node:diagnostics_channel. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, onTestFinished, test } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import { MultiLock } from "../../src/index.js";
import { EVENTS } from "../support/event-names.js";
import {
  failure,
  NAME,
  openVirtual,
  PLAIN,
  row,
  SINGLE,
  type VirtualPlace,
  watch,
} from "../support/place/index.js";

/** The members of a group have events of their own. */
const ONE = { kinds: SINGLE };

/** Everything that can happen to the calls of one lock. */
const work = async ({ lock, rival, pass, a, settle }: VirtualPlace) => {
  await pass(70);
  const theirs = await rival.lock();
  expect(await lock.tryLock()).toBeNull();
  const late = watch(lock.tryLock(200));
  const controller = new AbortController();
  const aborted = watch(lock.lock({ signal: controller.signal }));
  const waiting = watch(lock.lock({ lease: 90_000 }));
  await settle();
  expect(a.client.stats()).toMatchObject({ waiting: 3, held: 0 });
  await pass(200);
  controller.abort("enough");
  await pass(50);
  await theirs.unlock();
  await pass(100);
  expect([late.outcome, aborted.outcome]).toEqual([null, "enough"]);
  const outer = waiting.value ?? expect.fail("it was not granted");
  const inner = await lock.lock({ owner: outer });
  expect(a.client.stats()).toMatchObject({ waiting: 0, held: 2 });
  await pass(12_600);
  await inner.unlock();
  await outer.extend(100);
  await pass(100);
  await failure(outer.unlock());
  return outer.ownerId;
};

/** The figures after {@link work}. */
function expectFigures({ a }: VirtualPlace): void {
  const stats = a.client.stats();
  expect(stats).toMatchObject({
    ...{ acquired: 2, nested: 1, rejected: 1, timedOut: 1, aborted: 1, released: 1, lost: 1, renewals: 1 },
    ...{ held: 0, waiting: 0, wait: { count: 2 }, hold: { count: 2 } },
  });
  expect(stats.commands).toBeGreaterThan(6);
}

row(
  "a nested hold that is lost before its call resolves is told as acquired first [§1 events] [B223]",
  ONE,
  async ({ kind, lock, a, settle }) => {
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
    expect(told).toEqual([["acquired", false], ["acquired", true], ["lost"], ["lost"]]);
  },
);

row(
  "events tell all that happens to a call and to a hold [§1 events] [§8 rejected-gave-up]",
  ONE,
  async (place) => {
    const { a, kind } = place;
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
    expectFigures(place);
  },
);

row("figures count the same when nobody listens [§8 stats]", ONE, async (place) => {
  await work(place);
  expectFigures(place);
});

row(
  "a grant next to a hold that is on its way back is told as no nested one [§8 rejected-gave-up]",
  ONE,
  async (place) => {
    const { lock, a, settle } = place;
    a.listen("acquired");
    const outer = await lock.lock();
    for (const call of [lock.lock({ owner: outer }), outer.unlock()] as Promise<unknown>[]) void watch(call);
    await settle();
    expect(a.heard("acquired").map(({ nested }) => nested)).toEqual([false, false]);
    await a.client.close({ timeout: 0 });
  },
);

row(
  "a grant that no call was told of causes no event, and neither does its return [§1 events]",
  ONE,
  async (place) => {
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
  },
);

row(
  "a hold that lasts causes longHold once, when it is that old; one that is over does not [§8 rejected-gave-up]",
  { ...ONE, client: { warnAfter: 5_000 } },
  async ({ kind, lock, a, pass }) => {
    a.listen("longHold");
    const hold = await lock.lock();
    const other = await lock.lock({ owner: hold });
    await pass(4_999);
    await other.unlock();
    expect(a.heard("longHold")).toEqual([]);
    await pass(1);
    expect(a.heard("longHold")).toEqual([
      { lockName: NAME, kind: kind.kind, ownerId: hold.ownerId, held: 5_000 },
    ]);
    await pass(20_000);
    expect(a.heard("longHold")).toHaveLength(1);
    await hold.unlock();
  },
);

row(
  "a listener that throws disturbs no lock, no other listener, and none of the signal [§1 events] [B121]",
  ONE,
  async (place) => {
    const { lock, excluded, a, view, pass } = place;
    const thrown = new Set<string>();
    for (const name of EVENTS)
      for (const nth of [1, 2])
        a.client.on(name, () => {
          thrown.add(`${name} ${nth}`);
          throw new Error(`of the ${name} listener`);
        });
    const hold = await lock.lock();
    const waiting = watch(excluded.lock());
    await pass(12_000);
    await hold.unlock();
    await pass(10);
    const second = waiting.value ?? expect.fail("it was not granted");
    const aborted = new Promise((resolve) => second.signal.addEventListener("abort", resolve));
    await view.wipe();
    await pass(12_000);
    await aborted;
    expect(await failure(second.unlock())).toMatchObject({ code: "LOCK_LOST" });
    expect(await lock.run(() => "fine")).toBe("fine");
    const told = ["acquired", "waiting", "renewed", "released", "lost"];
    expect(thrown).toEqual(new Set(told.flatMap((name) => [`${name} 1`, `${name} 2`])));
  },
);

row(
  "on, once and off return the client, which hears of no other client's locks [§1 events]",
  ONE,
  async ({ lock, rival, a }) => {
    let heard = 0;
    const listener = () => void heard++;
    const cycle = async () => (await lock.lock()).unlock();
    expect(a.client.on("acquired", listener)).toBe(a.client);
    const hold = await lock.lock();
    expect(heard).toBe(1); // no later than the call's result
    await hold.unlock();
    expect(a.client.off("acquired", listener)).toBe(a.client);
    expect(a.client.once("acquired", listener)).toBe(a.client);
    for (const call of [cycle, cycle]) await call();
    expect(heard).toBe(2);
    a.listen();
    await (await rival.lock()).unlock();
    expect(a.told).toEqual([]);
  },
);

row(
  "a call that ends before it was begun is told by its error alone [§8 rejected-gave-up]",
  ONE,
  async ({ lock, a }) => {
    a.listen();
    await failure(lock.lock({ signal: AbortSignal.abort(new Error("before")) }));
    await a.client.close();
    expect(await failure(lock.lock())).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(a.told).toEqual([]);
  },
);

/** What these channels of node:diagnostics_channel tell from now on, until the test has finished. */
function heardOn(name: "hold" | "lock", ...parts: readonly string[]) {
  const seen: [part: string, context: object][] = [];
  for (const part of parts) {
    const on = `tracing:holdfast:${name}:${part}`;
    const hear = (context: unknown) => void seen.push([part, { ...(context as object) }]);
    subscribe(on, hear);
    onTestFinished(() => void unsubscribe(on, hear));
  }
  return seen;
}

row(
  "the channel of holds follows each from its grant to its end [§8 diagnostics]",
  ONE,
  async ({ kind, lock, a, pass }) => {
    const seen = heardOn("hold", "start", "end", "asyncStart", "asyncEnd", "error");
    const hold = await lock.lock();
    const about = { clientId: a.client.id, lockName: NAME, kind: kind.kind, ownerId: hold.ownerId };
    expect(seen.splice(0)).toEqual(["start", "end"].map((part) => [part, about]));
    await hold.unlock();
    const released = { ...about, outcome: "released" };
    expect(seen.splice(0)).toEqual(["asyncStart", "asyncEnd"].map((part) => [part, released]));
    const brief = await lock.lock({ lease: 1_000 });
    seen.splice(0);
    await pass(1_000);
    const lost = { ...about, ownerId: brief.ownerId, outcome: "lost", error: brief.signal.reason };
    expect(seen).toEqual(["error", "asyncStart", "asyncEnd"].map((part) => [part, lost]));
  },
);

row(
  "the channel of calls follows each to its outcome [§8 diagnostics]",
  ONE,
  async ({ kind, lock, rival, pass, a }) => {
    const seen = heardOn("lock", "asyncEnd", "error");
    const about = { clientId: a.client.id, lockName: NAME, kind: kind.kind };
    const hold = await lock.lock();
    const { ownerId } = hold;
    expect(seen.splice(0)).toMatchObject([["asyncEnd", { ...about, outcome: "acquired", ownerId }]]);
    await hold.unlock();
    const theirs = await rival.lock();
    seen.splice(0);
    await lock.tryLock();
    expect(seen.splice(0)).toMatchObject([["asyncEnd", { ...about, outcome: "rejected" }]]);
    const late = watch(lock.lock({ wait: 100 }));
    await pass(100);
    expect(late.outcome).toBe("WAIT_TIMEOUT");
    expect(seen.splice(0)).toMatchObject([
      ["error", { outcome: "timeout", error: late.error }],
      ["asyncEnd", { outcome: "timeout" }],
    ]);
    await theirs.unlock();
  },
);

row(
  "groups, semaphores and permits are counted as their events tell them [§8 stats]",
  { kinds: [PLAIN] },
  async (place) => {
    const { client, pass, server } = place;
    await new MultiLock(client.getLock("a"), client.getLock("b")).run(() => {
      // Two members, and the group.
      expect(client.stats()).toMatchObject({ acquired: 3, held: 2 });
    });
    const semaphore = client.getSemaphore("s");
    await semaphore.trySetPermits(1);
    await semaphore.acquire();
    expect(await semaphore.tryAcquire()).toBe(false);
    const waiting = watch(semaphore.tryAcquire(1, 2_500));
    await pass(2_500);
    expect(waiting.outcome).toBe(false);
    await semaphore.release();
    expect(await client.getSemaphore("none").drainPermits()).toBe(0);
    expect(client.stats()).toMatchObject({ acquired: 4, released: 4, held: 0, rejected: 1, timedOut: 1 });
    const permits = client.getPermitExpirableSemaphore("p");
    await permits.trySetPermits(1);
    const id = await permits.acquire();
    expect(client.stats()).toMatchObject({ acquired: 5, held: 1 });
    await pass(10_000);
    expect(client.stats().renewals).toBe(1);
    await permits.release(id);
    expect(client.stats()).toMatchObject({ released: 5, held: 0, lost: 0 });
    const { wait, hold } = client.stats();
    for (const { count, buckets } of [wait, hold]) {
      expect(buckets.reduce((sum, bucket) => sum + bucket.count, 0)).toBe(count);
      expect(buckets.at(-1)?.le).toBe(Number.POSITIVE_INFINITY);
    }
    for (const key of ["s", "p"]) server.delete(key);
  },
);

test("a renewal that fails for many is told of each, by a cause that names no other [§1 events] [B80]", async () => {
  const { a, pass } = openVirtual(PLAIN, { prefix: "shop", watchdogTimeout: 9_000, commandTimeout: 1_000 });
  const names = ["one", "two"];
  for (const name of names) await a.client.getLock(name).lock();
  const seats = a.client.getPermitExpirableSemaphore("seats");
  await seats.trySetPermits(1);
  await seats.acquire();
  a.listen("suspended");
  a.keep("requests");
  await pass(5_000);
  expect(a.heard("suspended").map(({ lockName }) => lockName)).toEqual([...names, "seats"]);
  for (const { cause } of a.heard("suspended")) {
    expect(cause).toMatchObject({ code: "UNAVAILABLE", lockName: "" });
    expect((cause as Error).message).toMatch(/^no usable answer from Redis in time: /);
  }
});

test("what the server said when it refused a call is the cause of its UNAVAILABLE, until the server answers [§6 cause] [B174]", async () => {
  const { a, b, server, pass } = openVirtual(PLAIN, { commandTimeout: 1_000 });
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
  await pass(1_000);
  for (const { error } of calls)
    expect(error).toMatchObject({ code: "UNAVAILABLE", cause: { message: refused } });
  server.instead = () => undefined;
  await pass(1_000);
  a.keep("requests");
  const silent = watch(other.lock({ wait: 300 }));
  await pass(300);
  expect(silent.error).toMatchObject({ cause: { message: expect.stringMatching(/gave no answer$/) } });
  await a.letGo();
  expect(await b.client.getSemaphore("permits").availablePermits()).toBe(4);
});
