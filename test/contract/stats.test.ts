/** Contract section 8: `stats()`, the events `rejected`, `gaveUp` and `longHold`, and the tracing channels. */
import { tracingChannel } from "node:diagnostics_channel";
import { describe, expect, test as plain } from "vitest";
import {
  type HoldContext,
  isLockError,
  type LockCallContext,
  LockClient,
  MultiLock,
} from "../../src/index.js";
import { connectionLike, startRedis, UNHURRIED, until } from "../support/index.js";
import { failure, nextEvent, recordEvents, untilWaiting } from "./helpers.js";
import { eachSingleKind } from "./scene.js";

eachSingleKind("what is told of calls and holds", (base, kind) => {
  const test = base.extend<{ mine: LockClient }>({
    mine: async ({ server }, use) => {
      const client = new LockClient(connectionLike(server.connect()), { ...UNHURRIED, warnAfter: 100 });
      await use(client);
      await client.close({ timeout: 0 });
    },
  });
  const about = (lockName: string) => ({
    lockName,
    kind: kind.kind,
    ownerId: expect.stringMatching(/^[0-9a-f-]{36}:\d+$/),
  });

  describe("events", () => {
    test("acquired tells which grants are nested", async ({ mine, lockName }) => {
      const events = recordEvents(mine);
      const lock = kind.make(mine, lockName);
      await lock.run(() => lock.run(() => undefined));
      const nested = events.flatMap(({ name, payload }) =>
        name === "acquired" ? [(payload as { nested: boolean }).nested] : [],
      );
      expect(nested).toEqual([false, true]);
    });

    test("rejected: a single try that stayed with others; gaveUp: timeout, abort, closed", async ({
      mine,
      rival,
      lockName,
    }) => {
      const events = recordEvents(mine);
      const told = () => events.filter(({ name }) => name === "rejected" || name === "gaveUp");
      const lock = kind.make(mine, lockName);
      const hold = await rival.lock();
      expect(await lock.tryLock()).toBeNull();
      expect(told()).toEqual([{ name: "rejected", payload: about(lockName) }]);
      expect(await lock.tryLock(2_500)).toBeNull();
      expect(await failure(lock.lock({ wait: 2_500 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
      const ending = new AbortController();
      const aborted = await untilWaiting(mine, () => lock.lock({ signal: ending.signal }));
      ending.abort(new Error("enough"));
      await expect(aborted.done).rejects.toThrow("enough");
      const closed = await untilWaiting(mine, () => lock.lock());
      await mine.close({ timeout: 0 });
      expect(isLockError(await failure(closed.done), "CLIENT_CLOSED")).toBe(true);
      const gaveUp = (reason: string) => ({
        name: "gaveUp",
        payload: { ...about(lockName), reason, waited: expect.any(Number) },
      });
      expect(told().slice(1)).toEqual(["timeout", "timeout", "abort", "closed"].map(gaveUp));
      const stats = mine.stats();
      expect(stats).toMatchObject({ rejected: 1, timedOut: 2, aborted: 1, acquired: 0, waiting: 0 });
      await hold.unlock();
    });

    test("what ends before it was begun is told by its error alone", async ({ mine, lockName }) => {
      const events = recordEvents(mine);
      const lock = kind.make(mine, lockName);
      await expect(lock.lock({ signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
      await mine.close();
      expect(await failure(lock.lock())).toMatchObject({ code: "CLIENT_CLOSED" });
      expect(events).toEqual([]);
    });

    test("longHold: once for a hold that outlives warnAfter, not for a short one", async ({
      mine,
      lockName,
    }) => {
      const lock = kind.make(mine, lockName);
      const told: unknown[] = [];
      mine.on("longHold", (event) => told.push(event));
      await until("one was given back before that", async () => {
        told.length = 0;
        const released = nextEvent(mine, "released");
        await (await lock.lock()).unlock();
        return ((await released) as { held: number }).held < 100;
      });
      const hold = await lock.lock();
      const first = await nextEvent(mine, "longHold");
      expect(first).toEqual({ lockName, kind: kind.kind, ownerId: hold.ownerId, held: expect.any(Number) });
      expect((first as { held: number }).held).toBeGreaterThanOrEqual(99);
      await hold.unlock();
      expect(told).toEqual([first]);
    });
  });

  test("stats() counts, and says what is held and awaited now", async ({ mine, rivals, lockName }) => {
    const [lock, rival] = [kind.make(mine, lockName), kind.rival.make(rivals, lockName)];
    const none = mine.stats();
    expect(none).toMatchObject({
      acquired: 0,
      nested: 0,
      released: 0,
      lost: 0,
      renewals: 0,
      held: 0,
      waiting: 0,
    });
    expect(none.wait).toMatchObject({ count: 0, sum: 0 });
    await mine.scope(async () => {
      await lock.lock();
      await lock.lock();
      expect(mine.stats()).toMatchObject({ acquired: 2, nested: 1, released: 0, held: 2 });
      await lock.unlock();
      await lock.unlock();
    });
    expect(mine.stats()).toMatchObject({ acquired: 2, nested: 1, released: 2, held: 0 });
    const hold = await rival.lock();
    const waiter = await untilWaiting(mine, () => lock.lock());
    expect(mine.stats()).toMatchObject({ held: 0, waiting: 1 });
    await hold.unlock();
    const next = await waiter.done;
    expect(mine.stats()).toMatchObject({ acquired: 3, held: 1, waiting: 0 });
    await lock.forceUnlock();
    expect(next.isHeld).toBe(false);
    const { lost, held, wait, hold: holds, commands } = mine.stats();
    expect({ lost, held }).toEqual({ lost: 1, held: 0 });
    expect(commands).toBeGreaterThanOrEqual(7);
    for (const { count, buckets } of [wait, holds]) {
      expect(count).toBe(3);
      expect(buckets.reduce((sum, bucket) => sum + bucket.count, 0)).toBe(3);
      expect(buckets.at(-1)?.le).toBe(Number.POSITIVE_INFINITY);
    }
  });

  test("channels: a call from its start to its end, a hold from grant to release or loss", async ({
    mine,
    rival,
    lockName,
  }) => {
    const seen: unknown[] = [];
    const note = (channel: string, phase: string) => (context: unknown) => {
      const { clientId, lockName: name, outcome } = context as LockCallContext & HoldContext;
      if (clientId === mine.id && name === lockName) seen.push([channel, phase, outcome]);
    };
    const handlersOf = (channel: string) => ({
      start: note(channel, "start"),
      asyncEnd: note(channel, "asyncEnd"),
      error: note(channel, "error"),
      end() {},
      asyncStart() {},
    });
    const subscribed = (["lock", "hold"] as const).map((name) => {
      const channel = tracingChannel(`holdfast:${name}`);
      const handlers = handlersOf(name);
      channel.subscribe(handlers);
      return () => channel.unsubscribe(handlers);
    });
    const lock = kind.make(mine, lockName);
    await lock.run(() => undefined);
    const lost = await lock.lock();
    await lock.forceUnlock();
    expect(lost.isHeld).toBe(false);
    const hold = await rival.lock();
    await lock.tryLock();
    await failure(lock.lock({ wait: 2_500 }));
    expect(await lock.tryLock(2_500)).toBeNull();
    for (const stop of subscribed) stop();
    await hold.unlock();
    await lock.run(() => undefined);
    expect(seen).toEqual([
      ["lock", "start", undefined],
      ["hold", "start", undefined],
      ["lock", "asyncEnd", "acquired"],
      ["hold", "asyncEnd", "released"],
      ["lock", "start", undefined],
      ["hold", "start", undefined],
      ["lock", "asyncEnd", "acquired"],
      ["hold", "error", "lost"],
      ["hold", "asyncEnd", "lost"],
      ["lock", "start", undefined],
      ["lock", "asyncEnd", "rejected"],
      ["lock", "start", undefined],
      ["lock", "error", "timeout"],
      ["lock", "asyncEnd", "timeout"],
      // tryLock() resolves, so it has no error.
      ["lock", "start", undefined],
      ["lock", "asyncEnd", "timeout"],
    ]);
  });
});

plain("groups, semaphores and permits are counted as their events tell them", async () => {
  await using server = await startRedis();
  const client = new LockClient(connectionLike(server.connect()), { ...UNHURRIED, watchdogTimeout: 4_500 });
  await new MultiLock(client.getLock("a"), client.getLock("b")).run(() => {
    // Two members, and the group.
    expect(client.stats()).toMatchObject({ acquired: 3, held: 2 });
  });
  expect(client.stats()).toMatchObject({ acquired: 3, released: 3, held: 0 });
  const semaphore = client.getSemaphore("s");
  await semaphore.trySetPermits(1);
  await semaphore.acquire();
  expect(await semaphore.tryAcquire()).toBe(false);
  expect(await semaphore.tryAcquire(1, 2_500)).toBe(false);
  await semaphore.release();
  expect(await client.getSemaphore("none").drainPermits()).toBe(0);
  expect(client.stats()).toMatchObject({ acquired: 4, released: 4, rejected: 1, timedOut: 1 });
  const permits = client.getPermitExpirableSemaphore("p");
  await permits.trySetPermits(1);
  const id = await permits.acquire();
  expect(client.stats()).toMatchObject({ acquired: 5, held: 1 });
  await until("it is renewed", () => client.stats().renewals > 0);
  await permits.release(id);
  expect(client.stats()).toMatchObject({ released: 5, held: 0, lost: 0 });
  await client.close();
});

plain.each([0, -1, 1.5, "60000", null])("warnAfter %s is refused", async (warnAfter) => {
  await using server = await startRedis();
  expect(() => new LockClient(connectionLike(server.connect()), { warnAfter: warnAfter as number })).toThrow(
    /warnAfter/,
  );
});
