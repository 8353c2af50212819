/** Contract section 1: what close() does to calls, waiters and holds. */
import { describe, expect } from "vitest";
import { type Lock, LockClient } from "../../src/index.js";
import { connectionLike, named, UNHURRIED, until } from "../support/index.js";
import { begunRun, failure, lost, recordEvents, toldBy, untilWaiting, watch } from "./helpers.js";
import { eachKind, withOwnClient } from "./scene.js";

const CLOSED = { code: "CLIENT_CLOSED", name: "ClientClosedError" };
const lostBy = (lock: Lock): object => ({ ...lost(lock), reason: "closed" });

eachKind("close", (base, kind) => {
  const test = withOwnClient(base);

  describe("close refuses new calls", () => {
    const calls = (client: LockClient, lock: Lock): (() => unknown)[] => [
      () => lock.lock(),
      () => lock.tryLock(),
      () => lock.tryLock(500),
      () => lock.run(() => "never"),
      () => lock.forceUnlock(),
      () => lock.isLocked(),
      () => lock.remainTimeToLive(),
      () => client.ready(),
      () => client.scope(() => "never"),
      () => client.newOwner(),
    ];

    test("when closed", async ({ client, lock }) => {
      await client.close();
      for (const call of calls(client, lock)) expect(await failure(call)).toMatchObject(CLOSED);
    });

    test("while live holds have their grace", async ({ client, lock }) => {
      const hold = await lock.lock();
      const closing = client.close();
      for (const call of calls(client, lock)) expect(await failure(call)).toMatchObject(CLOSED);
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
      await closing;
    });

    test("a nested call of a live hold too", async ({ client, lock }) => {
      const hold = await lock.lock();
      const closing = client.close();
      expect(await failure(lock.lock({ owner: hold }))).toMatchObject({ ...CLOSED, lockName: lock.name });
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
      await closing;
    });

    test("a client that never made a call", async ({ lockName, mine }) => {
      const fresh = new LockClient(connectionLike(mine));
      await fresh.close();
      expect(await failure(kind.make(fresh, lockName).lock())).toMatchObject(CLOSED);
    });
  });

  describe("close rejects waiters with CLIENT_CLOSED", () => {
    test("of lock, tryLock and run, at once, before any hold has ended", async ({
      client,
      lock,
      other,
      rival,
    }) => {
      const hold = await other.lock();
      const theirs = await rival.lock();
      const waiters = [
        await untilWaiting(client, () => lock.lock()),
        await untilWaiting(client, () => lock.tryLock(60_000)),
        await untilWaiting(client, () => lock.run(() => "never")),
      ];
      const closing = client.close();
      for (const { done } of waiters)
        expect(await failure(done)).toMatchObject({ ...CLOSED, lockName: lock.name });
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
      await closing;
      await theirs.unlock();
    });

    test("of a run that waits for its turn", async ({ client, lock, excluded }) => {
      await client.scope(async () => {
        const { run, finish } = await begunRun(lock);
        const sibling = await untilWaiting(client, () => excluded.run(() => "never"));
        const closing = client.close();
        expect(await failure(sibling.done)).toMatchObject(CLOSED);
        finish();
        await run;
        await closing;
      });
    });

    test("of calls whose command is on its way; what it is granted is given back", async ({
      wire,
      through,
    }) => {
      const { proxy, client, mine } = await through();
      proxy.delayReplies(60_000, named("EVAL", "EVALSHA"));
      const taking = mine.lock();
      watch(taking);
      await until("it is granted", () => wire.isHeld());
      const closing = client.close({ timeout: 0 });
      expect(await failure(taking)).toMatchObject(CLOSED);
      proxy.restore();
      await closing;
      await wire.untilFree();
    });
  });

  describe("close gives live holds up to `timeout` to end by themselves", () => {
    test("it resolves when they have", async ({ redis, client, lock, other, wire }) => {
      const events = recordEvents(client);
      const bare = await lock.lock();
      const { run, finish } = await begunRun(other, () => "done");
      const closing = client.close({ timeout: 60_000 });
      const watched = watch(closing);
      await bare.unlock();
      expect(watched.state).toBe("pending");
      expect(await wire.keys()).toEqual([]);
      finish();
      expect(await run).toBe("done");
      await closing;
      expect(bare.signal.aborted).toBe(false);
      expect(await redis.exists(other.name)).toBe(0);
      expect(events.filter(({ name }) => name === "lost")).toEqual([]);
      for (const each of [lock, other]) expect(toldBy(each, "released", events)).toHaveLength(1);
    });

    test("they are renewed, and may be extended, until then", async ({ lockName, mine }) => {
      await using brisk = new LockClient(connectionLike(mine), { ...UNHURRIED, watchdogTimeout: 4_500 });
      const events = recordEvents(brisk);
      const hold = await kind.make(brisk, lockName).lock();
      const closing = brisk.close({ timeout: 60_000 });
      await until("two renewals", () => events.filter(({ name }) => name === "renewed").length >= 2);
      await hold.extend(60_000);
      expect(hold.remaining).toBeGreaterThan(50_000);
      await hold.unlock();
      await closing;
    });

    test("the rest ends then: signal first, and the release is sent after it", async ({
      lock,
      wire,
      through,
    }) => {
      const { proxy, client, mine } = await through();
      const hold = await mine.lock();
      proxy.clear();
      const order: string[] = [];
      proxy.onCommand(({ command: [name] }) => {
        if (name?.startsWith("EVAL")) order.push("release");
      });
      hold.signal.addEventListener("abort", () => order.push("abort"));
      const events = recordEvents(client);
      const began = performance.now();
      await client.close({ timeout: 100 });
      expect(performance.now() - began).toBeGreaterThanOrEqual(95);
      expect(order).toEqual(["abort", ...Array.from({ length: kind.members }, () => "release")]);
      expect(hold.signal.reason).toMatchObject({ ...lostBy(lock), name: "LockLostError" });
      expect(hold.isHeld).toBe(false);
      expect(() => hold.assertHeld()).toThrow(expect.objectContaining(lostBy(lock)));
      expect(await wire.keys()).toEqual([]);
      expect(events).toContainEqual({
        name: "lost",
        payload: expect.objectContaining({
          lockName: lock.name,
          kind: kind.kind,
          ownerId: hold.ownerId,
          reason: "closed",
        }),
      });
    });
  });

  describe("timeout: 0 ends them at once", () => {
    test("their later unlock() resolves", async ({ redis, client, lock, other, wire }) => {
      const [bare, elsewhere] = [await lock.lock(), await other.lock()];
      const nested = await lock.lock({ owner: bare });
      const began = performance.now();
      await client.close({ timeout: 0 });
      expect(performance.now() - began).toBeLessThan(4_500); // sooner than the default of 5 s
      expect(await wire.keys()).toEqual([]);
      expect(await redis.exists(other.name)).toBe(0);
      for (const hold of [bare, nested, elsewhere]) {
        expect(hold.signal.aborted).toBe(true);
        await hold.unlock();
        await hold.unlock();
        await hold[Symbol.asyncDispose]();
      }
    });

    test("also by lock.unlock() in the scope that took it", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        await lock.lock();
        await client.close({ timeout: 0 });
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("extend rejects LOCK_LOST", async ({ client, lock }) => {
      const hold = await lock.lock();
      await client.close({ timeout: 0 });
      expect(await failure(hold.extend(1_000))).toMatchObject(lostBy(lock));
    });

    test("their run rejects LOCK_LOST with fn's result", async ({ client, lock }) => {
      const { run, finish } = await begunRun(lock, () => "done");
      await client.close({ timeout: 0 });
      finish();
      expect(await failure(run)).toMatchObject({ ...lostBy(lock), result: "done" });
    });

    test("fn's own error still wins", async ({ client, lock }) => {
      const { run, finish } = await begunRun(lock, () => Promise.reject(new Error("mine")));
      await client.close({ timeout: 0 });
      finish();
      expect((await failure(run)).message).toBe("mine");
    });
  });

  describe("close is idempotent", () => {
    test("calls at once and after share the end", async ({ client, lock }) => {
      const hold = await lock.lock();
      const first = client.close({ timeout: 60_000 });
      const second = client.close({ timeout: 60_000 });
      const watched = watch(second);
      await hold.unlock();
      await Promise.all([first, second]);
      expect(watched.state).toBe("resolved");
      await client.close();
      await client[Symbol.asyncDispose]();
    });
  });
});
