/** Contract section 3, last sentence: calls of one owner on one lock take effect one at a time in call order. */
import { describe, expect } from "vitest";
import { SLACK } from "../support/index.js";
import { begunRun, failure, recordEvents, untilWaiting, watch } from "./helpers.js";
import { eachKind } from "./scene.js";

eachKind("calls of one owner", (test, kind) => {
  describe("a second lock() while the first still waits", () => {
    test("re-enters as soon as the first is granted", async ({ client, lock, rival, wire }) => {
      const theirs = await rival.lock();
      await client.scope(async () => {
        const first = await untilWaiting(client, () => lock.lock());
        const second = lock.lock();
        const third = lock.tryLock(10_000);
        await theirs.unlock();
        const ids = [(await first.done).ownerId, (await second).ownerId, (await third)?.ownerId];
        expect(new Set(ids).size).toBe(1);
        expect(await wire.count()).toBe(3);
        for (let i = 0; i < 3; i++) await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("is granted though the first gave up", async ({ client, lock, rival, wire }) => {
      const theirs = await rival.lock();
      await client.scope(async () => {
        const controller = new AbortController();
        const first = await untilWaiting(client, () => lock.lock({ signal: controller.signal }));
        const late = await untilWaiting(client, () => lock.lock({ wait: 250 }));
        const second = lock.lock();
        controller.abort(new Error("enough"));
        expect((await failure(first.done)).message).toBe("enough");
        expect(await failure(late.done)).toMatchObject({ code: "WAIT_TIMEOUT" });
        await theirs.unlock();
        expect((await second).isHeld).toBe(true);
        expect(await wire.count()).toBe(1);
        await lock.unlock();
      });
    });

    test("is granted at once though the first gave up with its try on the way [B87]", async ({
      client,
      lock,
      wire,
    }) => {
      await client.scope(async () => {
        const controller = new AbortController();
        const first = failure(lock.lock({ signal: controller.signal }));
        controller.abort(new Error("enough"));
        expect((await first).message).toBe("enough");
        expect((await lock.tryLock())?.isHeld).toBe(true);
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("re-enters though the first is of a run", async ({ client, lock, rival, wire }) => {
      const theirs = await rival.lock();
      await client.scope(async () => {
        const run = await untilWaiting(client, () => lock.run((hold) => hold.ownerId));
        const bare = lock.lock({ wait: 10_000 });
        await theirs.unlock();
        const [fromRun, fromBare] = [await run.done, await bare];
        await lock.unlock();
        expect(typeof fromRun).toBe("string");
        expect(fromBare.isHeld).toBe(false);
      });
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("one called after the last unlock() was called is a new acquisition", () => {
    test("by hold.unlock()", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const unlocking = first.unlock();
        const second = await lock.lock();
        await unlocking;
        expect(second.ownerId).not.toBe(first.ownerId);
        expect(await wire.fields()).toEqual(wire.heldBy(second.ownerId));
        await second.unlock();
      });
    });

    test("by lock.unlock()", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const nested = await lock.lock();
        const unlocking = [lock.unlock(), lock.unlock()];
        const second = await lock.lock();
        await Promise.all(unlocking);
        expect(nested.ownerId).toBe(first.ownerId);
        expect(second.ownerId).not.toBe(first.ownerId);
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("a rival that waits may come between", async ({ client, rivals, lock, rival, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const theirs = await untilWaiting(rivals, () => rival.lock());
        const unlocking = first.unlock();
        const second = lock.lock();
        await unlocking;
        await Promise.race([theirs.done, second]);
        await Promise.all([theirs.done.then((hold) => hold.unlock()), second.then((hold) => hold.unlock())]);
      });
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("one called before the last unlock() was called re-enters", () => {
    test("neither of them awaited", async ({ client, lock, wire }) => {
      const events = recordEvents(client);
      await client.scope(async () => {
        const first = await lock.lock();
        const nesting = lock.lock();
        const unlocking = first.unlock();
        const nested = await nesting;
        await unlocking;
        expect(nested.ownerId).toBe(first.ownerId);
        expect(nested.isHeld).toBe(true);
        expect(await wire.fields()).toEqual(wire.heldBy(first.ownerId));
        await lock.unlock();
      });
      expect(events.filter(({ name }) => name === "lost")).toEqual([]);
    });

    test("also behind another command of this owner", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const extending = first.extend(20_000);
        const nesting = lock.lock({ wait: SLACK });
        const unlocking = first.unlock();
        const [nested] = await Promise.all([nesting, unlocking, extending.catch(() => {})]);
        expect(nested.ownerId).toBe(first.ownerId);
        expect(await wire.fields()).toEqual(wire.heldBy(first.ownerId));
        await nested.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("and so on, for many at once", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const first = await lock.lock();
        const calls = Array.from({ length: 10 }, () => lock.lock({ wait: SLACK }));
        const unlocking = first.unlock();
        const holds = await Promise.all(calls);
        await unlocking;
        expect(new Set([first, ...holds].map(({ ownerId }) => ownerId)).size).toBe(1);
        expect(await wire.count()).toBe(10);
        await Promise.all(holds.map((hold) => hold.unlock()));
      });
      expect(await wire.keys()).toEqual([]);
    });
  });

  describe("unlocks never wait behind waiters", () => {
    test("one that has nothing to give back says so at once", async ({ client, lock, rival }) => {
      const theirs = await rival.lock();
      await client.scope(async () => {
        const waiter = await untilWaiting(client, () => lock.lock());
        expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
        await theirs.unlock();
        await waiter.done;
        await lock.unlock();
      });
    });

    // Not for readers: sibling readers share a turn.
    if (kind.exclusive) {
      test("one of a bare hold goes through while a run of the owner waits for its turn", async ({
        client,
        lock,
        wire,
      }) => {
        await client.scope(async () => {
          const { run, finish } = await begunRun(lock, async () => {
            const bare = await lock.lock({ wait: SLACK });
            await lock.unlock();
            expect(bare.isHeld).toBe(false);
            expect(await wire.count()).toBe(1);
            expect(watched.state).toBe("pending");
          });
          const sibling = await untilWaiting(client, () => lock.run(() => {}));
          const watched = watch(sibling.done);
          finish();
          await Promise.all([run, sibling.done]);
        });
      });

      test("one while other waiters of the process queue", async ({ client, lock }) => {
        const hold = await lock.lock();
        const waiters = await Promise.all(
          Array.from({ length: 5 }, () => untilWaiting(client, () => lock.run((mine) => mine.ownerId))),
        );
        await hold.unlock();
        const ids = await Promise.all(waiters.map(({ done }) => done));
        expect(new Set(ids).size).toBe(5);
      });
    }
  });
});
