/** The cost for Redis of taking, giving back and waiting; and that an ended call leaves nothing in the process. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import type { Lock, LockClientOptions } from "../../src/index.js";
import { until } from "../support/index.js";
import { manyAtOnce, ownCommand, pause, untilQuiet, useStage, watch } from "./harness.js";
import { listeners } from "./remains.js";

manyAtOnce();
const stage = await useStage("standalone");

describe.concurrent("commands", () => {
  test("200 idle waiters cost at most 5 commands in 3 seconds", async () => {
    await using other = await stage.bed();
    await using bed = await stage.bed();
    const theirs = await other.rival(bed.name).lock();
    const controllers = Array.from({ length: 200 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => watch(bed.lock.lock({ signal })));
    await until("the first one listens", async () => (await listeners(stage.server, bed.name)) >= 1);
    await untilQuiet(() => bed.proxy.count(ownCommand));
    bed.proxy.clear();
    await pause(3_000);
    expect(calls.every(({ state }) => state === "pending")).toBe(true);
    expect(bed.proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    for (const controller of controllers) controller.abort("enough");
    await until("all are over", () => calls.every(({ state }) => state === "rejected"));
    await theirs.unlock();
  });
});

describe.concurrent("a call that has ended leaves no subscription, timer, listener or waiter", () => {
  /** Client options whose clock counts the running timers. */
  function counted(options: LockClientOptions): { options: LockClientOptions; running: () => number } {
    const timers = new Set<object>();
    const clock = {
      ...systemClock,
      after: (ms: number, callback: () => void) => {
        const timer = {};
        timers.add(timer);
        const cancel = systemClock.after(ms, () => {
          timers.delete(timer);
          callback();
        });
        return () => {
          timers.delete(timer);
          cancel();
        };
      },
    };
    return {
      options: { ...options, [INTERNALS]: { clock } } as LockClientOptions,
      running: () => timers.size,
    };
  }

  /** Each for a lock of its own. */
  const endings: ((lock: Lock, controller: AbortController) => Promise<unknown>)[] = [
    (lock, controller) => {
      setTimeout(() => controller.abort("enough"), 100);
      return lock.lock({ signal: controller.signal });
    },
    (lock, { signal }) => lock.lock({ wait: 100, signal }),
    (lock, { signal }) => lock.tryLock(100, undefined, { signal }),
    (lock, { signal }) => lock.tryLock(0, undefined, { signal }),
    (lock, { signal }) => lock.run(() => {}, { wait: 100, signal }),
  ];

  test("aborted, timed out, refused at once, given up by lock, tryLock and run", async () => {
    const { options, running } = counted({ commandTimeout: 3_000 });
    await using other = await stage.bed();
    await using bed = await stage.bed({ client: options });
    const names = endings.map((_, i) => `${bed.name}${i}`);
    const theirs = await Promise.all(names.map((name) => other.rival(name).lock()));
    const controllers = names.map(() => new AbortController());
    const calls = endings.flatMap((end, i) =>
      [1, 2, 3].map(() => end(bed.make(names[i]), controllers[i] as AbortController)),
    );
    await Promise.allSettled(calls);
    for (const { signal } of controllers) expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("nobody listens", async () => (await listeners(stage.server, bed.name)) === 0);
    await until("no timer runs", () => running() === 0);
    bed.proxy.clear();
    for (const hold of theirs) await hold.unlock();
    await bed.own.ping();
    expect(bed.proxy.count(ownCommand)).toBe(1); // the PING
  });

  test("granted, and given back", async () => {
    const { options, running } = counted({ commandTimeout: 3_000 });
    await using other = await stage.bed();
    await using bed = await stage.bed({ client: options });
    const theirs = await other.rival(bed.name).lock();
    const { signal } = new AbortController();
    const calls = [1, 2, 3].map(() => bed.lock.run(() => {}, { signal, wait: 10_000 }));
    await until("they wait", async () => (await listeners(stage.server, bed.name)) >= 1);
    await theirs.unlock();
    await Promise.all(calls);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("nobody listens", async () => (await listeners(stage.server, bed.name)) === 0);
    // One timer of the watchdog may be left: to let it fire is cheaper than to move it at each call.
    await until("no timer runs but one", () => running() <= 1);
  });

  test("rejected by close: the client's connection to be woken by is closed too", async () => {
    const { options, running } = counted({ commandTimeout: 3_000 });
    await using other = await stage.bed();
    await using bed = await stage.bed({ split: true, client: options });
    const theirs = await other.rival(bed.name).lock();
    const { signal } = new AbortController();
    const calls = [1, 2].map(() => watch(bed.lock.lock({ signal, wait: 10_000 })));
    await until("they wait", async () => (await listeners(stage.server, bed.name)) >= 1);
    await bed.client.close({ timeout: 0 });
    await until("they are over", () => calls.every(({ state }) => state === "rejected"));
    for (const { error } of calls)
      expect(error).toMatchObject({ code: "CLIENT_CLOSED", lockName: bed.lock.name });
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await until("the connection is closed", () => bed.subscribing.openConnections === 0);
    await until("no timer runs", () => running() === 0);
    expect(bed.redis.status).toBe("ready");
    await theirs.unlock();
  });

  test("many waiters on one signal use one listener", async () => {
    await using other = await stage.bed();
    await using bed = await stage.bed();
    const theirs = await other.rival(bed.name).lock();
    const controller = new AbortController();
    const calls = Array.from({ length: 50 }, () => watch(bed.lock.lock({ signal: controller.signal })));
    await until("they wait", async () => (await listeners(stage.server, bed.name)) >= 1);
    expect(getEventListeners(controller.signal, "abort").length).toBe(1);
    controller.abort("enough");
    await until("all are over", () => calls.every(({ error }) => error === "enough"));
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
    await theirs.unlock();
  });
});
