/** Contract section 2: run(). */
import { expect } from "vitest";
import type { Hold, LossReason } from "../../src/index.js";
import { failure, type Place, row, SINGLE, watch } from "../support/place/index.js";

const COMMAND_TIMEOUT = 1_000;
const client = { commandTimeout: COMMAND_TIMEOUT };
const ERROR = new Error("mine");

row.real(
  "run() locks, runs the function with the hold, and unlocks [§2 run]",
  async ({ lock, twin, view }) => {
    const result = await lock.run(
      async (hold) => {
        expect([hold.isHeld, await twin.isLocked()]).toEqual([true, true]);
        expect(await view.ttl()).toBeLessThanOrEqual(5_000);
        return hold;
      },
      { lease: 5_000 },
    );
    expect(result.isHeld).toBe(false);
    expect(result.signal.aborted).toBe(false);
    expect(await view.keys()).toEqual([]);
    expect(await failure(result.extend(1_000))).toMatchObject({ code: "NOT_OWNER" });
    expect(await result.unlock()).toBeUndefined();
  },
);

row(
  "run() has the options of lock(): without a lease it is kept, and wait and signal bound it [§2 run]",
  { client: { watchdogTimeout: 9_000 } },
  async ({ lock, rival, pass, settle }) => {
    const long = lock.run(() => pass(50_000));
    await settle();
    expect(await rival.tryLock()).toBeNull();
    await long;
    const theirs = await rival.lock();
    const short = watch(lock.run(() => "never", { wait: 500 }));
    const single = watch(lock.run(() => "never", { wait: 0 }));
    const aborted = watch(lock.run(() => "never", { signal: AbortSignal.abort("enough") }));
    await pass(500);
    expect([short.outcome, single.outcome, aborted.outcome]).toEqual([
      "WAIT_TIMEOUT",
      "WAIT_TIMEOUT",
      "enough",
    ]);
    await theirs.unlock();
  },
);

row.real(
  "what the function throws is what run() rejects with, and the lock is given back [§2 run]",
  async ({ lock, view }) => {
    const thrown = () => {
      throw ERROR;
    };
    expect(await failure(lock.run(thrown))).toBe(ERROR);
    for (const reason of [ERROR, "text", undefined]) {
      const run = watch(lock.run(() => Promise.reject(reason as Error)));
      await run.promise.catch(() => {});
      expect([run.state, run.error]).toEqual(["rejected", reason]);
    }
    expect(await view.keys()).toEqual([]);
  },
);

type Lose = (place: Place, hold: Hold) => Promise<unknown>;

for (const [title, lose] of [
  ["a loss by force", ({ lock }) => lock.forceUnlock()],
  ["a loss that the release notices", ({ view }) => view.wipe()],
] as readonly [string, Lose][]) {
  row(`the function's error wins over ${title} [§2 run]`, async (place) => {
    const run = place.lock.run(async (hold) => {
      await lose(place, hold);
      throw ERROR;
    });
    expect(await failure(run)).toBe(ERROR);
  });
}

row(
  "the function's error wins over a release without an answer [§2 run]",
  { kinds: SINGLE, client },
  async (place) => {
    const { lock, a, pass } = place;
    const run = watch(
      lock.run(async () => {
        a.keep("requests");
        throw ERROR;
      }),
    );
    await pass(COMMAND_TIMEOUT);
    expect(run.error).toBe(ERROR);
    await a.letGo();
  },
);

for (const [title, reason, lose] of [
  ["gone in Redis, as the release notices", "expired", ({ view }) => view.wipe()],
  ["over by its lease", "expired", ({ pass }) => pass(60_000)],
  ["forced", "forced", ({ lock }) => lock.forceUnlock()],
  [
    "lost, and the function has swallowed that",
    "expired",
    ({ view }, hold) => view.wipe().then(() => failure(hold.unlock())),
  ],
] as readonly [string, LossReason, Lose][]) {
  row(
    `run() whose hold is ${title} rejects LOCK_LOST with the function's result [§2 run-lost]`,
    async (place) => {
      const run = place.lock.run(
        async (hold) => {
          await lose(place, hold);
          return { answer: 42 };
        },
        { lease: 60_000 },
      );
      expect(await failure(run)).toMatchObject({ code: "LOCK_LOST", reason, result: { answer: 42 } });
    },
  );
}

row(
  "the loss of a nested run is the outer one's too [§2 run-lost] [§2 shared-loss]",
  async ({ lock, view }) => {
    const outer = lock.run(async () => {
      const inner = lock.run(async () => {
        await view.wipe();
        return "inner";
      });
      expect(await failure(inner)).toMatchObject({ code: "LOCK_LOST", result: "inner" });
      return "outer";
    });
    expect(await failure(outer)).toMatchObject({ code: "LOCK_LOST", result: "outer" });
  },
);

row(
  "run() whose release alone gets no answer resolves, emits `error`, and goes on giving back [§2 run-release-unanswered]",
  { kinds: SINGLE, client },
  async ({ lock, a, pass, view, kind }) => {
    a.listen("error", "lost");
    const run = watch(
      lock.run(() => {
        a.keep("requests");
        return "done";
      }),
    );
    await pass(COMMAND_TIMEOUT);
    expect(run.outcome).toBe("done");
    expect(a.heard("error")).toMatchObject([
      { lockName: lock.name, kind: kind.kind, cause: { code: "UNAVAILABLE" } },
    ]);
    expect(await view.keys()).not.toEqual([]);
    await a.letGo();
    expect([await view.hash(), a.heard("lost")]).toEqual([{}, []]);
  },
);

row(
  "hold.unlock() inside the function gives back, and run() nothing more [§2 run-unlock-inside]",
  async (place) => {
    const { lock, rival, view, a, kind } = place;
    a.listen("released");
    let theirs: Hold | undefined;
    const result = await lock.run(async (hold) => {
      await hold.unlock();
      expect(await view.keys()).toEqual([]);
      theirs = await rival.lock();
      return "done";
    });
    expect([result, theirs?.isHeld, await lock.tryLock()]).toEqual(["done", true, null]);
    await theirs?.unlock();
    expect(a.heard("released").filter((event) => event.kind === kind.kind)).toHaveLength(1);
  },
);

row(
  "hold.unlock() inside the function need not be awaited, and leaves the hold around a nested run [§2 run-unlock-inside]",
  async ({ lock, rival, settle }) => {
    await lock.run(async (outer) => {
      const result = await lock.run((inner) => {
        void watch(inner.unlock());
        return "done";
      });
      expect([result, outer.isHeld, await rival.tryLock()]).toEqual(["done", true, null]);
    });
    await settle();
    await (await rival.tryLock())?.unlock();
  },
);
