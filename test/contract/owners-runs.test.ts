/** Contract section 3, lock.run: one test for each sentence. */

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect } from "vitest";
import type { Lock } from "../../src/index.js";
import { SLACK } from "../support/index.js";
import { begunRun, failure, untilWaiting, watch } from "./helpers.js";
import { EXCLUSIVE } from "./kinds.js";
import { eachKind } from "./scene.js";

/** Records whether critical sections overlap. */
class Section {
  readonly order: string[] = [];
  most = 0;
  #inside = 0;

  readonly pass = async (name: string, work: () => Promise<unknown> = () => sleep(5)): Promise<void> => {
    this.most = Math.max(this.most, ++this.#inside);
    this.order.push(`+${name}`);
    await work();
    this.order.push(`-${name}`);
    this.#inside--;
  };
}

const IN_TURN = ["+1", "-1", "+2", "-2", "+3", "-3"];
const NAMES = ["1", "2", "3"];

eachKind("lock.run", (test, kind) => {
  describe("lock.run(fn) follows the call tree and opens no scope", () => {
    test("it passes the hold, and resolves with what fn returns", async ({ lock, wire }) => {
      const result = await lock.run(async (hold) => {
        expect(hold.isHeld).toBe(true);
        expect(await wire.fields()).toEqual(wire.heldBy(hold.ownerId));
        return "done";
      });
      expect(result).toBe("done");
      expect(await lock.run(() => 5)).toBe(5);
      expect(await wire.keys()).toEqual([]);
    });

    test("nested runs of the lock inside fn re-enter", async ({ lock, wire }) => {
      await lock.run(async (outer) => {
        await lock.run(
          async (inner) => {
            expect(inner.ownerId).toBe(outer.ownerId);
            expect(await wire.count()).toBe(2);
            await lock.run(async () => expect(await wire.count()).toBe(3), { wait: SLACK });
          },
          { wait: SLACK },
        );
        expect(await wire.count()).toBe(1);
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("through helpers, timers and runs of other locks that fn awaits", async ({ lock, other }) => {
      await lock.run(async (outer) => {
        await sleep(1);
        await other.run(async () => {
          await new Promise((resolve) => setTimeout(resolve, 1));
          await lock.run((inner) => expect(inner.ownerId).toBe(outer.ownerId), { wait: SLACK });
        });
      });
    });

    test("opens no scope: other locks' bare calls inside are strangers' to each other", async ({
      client,
      lock,
      other,
      otherName,
    }) => {
      await lock.run(async () => {
        const hold = await other.lock();
        expect(await kind.rival.make(client, otherName).tryLock()).toBeNull();
        expect(await other.getHoldCount()).toBe(0);
        expect(await failure(other.unlock())).toMatchObject({ code: "NOT_OWNER" });
        await hold.unlock();
      });
    });

    test("inside a scope it acts for the scope's owner", async ({ client, lock }) => {
      await client.scope(async () => {
        const bare = await lock.lock();
        await lock.run((hold) => expect(hold.ownerId).toBe(bare.ownerId), { wait: SLACK });
        await lock.unlock();
      });
    });
  });

  describe("a run does not wait", () => {
    test("never for a bare hold of its own owner", async ({ client, lock, wire }) => {
      await client.scope(async () => {
        const bare = await lock.lock();
        await lock.run(() => expect(bare.isHeld).toBe(true), { wait: SLACK });
        const [run, parallel] = await Promise.all([
          lock.run((hold) => hold.ownerId, { wait: SLACK }),
          lock.lock({ wait: SLACK }),
        ]);
        expect(run).toBe(parallel.ownerId);
        await lock.unlock();
        await lock.unlock();
      });
      expect(await wire.keys()).toEqual([]);
    });

    test("a bare call does not wait for a run of its own owner either", async ({ client, lock }) => {
      await client.scope(async () => {
        const { run, finish } = await begunRun(lock);
        const bare = await lock.lock({ wait: SLACK });
        await lock.unlock();
        expect(bare.isHeld).toBe(false);
        finish();
        await run;
      });
    });
  });

  test("with a wait, runs that share no hold time out", async ({ lock, excluded }) => {
    const { run, finish } = await begunRun(lock);
    expect(await failure(excluded.run(() => 1, { wait: 2_500 }))).toMatchObject({ code: "WAIT_TIMEOUT" });
    finish();
    await run;
  });
});

eachKind(
  "runs that exclude each other",
  (test, kind) => {
    describe("parallel runs take turns", () => {
      test("three runs inside a run of that lock: one after the other", async ({ lock, wire }) => {
        const section = new Section();
        await lock.run(() => Promise.all(NAMES.map((name) => lock.run(() => section.pass(name)))));
        expect(section.order).toEqual(IN_TURN);
        expect(await wire.keys()).toEqual([]);
      });

      test("also when runs of other locks lie between", async ({ client, lock, other }) => {
        const section = new Section();
        const through = (name: string) =>
          kind.make(client, `between-${name}`).run(() => other.run(() => lock.run(() => section.pass(name))));
        await lock.run(() => Promise.all(NAMES.map((name) => through(name))));
        expect(section.order).toHaveLength(6);
        expect(section.most).toBe(1);
      });

      test("in a scope", async ({ client, lock }) => {
        const section = new Section();
        await client.scope(() => Promise.all(NAMES.map((name) => lock.run(() => section.pass(name)))));
        expect(section.order).toEqual(IN_TURN);
      });

      test("in a scope that holds the lock already", async ({ client, lock }) => {
        const section = new Section();
        await client.scope(async () => {
          await lock.lock();
          await Promise.all(NAMES.map((name) => lock.run(() => section.pass(name), { wait: SLACK })));
          expect(await lock.getHoldCount()).toBe(1);
          await lock.unlock();
        });
        expect(section.order).toEqual(IN_TURN);
      });

      test("with { owner } from contexts that have nothing to do with each other", async ({
        client,
        lock,
      }) => {
        const owner = client.newOwner();
        const section = new Section();
        await Promise.all(NAMES.map((name) => lock.run(() => section.pass(name), { owner })));
        expect(section.order).toEqual(IN_TURN);
      });

      test("a fn that throws ends its turn too", async ({ lock, wire }) => {
        const section = new Section();
        await lock.run(async () => {
          const results = await Promise.allSettled(
            NAMES.map((name) =>
              lock.run(async () => {
                await section.pass(name);
                throw new Error(name);
              }),
            ),
          );
          expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
        });
        expect(section.order).toEqual(IN_TURN);
        expect(await wire.keys()).toEqual([]);
      });

      test("nested trees: siblings and their children never overlap with another sibling's", async ({
        lock,
      }) => {
        const section = new Section();
        const child = (name: string) => lock.run(() => section.pass(name), { wait: 10_000 });
        await lock.run(() =>
          Promise.all(
            NAMES.map((name) =>
              lock.run(
                async () => {
                  await Promise.all([child(`${name}a`), child(`${name}b`)]);
                },
                { wait: 10_000 },
              ),
            ),
          ),
        );
        const passes = ["1a", "1b", "2a", "2b", "3a", "3b"];
        expect(section.order).toEqual(passes.flatMap((name) => [`+${name}`, `-${name}`]));
      });

      test("a turn counts to wait, and ends by signal", async ({ lock, wire }) => {
        await lock.run(async () => {
          const { run, finish } = await begunRun(lock);
          const began = performance.now();
          const late = await failure(lock.run(() => "never", { wait: 2_500 }));
          expect(late).toMatchObject({ code: "WAIT_TIMEOUT", lockName: lock.name });
          expect(performance.now() - began).toBeGreaterThanOrEqual(245);
          const controller = new AbortController();
          const aborted = lock.run(() => "never", { signal: controller.signal });
          const reason = new Error("enough");
          controller.abort(reason);
          expect(await failure(aborted)).toBe(reason);
          finish();
          await run;
          expect(await wire.count()).toBe(1); // the calls that gave up have left nothing
        });
      });
    });

    describe("a run waits for the active ones that do not enclose it", () => {
      test("never behind a waiting one", async ({ client, lock }) => {
        await lock.run(async () => {
          const order: string[] = [];
          const nested = () => lock.run(() => order.push("nested"), { wait: SLACK });
          const { run, finish } = await begunRun(lock, nested);
          const sibling = await untilWaiting(client, () => lock.run(() => order.push("sibling")));
          finish();
          await Promise.all([run, sibling.done]);
          expect(order).toEqual(["nested", "sibling"]);
        });
      });

      test("one that outlives the run it was called in stands beside it, not inside", async ({
        client,
        lock,
        wire,
      }) => {
        await client.scope(async () => {
          const order: string[] = [];
          // The outer run ends while the inner one still runs.
          const inner = await lock.run(() => begunRun(lock, () => order.push("inner")));
          const next = lock.run(() => order.push("next"));
          const watched = watch(next);
          await sleep(30);
          expect(watched.state).toBe("pending");
          inner.finish();
          await Promise.all([inner.run, next]);
          expect(order).toEqual(["inner", "next"]);
        });
        expect(await wire.keys()).toEqual([]);
      });
    });

    describe("runs that share no hold wait like strangers", () => {
      test.for<[string, unknown, (other: Lock, work: () => Promise<unknown>) => Promise<unknown>]>([
        ["outside any scope", IN_TURN, (_, work) => work()],
        ["inside a run of another lock", expect.arrayContaining(IN_TURN), (other, work) => other.run(work)],
      ])("%s", async ([, order, within], { lock, other }) => {
        const section = new Section();
        const ids = new Set<string>();
        const run = (name: string) =>
          lock.run((hold) => {
            ids.add(hold.ownerId);
            return section.pass(name);
          });
        await within(other, () => Promise.all(NAMES.map(run)));
        expect(ids.size).toBe(3);
        expect(section.order).toEqual(order);
        expect(section.most).toBe(1);
      });
    });
  },
  EXCLUSIVE,
);
