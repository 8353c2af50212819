/** Contract section 6: wrong arguments of a lock's calls are refused before anything is sent. */
import { describe, expect } from "vitest";
import type { Lock } from "../../src/index.js";
import { type Bad, LEASES, OPTIONS, SIGNALS, WAITS } from "./bad-values.js";
import { as, failure, type Refusal, refused, rejects } from "./helpers.js";
import { eachKind } from "./scene.js";

const never = (): never => {
  throw new Error("fn was called");
};

const OWNERS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a string", "me", TypeError],
  ["a plain object", {}, TypeError],
  ["a lock", "lock", TypeError],
  ["a client", "client", TypeError],
];

eachKind("wrong arguments", (test) => {
  test.beforeEach(({ counter }) => counter.reset());
  test.afterEach(async ({ counter }) => {
    await counter.settle();
    expect(counter.all()).toEqual([]); // the rule that all these tests share
  });

  test.for(WAITS)("wait: %s", async ([_, value, type], { lock }) => {
    const wait = as(value);
    await refused(() => lock.lock({ wait }), type);
    await refused(() => lock.tryLock(wait), type);
    await refused(() => lock.run(never, { wait }), type);
  });

  test.for(LEASES)("lease: %s", async ([_, value, type], { lock }) => {
    const lease = as(value);
    await refused(() => lock.lock({ lease }), type);
    await refused(() => lock.tryLock(0, lease), type);
    await refused(() => lock.run(never, { lease }), type);
  });

  test("a bigint is named as what it is [B149]", async ({ lock }) => {
    expect((await failure(lock.lock({ lease: as(5n) }))).message).toContain("lease must be a number, not 5n");
  });

  test.for(SIGNALS)("signal: %s [B89]", async ([_, value, type], { lock }) => {
    const signal = as(value);
    await refused(() => lock.lock({ signal }), type);
    await refused(() => lock.tryLock(0, 1000, { signal }), type);
    await refused(() => lock.run(never, { signal }), type);
  });

  /** Makes each call that takes options. */
  async function refuses(lock: Lock, options: never, type: Refusal): Promise<void> {
    await refused(() => lock.lock(options), type);
    await refused(() => lock.tryLock(0, 1000, options), type);
    await refused(() => lock.run(never, options), type);
    await refused(() => lock.unlock(options), type);
    await refused(() => lock.isHeldByCurrentOwner(options), type);
    await refused(() => lock.getHoldCount(options), type);
  }

  test.for(OPTIONS)("options: %s [B107]", ([_, options, type], { lock }) => refuses(lock, as(options), type));

  test.for(OWNERS)("owner: %s", ([_, given, type], { client, lock }) => {
    const owner = given === "lock" ? lock : given === "client" ? client : given;
    return refuses(lock, as({ owner }), type);
  });

  describe("an option of another call", () => {
    test("tryLock takes wait and lease by position only", async ({ lock }) => {
      await refused(() => lock.tryLock(0, 1000, as({ wait: 5 })), TypeError);
      await refused(() => lock.tryLock(0, 1000, as({ lease: 5 })), TypeError);
      await refused(() => lock.tryLock(as({ wait: 5 })), TypeError);
    });

    test("unlock and the questions take owner only", async ({ lock }) => {
      const signal = new AbortController().signal;
      for (const options of [{ signal }, { wait: 1 }, { lease: 1 }]) {
        await refused(() => lock.unlock(as(options)), TypeError);
        await refused(() => lock.isHeldByCurrentOwner(as(options)), TypeError);
        await refused(() => lock.getHoldCount(as(options)), TypeError);
      }
    });
  });

  test.for([
    ["absent", undefined],
    ["null", null],
    ["a promise", Promise.resolve()],
    ["options instead", { lease: 1000 }],
    ["a string", "fn"],
  ])("fn of run: %s", ([_, fn], { lock }) => refused(() => lock.run(as(fn)), TypeError));

  test("wrong arguments reject, they do not throw", async ({ lock }) => {
    const calls: (() => Promise<unknown>)[] = [
      () => lock.lock(as(null)),
      () => lock.tryLock(-1),
      () => lock.run(as(null)),
      () => lock.unlock(as(null)),
      () => lock.isHeldByCurrentOwner(as(null)),
      () => lock.getHoldCount(as(null)),
    ];
    for (const call of calls) await rejects(call);
  });

  describe("a signal that is aborted already: its reason, and nothing is sent", () => {
    test.for([
      ["an error", new Error("changed my mind")],
      ["a reason that is no error", "why"],
    ])("%s", async ([_, reason], { lock }) => {
      const signal = AbortSignal.abort(reason);
      expect(await failure(lock.lock({ signal }))).toBe(reason);
      expect(await failure(lock.tryLock(0, 1000, { signal }))).toBe(reason);
      expect(await failure(lock.run(never, { signal }))).toBe(reason);
    });

    test("no reason: the AbortError of the platform", async ({ lock }) => {
      expect((await failure(lock.lock({ signal: AbortSignal.abort() }))).name).toBe("AbortError");
    });
  });
});

eachKind("the arguments of extend", (test) => {
  test.for<Bad>([...LEASES, ["absent", undefined, TypeError]])(
    "%s",
    async ([_, lease, type], { lock, counter }) => {
      const hold = await lock.lock({ lease: 60_000 });
      const { remaining } = hold;
      await counter.reset();
      await refused(() => hold.extend(as(lease)), type);
      await counter.settle();
      expect(counter.all()).toEqual([]);
      expect(hold.isHeld).toBe(true);
      expect(hold.remaining).toBeGreaterThan(remaining - 5_000);
      expect(hold.remaining).toBeLessThanOrEqual(remaining);
      await hold.unlock();
    },
  );
});
