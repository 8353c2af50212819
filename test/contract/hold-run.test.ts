/** Contract section 2: the rules of run. */
import { describe, expect } from "vitest";
import type { Hold, Lock, LossReason } from "../../src/index.js";
import { SLACK, until } from "../support/index.js";
import { failure, lapse, lost, recordEvents, runAtLast, toldBy, watch } from "./helpers.js";
import { eachKind } from "./scene.js";
import type { Wire } from "./wire.js";

eachKind("the rules of run", (test, kind) => {
  describe("fn's error always wins", () => {
    const error = new Error("mine");

    test("thrown or rejected; the lock is given back", async ({ lock, wire }) => {
      expect(await failure(lock.run(() => Promise.reject(error)))).toBe(error);
      expect(
        await failure(
          lock.run(() => {
            throw error;
          }),
        ),
      ).toBe(error);
      expect(await wire.keys()).toEqual([]);
    });

    test("the function may throw something that is no error", async ({ lock }) => {
      expect(await failure(lock.run(() => Promise.reject("text")))).toBe("text");
      let thrown: unknown = "nothing";
      await lock
        .run(() => Promise.reject(undefined))
        .catch((reason: unknown) => {
          thrown = reason;
        });
      expect(thrown).toBeUndefined();
    });

    test.for<[string, (lock: Lock, wire: Wire) => Promise<unknown>]>([
      ["that is known", (lock) => lock.forceUnlock()],
      ["that the release notices", (_, wire) => wire.wipe()],
    ])("over a loss %s", async ([_, lose], { lock, wire }) => {
      const run = lock.run(async () => {
        await lose(lock, wire);
        throw error;
      });
      expect(await failure(run)).toBe(error);
    });

    test("over a release that gets no answer", async ({ wire, through }) => {
      const { proxy, mine } = await through({ commandTimeout: 600 });
      const run = runAtLast(mine, async () => {
        proxy.blackhole();
        throw error;
      });
      expect(await failure(run)).toBe(error);
      proxy.restore();
      await wire.untilFree();
    });
  });

  describe("if fn succeeds and the hold was lost before the end, run rejects LOCK_LOST with fn's result", () => {
    test.for<[string, LossReason, (hold: Hold, lock: Lock, wire: Wire) => Promise<unknown>]>([
      ["expired on the server, noticed by the release", "expired", (_hold, _lock, wire) => wire.wipe()],
      [
        "by its lease",
        "expired",
        (hold) => lapse(hold).then(() => until("it is lost", () => hold.signal.aborted)),
      ],
      ["by force", "forced", (_, lock) => lock.forceUnlock()],
      [
        "though fn has met the loss itself and swallowed it",
        "expired",
        (hold, _, wire) => wire.wipe().then(() => failure(hold.unlock())),
      ],
    ])("%s", async ([, reason, lose], { lock, wire }) => {
      const run = lock.run(
        async (hold) => {
          await lose(hold, lock, wire);
          return { answer: 42 };
        },
        { lease: 60_000 },
      );
      expect(await failure(run)).toMatchObject({ ...lost(lock), reason, result: { answer: 42 } });
    });

    test("taken", async ({ lock, wire }) => {
      let theirs: object = {};
      const run = lock.run(async () => {
        theirs = await wire.seize();
        return 42;
      });
      expect(await failure(run)).toMatchObject({ ...lost(lock), reason: "taken", result: 42 });
      expect(await wire.fields()).toEqual(theirs);
    });

    test("a nested run's loss is the outer one's too", async ({ lock, wire }) => {
      const outer = lock.run(async () => {
        const inner = lock.run(async () => {
          await wire.wipe();
          return "inner";
        });
        expect(await failure(inner)).toMatchObject({ ...lost(lock), result: "inner" });
        return "outer";
      });
      expect(await failure(outer)).toMatchObject({ ...lost(lock), result: "outer" });
    });
  });

  describe("if only the release gets no answer", () => {
    test("run resolves, the release goes on in the background and `error` is emitted", async ({
      lock,
      wire,
      through,
    }) => {
      const { proxy, client, mine } = await through({ commandTimeout: 600 });
      const events = recordEvents(client);
      const result = await runAtLast(mine, () => {
        proxy.blackhole();
        return "done";
      });
      expect(result).toBe("done");
      await until("the error", () => events.some(({ name }) => name === "error"));
      expect(events.filter(({ name }) => name === "error")).toHaveLength(1);
      expect(events.find(({ name }) => name === "error")?.payload).toMatchObject({
        lockName: lock.name,
        kind: kind.kind,
        cause: { code: "UNAVAILABLE" },
      });
      expect(await wire.isHeld()).toBe(true);
      proxy.restore();
      await wire.untilFree();
      expect(events.some(({ name }) => name === "lost")).toBe(false);
    });
  });

  describe("hold.unlock() inside fn is allowed; run then gives nothing back", () => {
    test("and resolves", async ({ lock, wire }) => {
      const result = await lock.run(async (hold) => {
        await hold.unlock();
        expect(await wire.keys()).toEqual([]);
        return "done";
      });
      expect(result).toBe("done");
    });

    test("not awaited", async ({ client, lock, wire }) => {
      const events = recordEvents(client);
      const result = await lock.run((hold) => {
        watch(hold.unlock());
        return "done";
      });
      expect(result).toBe("done");
      await wire.untilFree();
      await until("it is told", () => toldBy(lock, "released", events).length > 0);
      expect(toldBy(lock, "released", events)).toHaveLength(1);
    });

    test("after an early unlock a run leaves the next owner's hold alone", async ({ lock, rival, wire }) => {
      let theirs: Awaited<ReturnType<Lock["lock"]>> | undefined;
      await lock.run(async (hold) => {
        await hold.unlock();
        theirs = await rival.lock();
      });
      expect(theirs?.isHeld).toBe(true);
      expect(await wire.count()).toBe(1);
      await theirs?.unlock();
    });

    test("in a nested run the outer hold stays", async ({ lock, wire }) => {
      await lock.run(async (outer) => {
        await lock.run((inner) => inner.unlock());
        expect(outer.isHeld).toBe(true);
        expect(await wire.count()).toBe(1);
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("a call after it inside fn takes the lock anew", async ({ lock, wire }) => {
      await lock.run(async (hold) => {
        await hold.unlock();
        const second = await lock.lock({ wait: SLACK });
        expect(second.ownerId).not.toBe(hold.ownerId);
        await second.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });
  });

  test("a hold that fn keeps answers as one given back when the run is over", async ({ lock }) => {
    const hold = await lock.run((mine) => mine);
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.aborted).toBe(false);
    expect(await failure(hold.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
    await hold.unlock(); // shares the outcome of the run's own unlock
  });

  test("the options of lock are those of run", async ({ lock, rival, wire }) => {
    await lock.run(async () => expect(await wire.ttl()).toBeLessThanOrEqual(5_000), { lease: 5_000 });
    await lock.run(async () => expect(await wire.ttl()).toBeGreaterThan(20_000));
    const hold = await rival.lock();
    expect(await failure(lock.run(() => "never", { wait: 2_500 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
    expect(await failure(lock.run(() => "never", { wait: 0 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
    await hold.unlock();
  });
});
