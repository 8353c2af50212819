/** Contract section 6: a lease has no upper limit below 2^53, and what setTimeout cannot carry works all the same. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { recordWarnings } from "../support/lasting.js";
import { EXCLUSIVE, openReal, PLAIN, row, watch } from "../support/place/index.js";

const LEASES = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1];

for (const lease of LEASES) {
  row(
    `a lease of ${lease} ms is the TTL of the lock, however it is asked for [§6 arguments]`,
    async ({ lock, view, pass }) => {
      const near = async () => expect(lease - (await view.ttl())).toBeLessThan(1_000);
      const hold = await lock.lock({ lease });
      await near();
      expect(hold.remaining).toBeGreaterThan(lease * 0.98 - 30_000);
      await pass(100);
      expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
      await hold.unlock();
      await (await lock.tryLock(0, lease))?.unlock();
      await lock.run(near, { lease });
      const short = await lock.lock({ lease: 20_000 });
      await short.extend(lease);
      await near();
      const nested = await lock.lock({ owner: short, lease });
      await short.unlock();
      await near();
      await nested.unlock();
    },
  );
}

for (const wait of [2 ** 31, 2 ** 53, Number.MAX_VALUE, Number.POSITIVE_INFINITY]) {
  row(
    `a wait of ${wait} ms is no time-out, and one that is no whole number is taken [§2 wait]`,
    { kinds: EXCLUSIVE },
    async (place) => {
      const { lock, pass, settle } = place;
      const hold = await lock.lock();
      const waiting = watch(lock.tryLock(wait));
      const short = watch(lock.tryLock(2_900.5));
      await pass(2_900);
      expect(short.state).toBe("pending");
      await pass(1);
      expect([short.outcome, waiting.state]).toEqual([null, "pending"]);
      await hold.unlock();
      await settle();
      await waiting.value?.unlock();
    },
  );
}

test("what a real timer cannot carry causes no warning, and fires no timer at once [§6 arguments]", async () => {
  const warnings = recordWarnings();
  for (const ms of LEASES) {
    const options = { watchdogTimeout: ms, pollCap: ms, commandTimeout: ms, fairWaitTimeout: ms };
    await using place = await openReal(PLAIN, options);
    const hold = await place.lock.lock();
    const waiting = new Promise((resolve) => place.rivals.once("waiting", resolve));
    const rival = place.rival.lock();
    await waiting;
    await sleep(50); // by then a wrong timer would have fired, with a TimeoutOverflowWarning
    expect([hold.isHeld, (await place.view.ttl()) > ms - 30_000]).toEqual([true, true]);
    await hold.unlock();
    const next = await rival;
    const closing = place.rivals.close({ timeout: ms });
    await next.unlock();
    await closing;
  }
  expect(warnings).toEqual([]);
});
