/** The cost for Redis of taking, giving back and waiting; and that an ended call leaves nothing in the process. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { INTERNALS } from "../../src/client-options.js";
import type { Lock, LockClientOptions } from "../../src/index.js";
import { byName } from "../contract/kinds.js";
import { until } from "../support/index.js";
import { type Bed, manyAtOnce, ownCommand, pause, script, untilQuiet, useStage, watch } from "./harness.js";
import { listeners } from "./remains.js";

manyAtOnce();
const stage = await useStage("standalone");

const sent = (bed: Bed): string[] => bed.proxy.commands.map(({ command }) => command[0] ?? "");

/** Resolves when the waiting calls have tried, subscribed, and tried again. */
const untilParked = (bed: Bed): Promise<void> => untilQuiet(() => bed.proxy.count(ownCommand), 150);

describe.concurrent.each(byName())("%s: commands", (_kind, kind) => {
  test("one to take a free lock, one to give it back, one for each nested acquire and release", async () => {
    await using bed = await stage.bed({ kind, split: true });
    for (const verb of ["EVAL", "EVALSHA"]) {
      await bed.client.scope(async () => {
        const steps = [
          () => bed.lock.lock(),
          () => bed.lock.lock(),
          () => bed.lock.tryLock(10_000, 5_000),
          () => bed.lock.unlock(),
          () => bed.lock.unlock(),
          () => bed.lock.unlock(),
        ];
        const seen: string[][] = [];
        for (const step of steps) {
          bed.proxy.clear();
          await step();
          seen.push(sent(bed));
        }
        expect(seen.map((commands) => commands.length)).toEqual(steps.map(() => 1));
        if (verb === "EVALSHA") expect(seen.flat()).toEqual(steps.map(() => "EVALSHA"));
      });
    }
    bed.proxy.clear();
    await bed.lock.run(() => bed.lock.run(() => {}));
    expect(sent(bed).length).toBe(4);
  });

  test("200 idle waiters cost at most 5 commands in 3 seconds", async () => {
    await using other = await stage.bed({ kind });
    await using bed = await stage.bed({ kind });
    const theirs = await other.rival(bed.name).lock();
    bed.proxy.clear();
    const controllers = Array.from({ length: 200 }, () => new AbortController());
    const calls = controllers.map(({ signal }) => watch(bed.lock.lock({ signal })));
    if (kind.places) {
      await untilParked(bed);
      bed.proxy.clear();
    }
    await pause(3_000);
    expect(calls.every(({ state }) => state === "pending")).toBe(true);
    expect(bed.proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    for (const controller of controllers) controller.abort("enough");
    await until("all are over", () => calls.every(({ state }) => state === "rejected"));
    await theirs.unlock();
  });

  // If the server does not know each waiter, one command gives back and grants the next; now and then others are asked.
  test("a hand-over among 100 local waiters costs at most 2 tries, or about 1 command", async () => {
    await using bed = await stage.bed({ kind });
    const first = await bed.rival().lock();
    const calls = Array.from({ length: 100 }, () => bed.lock.run(() => {}));
    await until("the head is parked", async () => (await listeners(stage.server, bed.name)) >= 1);
    await until("it has asked again", () => bed.proxy.count(script("acquire", bed.name)) >= 3);
    await untilParked(bed);
    bed.proxy.clear();
    await first.unlock();
    await Promise.all(calls);
    const given = bed.proxy.count(script("release", bed.name)) + bed.proxy.count(script("pass", bed.name));
    expect(given).toBe(101);
    expect(bed.proxy.count(ownCommand)).toBeLessThanOrEqual(kind.places || !kind.exclusive ? 305 : 180);
  });

  // Not for readers: all of them are granted then, each by a try of its own.
  if (kind.exclusive)
    test("a release by another client costs 100 local waiters at most 2 tries", async () => {
      await using other = await stage.bed({ kind });
      await using bed = await stage.bed({ kind });
      const theirs = await other.rival(bed.name).lock();
      const controller = new AbortController();
      const calls = Array.from({ length: 100 }, () => watch(bed.lock.lock({ signal: controller.signal })));
      await until("the head has asked again", () => bed.proxy.count(script("acquire", bed.name)) >= 2);
      await until("it listens", async () => (await listeners(stage.server, bed.name)) >= 1);
      await untilParked(bed);
      bed.proxy.clear();
      await theirs.unlock();
      await until("one has it", () => calls.some(({ state }) => state === "resolved"));
      expect(bed.proxy.count(script("acquire", bed.name))).toBeLessThanOrEqual(2);
      controller.abort("enough");
      await until("all are over", () => calls.every(({ state }) => state !== "pending"));
      await calls.find(({ state }) => state === "resolved")?.value?.unlock();
    });
});

describe.concurrent.each(byName())(
  "%s: a call that has ended leaves no subscription, timer, listener or waiter",
  (_kind, kind) => {
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
      await using other = await stage.bed({ kind });
      await using bed = await stage.bed({ kind, client: options });
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
      await bed.redis.ping();
      expect(bed.proxy.count(ownCommand)).toBe(1); // the PING
    });

    test("granted, and given back", async () => {
      const { options, running } = counted({ commandTimeout: 3_000 });
      await using other = await stage.bed({ kind });
      await using bed = await stage.bed({ kind, client: options });
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
      await using other = await stage.bed({ kind });
      await using bed = await stage.bed({ kind, split: true, client: options });
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
      await using other = await stage.bed({ kind });
      await using bed = await stage.bed({ kind });
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
  },
);
