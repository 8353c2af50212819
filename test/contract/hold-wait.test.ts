/** Contract section 2: tryLock, wait, signal and outages. */
import { describe, expect } from "vitest";
import { type Lock, LockTimeoutError } from "../../src/index.js";
import { SLACK, until } from "../support/index.js";
import { failure, nameOf, untilWaiting, watch } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("tryLock, wait, signal and outages", (test, kind) => {
  describe("tryLock", () => {
    test("gives a Hold of a free lock, with the lease asked for", async ({ lock, wire }) => {
      const hold = await lock.tryLock(0, 10_000);
      expect(hold?.isHeld).toBe(true);
      expect(await wire.ttl()).toBeLessThanOrEqual(10_000);
      await hold?.unlock();
      const watched = await lock.tryLock();
      expect(await wire.ttl()).toBeGreaterThan(20_000);
      await watched?.unlock();
    });

    test.for<[string, (lock: Lock) => Promise<unknown>]>([
      ["absent", (lock) => lock.tryLock()],
      ["0", (lock) => lock.tryLock(0)],
    ])("wait %s: one try, then null", async ([_, call], { lock, rival, counter }) => {
      const hold = await rival.lock();
      await counter.reset();
      expect(await call(lock)).toBeNull();
      await counter.settle();
      expect(counter.all()).toHaveLength(1);
      await hold.unlock();
    });

    test("wait bounds the call", async ({ lock, rival }) => {
      const hold = await rival.lock();
      const began = performance.now();
      expect(await lock.tryLock(2_500)).toBeNull();
      expect(performance.now() - began).toBeGreaterThanOrEqual(2_495);
      expect(performance.now() - began).toBeLessThan(2_500 + SLACK);
      await hold.unlock();
    });

    test("null always means contention: an outage rejects UNAVAILABLE", async ({ lock, wire, through }) => {
      const { proxy, mine } = await through({ commandTimeout: 600 });
      proxy.blackhole();
      let began = performance.now();
      expect(await failure(mine.tryLock())).toMatchObject({ code: "UNAVAILABLE", lockName: nameOf(lock) });
      expect(performance.now() - began).toBeGreaterThanOrEqual(590);
      expect(performance.now() - began).toBeLessThan(SLACK);
      began = performance.now();
      expect(await failure(mine.tryLock(80))).toMatchObject({ code: "UNAVAILABLE" });
      expect(performance.now() - began).toBeGreaterThanOrEqual(75);
      expect(await failure(mine.tryLock(60_000))).toMatchObject({ code: "UNAVAILABLE" });
      expect(await failure(mine.lock({ wait: 80 }))).toMatchObject({ code: "UNAVAILABLE" });
      expect(await failure(mine.lock())).toMatchObject({ code: "UNAVAILABLE" });
      expect(await failure(mine.run(() => "never"))).toMatchObject({ code: "UNAVAILABLE" });
      proxy.restore();
      await until("Redis answers", () => mine.isLocked().then(() => true));
      await wire.untilFree();
    });
  });

  describe("WAIT_TIMEOUT", () => {
    test("lock and run that get no lock within wait; `waited` says how long", async ({ lock, rival }) => {
      const hold = await rival.lock();
      for (const call of [() => lock.lock({ wait: 2_500 }), () => lock.run(() => "never", { wait: 2_500 })]) {
        const error = (await failure(call())) as LockTimeoutError;
        expect(error).toBeInstanceOf(LockTimeoutError);
        expect(error).toMatchObject({ code: "WAIT_TIMEOUT", name: "LockTimeoutError", lockName: lock.name });
        expect(error.waited).toBeGreaterThanOrEqual(2_495);
        expect(error.waited).toBeLessThan(2_500 + SLACK);
      }
      await hold.unlock();
    });

    test("wait 0: one try", async ({ lock, rival, counter }) => {
      const hold = await rival.lock();
      await counter.reset();
      expect(await failure(lock.lock({ wait: 0 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
      await counter.settle();
      expect(counter.all()).toHaveLength(1);
      await hold.unlock();
      await (await lock.lock({ wait: 0 })).unlock();
    });

    test("leaves nothing behind", async ({ lock, rival, wire, counter }) => {
      const hold = await rival.lock();
      // Long enough for a try on a busy machine, because a try without an answer would have to be undone.
      expect(await failure(lock.lock({ wait: 2_500 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
      await until("no subscription is left", async () => (await wire.channels()).length === 0);
      await counter.reset();
      await hold.unlock();
      await counter.settle();
      expect(counter.all()).toHaveLength(kind.members);
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("signal", () => {
    test("ends the wait at once, with its reason; the others wait on", async ({
      client,
      lock,
      rival,
      wire,
    }) => {
      const hold = await rival.lock();
      const controller = new AbortController();
      const { signal } = controller;
      const aborted = [
        await untilWaiting(client, () => lock.lock({ signal })),
        await untilWaiting(client, () => lock.tryLock(60_000, 1_000, { signal })),
        await untilWaiting(client, () => lock.run(() => "never", { signal })),
      ];
      const patient = await untilWaiting(client, () => lock.lock());
      const reason = new Error("enough");
      controller.abort(reason);
      for (const { done } of aborted) expect(await failure(done)).toBe(reason);
      await hold.unlock();
      await (await patient.done).unlock();
      expect(await wire.keys()).toEqual([]);
    });

    test("does nothing once the lock is granted", async ({ lock }) => {
      const controller = new AbortController();
      const hold = await lock.lock({ signal: controller.signal });
      const result = lock.run(() => "never", { signal: controller.signal });
      watch(result);
      controller.abort(new Error("late"));
      expect(hold.isHeld).toBe(true);
      expect(hold.signal.aborted).toBe(false);
      await failure(result);
      await hold.unlock();
    });

    test("the platform's time-out signal", async ({ lock, rival }) => {
      const hold = await rival.lock();
      expect((await failure(lock.lock({ signal: AbortSignal.timeout(50) }))).name).toBe("TimeoutError");
      await hold.unlock();
    });
  });
});
