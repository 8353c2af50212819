/** The core of the contract: how waits end, and how holds end that nobody gave back. */
import { expect, test } from "vitest";
import type { LockClient, LockClientOptions } from "../../src/index.js";
import { failure, lost, nextEvent, recordEvents, untilWaiting, warmUpAtLast } from "../contract/helpers.js";
import { until } from "../support/index.js";
import { FAR, type NewAct } from "./core-act.js";

/** Much sooner than what is far away, much later than a message on a busy machine. */
const SOON = 10_000;
/** Of leases that are to end: a busy machine must have the time to use them. */
const SHORT = 1_500;
/** Of waits that are to run out: less than an answer takes on a busy machine would end them as unanswered. */
const LITTLE = 500;

export function waiting(act: NewAct): void {
  test("a waiter is woken by the message of the release, both ways", async () => {
    const { ours, theirs, lock, rival } = act();
    for (const [holder, waiter, client] of [
      [rival, lock, ours],
      [lock, rival, theirs],
    ] as const) {
      const hold = await holder.lock();
      const { done } = await untilWaiting(client, () => waiter.lock());
      const began = performance.now();
      await hold.unlock();
      await (await done).unlock();
      expect(performance.now() - began).toBeLessThan(SOON);
    }
  });

  test("a wait that runs out, and one that is aborted, leave nothing behind", async () => {
    const { ours, lock, rival } = act();
    const hold = await rival.lock();
    await expect(lock.lock({ wait: LITTLE })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    await expect(lock.run(() => {}, { wait: LITTLE })).rejects.toMatchObject({ code: "WAIT_TIMEOUT" });
    expect(await lock.tryLock(LITTLE)).toBeNull();
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

export function ending(act: NewAct, connect: (options: LockClientOptions) => LockClient): void {
  test("a lease that ends lets the next one in, and its holder knows before that", async () => {
    const { ours, lock, rival } = act();
    const events = recordEvents(ours);
    const hold = await lock.lock({ lease: SHORT });
    const next = await rival.lock();
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
    const { ours, lock, rival } = act(connect({ ...FAR, watchdogTimeout: SHORT }));
    await warmUpAtLast(lock);
    const events = recordEvents(ours);
    const hold = await lock.lock();
    expect(await lock.remainTimeToLive()).toBeLessThanOrEqual(SHORT);
    const began = performance.now();
    await until("a lease is over", () => performance.now() - began > SHORT && hold.remaining > 0);
    expect(await rival.tryLock()).toBeNull();
    expect(hold.isHeld).toBe(true);
    expect(events.filter(({ name }) => name === "renewed").length).toBeGreaterThan(1);
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
