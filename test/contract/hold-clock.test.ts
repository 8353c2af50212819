/** Contract section 2: a hold ends at its local deadline, by a clock that the test moves. */
import { describe, expect } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { type Lock, LockClient, type LockClientOptions, LockLostError } from "../../src/index.js";
import { connectionLike } from "../support/index.js";
import { VirtualClock } from "../support/virtual-clock.js";
import { failure, lost, recordEvents, warmUp } from "./helpers.js";
import { eachKind } from "./scene.js";

class SteppedClock extends VirtualClock {
  #steps = 0;

  override wall(): number {
    return super.wall() + this.#steps;
  }

  /** Time passes on both clocks but no timer fires yet, as in a stalled event loop. */
  stand(ms: number): void {
    this.moveTo(this.mono() + ms);
  }

  /** Moves the wall clock alone: a suspend that the monotonic clock misses, or a step back. */
  step(ms: number): void {
    this.#steps += ms;
  }
}

interface OnClock {
  readonly clock: SteppedClock;
  readonly timed: LockClient;
  /** The lock of the test, by a client with that clock. */
  readonly mine: Lock;
}

eachKind("the local deadline", (base, kind) => {
  const test = base.extend<{ onClock: (options?: LockClientOptions) => Promise<OnClock> }>({
    onClock: async ({ redis, lockName }, use) => {
      const clients: LockClient[] = [];
      await use(async (options = {}) => {
        const clock = new SteppedClock();
        const timed = new LockClient(connectionLike(redis), {
          ...options,
          [INTERNALS]: { clock },
        } as LockClientOptions);
        clients.push(timed);
        const mine = kind.make(timed, lockName);
        await warmUp(mine);
        return { clock, timed, mine };
      });
      for (const client of clients) await client.close({ timeout: 0 });
    },
  });

  describe("the clock", () => {
    test("isHeld is false from the local deadline on, even before the signal could fire", async ({
      onClock,
    }) => {
      const { clock, mine } = await onClock();
      const hold = await mine.lock({ lease: 10_000 });
      expect(hold.remaining).toBe(10_000 * 0.99 - 2);
      clock.stand(9_897);
      expect(hold.isHeld).toBe(true);
      expect(hold.remaining).toBeCloseTo(1);
      hold.assertHeld();
      clock.stand(1); // the deadline has passed, but no timer has fired
      expect(hold.isHeld).toBe(false);
      expect(hold.remaining).toBe(0);
      expect(() => hold.assertHeld()).toThrow(LockLostError);
    });

    test("what is left on the server of a hold whose deadline passed here is released", async ({
      lock,
      wire,
      onClock,
    }) => {
      const { clock, mine } = await onClock();
      const hold = await mine.lock({ lease: 60_000 });
      await clock.advance(60_000);
      expect(hold.signal.aborted).toBe(true);
      expect(hold.signal.reason).toMatchObject({ ...lost(lock), reason: "expired" });
      await wire.untilFree();
      expect(await failure(hold.unlock())).toMatchObject({ ...lost(lock), reason: "expired" });
    });

    test("a stalled event loop does not renew what is lost already", async ({ lock, wire, onClock }) => {
      const { clock, timed, mine } = await onClock({ watchdogTimeout: 30_000 });
      const events = recordEvents(timed);
      const hold = await mine.lock();
      clock.stand(31_000);
      clock.fire();
      expect(hold.signal.aborted).toBe(true);
      await wire.untilFree();
      const told = events.filter(({ payload }) => payload.kind === kind.kind);
      expect(told.map(({ name }) => name)).toEqual(["acquired", "lost"]);
      expect(await failure(hold.unlock())).toMatchObject(lost(lock));
    });

    test("unlock, lock.unlock() and run agree when the timer did not fire", async ({
      lock,
      wire,
      onClock,
    }) => {
      const { clock, timed, mine } = await onClock();
      const bare = await mine.lock({ lease: 10_000 });
      clock.stand(10_000);
      expect(await failure(bare.unlock())).toMatchObject({ ...lost(lock), reason: "expired" });
      await wire.untilFree();
      await timed.scope(async () => {
        await mine.lock({ lease: 10_000 });
        clock.stand(10_000);
        expect(await failure(mine.unlock())).toMatchObject(lost(lock));
      });
      await wire.untilFree();
      const run = mine.run(
        () => {
          clock.stand(10_000);
          return "done";
        },
        { lease: 10_000 },
      );
      expect(await failure(run)).toMatchObject({ ...lost(lock), result: "done" });
      await wire.untilFree();
    });

    test("is pessimistic: a suspend that only the wall clock saw ends the hold [F18]", async ({
      lock,
      wire,
      onClock,
    }) => {
      const { clock, mine } = await onClock();
      const hold = await mine.lock({ lease: 60_000 });
      clock.step(30_000);
      expect(hold.remaining).toBe(60_000 * 0.99 - 2 - 30_000);
      clock.step(30_000);
      expect(hold.isHeld).toBe(false);
      expect(await failure(hold.unlock())).toMatchObject(lost(lock));
      await wire.untilFree();
    });

    test("a step back of the wall clock lengthens nothing [F18]", async ({ onClock }) => {
      const { clock, mine } = await onClock();
      const hold = await mine.lock({ lease: 60_000 });
      clock.step(-3_600_000);
      expect(hold.remaining).toBe(60_000 * 0.99 - 2);
      clock.stand(30_000);
      expect(hold.remaining).toBe(60_000 * 0.99 - 2 - 30_000);
      await hold.unlock();
    });
  });
});
