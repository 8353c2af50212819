/** Contract section 2: calls, and those who wait, while Redis gives no answer, or one that is of no use. */
import { expect } from "vitest";
import { MULTI, row, SINGLE, watch } from "../support/place/index.js";

/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;
const COMMAND_TIMEOUT = 1_000;
const PATIENT = { pollCap: NEVER, commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: 900_000 };

row(
  "a call made in an outage is UNAVAILABLE after commandTimeout, or its wait if that is shorter, and says why [§2 unavailable] [§6 cause] [F7]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, a, pass }) => {
    await a.cut();
    const starts: [number, () => Promise<unknown>][] = [
      [80, () => lock.tryLock(80)],
      [80, () => lock.lock({ wait: 80 })],
      [COMMAND_TIMEOUT, () => lock.tryLock()],
      [COMMAND_TIMEOUT, () => lock.tryLock(60_000)],
      [COMMAND_TIMEOUT, () => lock.lock()],
      [COMMAND_TIMEOUT, () => lock.run(() => "never")],
    ];
    for (const [ms, start] of starts) {
      const call = watch(start());
      await pass(ms - 1);
      expect(call.outcome).toBe("pending");
      await pass(1);
      expect(call.error).toMatchObject({ code: "UNAVAILABLE", lockName: lock.name });
      expect((call.error as Error).cause).toBeInstanceOf(Error);
    }
    await a.mend();
    await pass(1_000);
  },
);

row(
  "a single try behind a call of its owner without an answer is UNAVAILABLE in its own time [§2 unavailable] [§3 call-order]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, a, pass, client }) => {
    await (await lock.lock()).unlock();
    a.keep("requests");
    await client.scope(async () => {
      const first = watch(lock.lock());
      await pass(500);
      const second = watch(lock.tryLock());
      await pass(500);
      expect([first.outcome, second.outcome]).toEqual(["UNAVAILABLE", "pending"]);
      await pass(501);
      expect(second.outcome).toBe("UNAVAILABLE");
    });
    await a.letGo();
  },
);

row(
  "a nested call without an answer is UNAVAILABLE in time, though the hold that it nests into is given back meanwhile [§2 unavailable]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, a, pass, settle }) => {
    const outer = await lock.lock();
    await settle();
    a.keep("requests");
    const nested = watch(lock.lock({ owner: outer }));
    const unlocking = watch(outer.unlock());
    await pass(COMMAND_TIMEOUT);
    expect([nested.outcome, unlocking.outcome]).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    await a.letGo();
    await pass(1_000);
    expect(await lock.isLocked()).toBe(false);
  },
);

row(
  "a nested call without an answer is UNAVAILABLE in time, though the hold that it nests into is lost meanwhile [§2 unavailable] [B309]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, a, pass }) => {
    const outer = await lock.lock({ lease: 400 });
    a.keep("requests");
    const calls = [() => lock.lock({ owner: outer }), () => lock.tryLock(0, 9_000, { owner: outer })];
    const nested = calls.map((call) => watch(call()));
    await pass(COMMAND_TIMEOUT - 1);
    expect([outer.isHeld, ...nested.map(({ outcome }) => outcome)]).toEqual([false, "pending", "pending"]);
    await pass(1);
    expect(nested.map(({ outcome }) => outcome)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
    await a.letGo();
    await pass(1_000);
    await outer.unlock().catch(() => {});
  },
);

row(
  "a wait whose last try has no answer ends UNAVAILABLE, and one that ends while others hold the lock does not [§2 last-try-unanswered]",
  { kinds: [...SINGLE, MULTI], client: { ...PATIENT, pollCap: 500 } },
  async ({ lock, rival, a, pass }) => {
    const theirs = await rival.lock();
    const calls = [
      watch(lock.lock({ wait: 4_000 })),
      watch(lock.tryLock(4_000)),
      watch(lock.lock({ wait: 300 })),
    ];
    await pass(300);
    expect(calls[2]?.outcome).toBe("WAIT_TIMEOUT");
    a.keep("replies");
    await pass(4_000);
    expect(calls[0]?.outcome).toBe("UNAVAILABLE");
    expect(["UNAVAILABLE", null]).toContain(calls[1]?.outcome);
    await a.letGo();
    await theirs.unlock();
  },
);

row(
  "waiters survive an outage, and learn afterwards of what they did not hear [§2 waiting-survives-outage] [F19]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, a, pass, settle }) => {
    const theirs = await rival.lock();
    const calls = [watch(lock.lock()), watch(lock.lock())];
    await pass(100);
    await a.cut();
    await pass(20_000);
    await theirs.unlock();
    await pass(20_000);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["pending", "pending"]);
    await a.mend();
    await pass(10);
    for (const call of calls) {
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
      await settle();
    }
  },
);
