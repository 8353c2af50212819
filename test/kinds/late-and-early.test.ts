/** Answers that come late, while a nested hold ends or after the other holds have ended. */
import { expect } from "vitest";
import { PLAIN, READ, row, watch } from "../support/place/index.js";

const kinds = [PLAIN, READ];

row(
  "a nested release while a renewal is answered leaves Redis no less than the holder believes [§2 ttl-never-lowered] [B1]",
  { kinds, client: { watchdogTimeout: 6_000 } },
  async ({ lock, a, pass, settle, view }) => {
    a.listen("renewed");
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    a.keep("replies");
    await pass(2_100);
    const back = inner.unlock();
    await settle();
    await a.letGo();
    await back;
    await settle();
    expect(a.heard("renewed").length).toBeGreaterThan(0);
    expect(outer.remaining).toBeGreaterThan(5_000);
    expect(await view.ttl()).toBeGreaterThanOrEqual(outer.remaining);
    await outer.unlock();
  },
);

row(
  "a release whose reply is lost while the holds left end was a release all the same [§2 unlock-unavailable] [B12]",
  { kinds, client: { commandTimeout: 700 } },
  async ({ lock, a, pass }) => {
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ owner: outer, lease: 20_000 });
    await outer.extend(600);
    a.keep("replies");
    const released = watch(inner.unlock());
    await pass(10);
    await a.cut();
    await pass(21_000);
    await a.letGo();
    await a.mend();
    await pass(1_000);
    expect([undefined, "UNAVAILABLE"]).toContain(released.outcome);
    expect([outer.isHeld, await inner.unlock()]).toEqual([false, undefined]);
  },
);
