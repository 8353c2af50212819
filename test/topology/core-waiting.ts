/** The core of the contract: how waits end, and how holds end without an unlock. */
import { beforeAll, expect, test } from "vitest";
import type { Hold, LockClient, LockClientOptions } from "../../src/index.js";
import {
  failure,
  lost,
  nextEvent,
  recordEvents,
  type SeenEvent,
  untilWaiting,
  warmUpAtLast,
} from "../contract/helpers.js";
import { until } from "../support/index.js";
import { type Act, FAR, type NewAct } from "./core-act.js";

/** Milliseconds, much shorter than the times of FAR, but much longer than a message takes on a busy machine. */
const SOON = 10_000;
/** Milliseconds of leases that should end. */
const SHORT = 1_500;
/** Milliseconds of waits that should run out; shorter ones could end without an answer on a busy machine. */
const LITTLE = 2_000;
/** Milliseconds of a watchdog that must renew a hold even if the process stands still for four seconds. */
const KEPT = 6_500;

export function waiting(act: NewAct, endings: readonly string[] = [""]): void {
  test("a waiter is woken by the message of the release, both ways", async () => {
    for (const { ours, theirs, lock, rival } of endings.map((ending) => act(undefined, ending))) {
      for (const [holder, waiter, client] of [
        [rival, lock, ours],
        [lock, rival, theirs],
      ] as const) {
        const hold = await holder.lock();
        const { done } = await untilWaiting(client, () => waiter.lock());
        const began = performance.now();
        await hold.unlock();
        const mine = await done;
        expect(performance.now() - began).toBeLessThan(SOON);
        const nested = await waiter.lock({ owner: mine });
        expect(await waiter.getHoldCount({ owner: mine })).toBe(2);
        await nested.unlock();
        await mine.unlock();
        expect(await holder.isLocked()).toBe(false);
      }
    }
  });

  test("a wait that runs out, and one that is aborted, leave nothing behind", async () => {
    const { ours, lock, rival } = act();
    const hold = await rival.lock();
    await Promise.all([
      expect(lock.lock({ wait: LITTLE })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" }),
      expect(lock.run(() => {}, { wait: LITTLE })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" }),
      expect(lock.tryLock(LITTLE)).resolves.toBeNull(),
    ]);
    const controller = new AbortController();
    const { done } = await untilWaiting(ours, () => lock.lock({ signal: controller.signal }));
    controller.abort(new Error("enough"));
    expect((await failure(done)).message).toBe("enough");
    await hold.unlock();
    expect(await lock.isLocked()).toBe(false);
    const next = await until("nobody is in the way", () => rival.tryLock());
    await next?.unlock();
  });
}

/** A hold that the watchdog keeps, and its client's events since. */
interface Kept {
  readonly act: Act;
  readonly hold: Hold;
  readonly events: readonly SeenEvent[];
  readonly began: number;
}

async function keep(act: Act): Promise<Kept> {
  const { ours, lock } = act;
  await warmUpAtLast(lock);
  const events = recordEvents(ours);
  const hold = await lock.lock();
  return { act, hold, events, began: performance.now() };
}

export function ending(act: NewAct, connect: (options: LockClientOptions) => LockClient): void {
  let kept: Kept;
  // Before all tests, which take about as long as its lease.
  beforeAll(async () => {
    kept = await keep(act(connect({ ...FAR, watchdogTimeout: KEPT })));
  });

  test("a lease that ends lets the next one in, and its holder knows before that", async () => {
    const { ours, lock, rival } = act();
    const events = recordEvents(ours);
    const hold = await lock.lock({ lease: KEPT });
    // On a busy machine the lease may be over before the answer arrives; then extend() rejects.
    const shortened = hold.extend(SHORT).catch((error) => expect(error).toMatchObject(lost(lock)));
    const next = await rival.lock();
    await shortened;
    expect(hold.isHeld).toBe(false);
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining(lost(lock)));
    await until("the signal tells", () => hold.signal.aborted);
    const { lockName, ownerId } = hold;
    const told = events.filter(({ name, payload }) => name === "lost" && payload.ownerId === ownerId);
    expect(told).toEqual([
      { name: "lost", payload: expect.objectContaining({ lockName, reason: "expired" }) },
    ]);
    await expect(hold.unlock()).rejects.toMatchObject(lost(lock));
    expect(next.isHeld).toBe(true);
    await next.unlock();
  });

  test("the watchdog keeps a hold beyond its lease", async () => {
    const { hold, events, began } = kept;
    const { lock, rival } = kept.act;
    expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(KEPT);
    const renewals = () => events.filter(({ name }) => name === "renewed").length;
    // The hold must be alive by the client's clock too, because the server's clock may be another one, and ahead.
    const isOver = () => performance.now() - began > KEPT && renewals() > 1 && hold.remaining > 0;
    await until("a lease is over", isOver);
    expect(await rival.tryLock()).toBeNull();
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
    await (await rival.lock()).unlock();
  });

  test("force gives it to the next one, and the holder is told that it lost it", async () => {
    const { theirs, lock, twin, rival } = act();
    const hold = await lock.lock();
    const { done } = await untilWaiting(theirs, () => rival.lock());
    expect(await twin.forceUnlock()).toBe(true);
    const next = await done;
    await expect(hold.unlock()).rejects.toMatchObject(lost(lock));
    expect(hold.isHeld).toBe(false);
    expect(next.isHeld).toBe(true);
    await next.unlock();
    expect(await twin.forceUnlock()).toBe(false);
  });

  test("a client that closes gives back what it holds, and its waiters are told", async () => {
    const mine = connect(FAR);
    const { theirs, lock, rival } = act(mine);
    const hold = await lock.lock();
    const { done } = await untilWaiting(theirs, () => rival.lock());
    const other = act(mine);
    const taken = await other.rival.lock();
    const stranded = await untilWaiting(mine, () => other.lock.lock());
    const ended = failure(stranded.done);
    const told = nextEvent(mine, "lost");
    await mine.close({ timeout: 0 });
    expect(await ended).toMatchObject({ code: "CLIENT_CLOSED" });
    expect(await told).toMatchObject({ lockName: lock.name, reason: "closed" });
    expect(hold.isHeld).toBe(false);
    await (await done).unlock();
    await taken.unlock();
  });
}
