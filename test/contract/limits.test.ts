/** Contract section 6: times that a real timer cannot carry; the rows of deadlines and waits have the rest. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { recordWarnings } from "../support/lasting.js";
import { openReal, PLAIN } from "../support/place/index.js";

const LEASES = [2 ** 31 - 1, 2 ** 31, 2 ** 32, 2 ** 53 - 1];

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
