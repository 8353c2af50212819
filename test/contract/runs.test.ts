/** Contract section 3: `lock.run` follows the call tree, and one owner acts for all runs of a tree. */
import { expect } from "vitest";
import { deferred, row, watch } from "../support/place/index.js";

row.real(
  "runs of a lock inside its run re-enter, through helpers, timers and runs of other locks [§3 nested-runs]",
  async ({ lock, other, twin }) => {
    const later = () => new Promise((resolve) => setImmediate(resolve));
    await lock.run(async (outer) => {
      await later();
      await other.run(async () => {
        await later();
        await lock.run(
          async (inner) => {
            expect(inner.ownerId).toBe(outer.ownerId);
            await lock.run(async () => expect(await lock.getHoldCount()).toBe(3), { wait: 0 });
          },
          { wait: 0 },
        );
      });
      expect(await lock.getHoldCount()).toBe(1);
      expect(outer.isHeld).toBe(true);
    });
    expect(await twin.isLocked()).toBe(false);
  },
);

row(
  "a run inside a scope acts for the scope's owner, and waits for none of its bare holds [§3 run-tree]",
  async ({ client, lock, other }) => {
    await client.scope(async () => {
      const bare = await lock.lock();
      await other.run(() => lock.run((hold) => expect(hold.ownerId).toBe(bare.ownerId), { wait: 0 }));
      const [run, parallel] = await Promise.all([lock.run((hold) => hold.ownerId), lock.lock()]);
      expect(run).toBe(parallel.ownerId);
      await bare.unlock();
      await parallel.unlock();
    });
  },
);

row(
  "a bare call of a scope waits for no run of its own owner, and its unlock ends no run [§3 parallel-runs]",
  async ({ client, lock, settle }) => {
    await client.scope(async () => {
      const end = deferred();
      const run = watch(lock.run(() => end.promise));
      await settle();
      const bare = await lock.tryLock();
      expect(bare?.isHeld).toBe(true);
      await lock.unlock();
      expect([bare?.isHeld, run.state]).toEqual([false, "pending"]);
      expect(await lock.getHoldCount()).toBe(1);
      end.resolve();
      await run.promise;
    });
  },
);

row(
  "each tree of runs has an owner of its own, which ends with its outermost run [§3 run-tree]",
  async ({ lock, other }) => {
    const earlier = await other.run((hold) => hold);
    await lock.run(async () => {
      await other.run(async () => {
        expect(await other.isHeldByCurrentOwner({ owner: earlier })).toBe(false);
        expect(await lock.isHeldByCurrentOwner({ owner: earlier })).toBe(false);
      });
    });
  },
);

row(
  "runs of different trees wait like strangers, and time out by their wait [§3 parallel-runs]",
  async ({ lock, excluded, pass, settle }) => {
    const end = deferred();
    const first = lock.run(async (hold) => {
      await end.promise;
      return hold.ownerId;
    });
    await settle();
    const late = watch(excluded.run(() => 1, { wait: 500 }));
    const next = watch(excluded.run((hold) => hold.ownerId));
    await pass(499);
    expect(late.outcome).toBe("pending");
    await pass(1);
    expect(late.error).toMatchObject({ code: "WAIT_TIMEOUT", lockName: excluded.name });
    end.resolve();
    await pass(100);
    expect(next.value).toMatch(/:\d+$/);
    expect(next.value).not.toBe(await first);
  },
);
