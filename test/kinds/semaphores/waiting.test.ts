/** What the waiters of semaphores and latches have in common: what wakes them, at what cost, and how a wait ends. */
import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import {
  failsSoon,
  manyAtOnce,
  ownCommand,
  pause,
  Stage,
  soon,
  turn,
  useStage,
  watch,
} from "../../faults/harness.js";
import { SLACK, until } from "../../support/index.js";
import { asleep, latchChannel, NEVER, NO_LEASE, Site, UNKNOWN } from "./helpers.js";

manyAtOnce();
const stage = await useStage("standalone");

interface Signal {
  readonly signal?: AbortSignal;
}

interface Kind {
  /** Makes one without anything to give; returns the id of a permit in use, if the kind has ids. */
  readonly make: (site: Site) => Promise<string>;
  /** Client `i` waits without end. */
  readonly wait: (site: Site, i?: number, options?: Signal) => Promise<unknown>;
  readonly granted: unknown;
  /** Waits for that many milliseconds. */
  readonly waitFor: (site: Site, ms?: number, options?: Signal) => Promise<unknown>;
  readonly inTime: unknown;
  readonly tooLate: unknown;
  /** Client `i` gives as much as that many waiters want. */
  readonly give: (site: Site, i: number, waiters: number) => Promise<unknown>;
  /** The value of the key with the name after all that was given has been taken. */
  readonly left: string | null;
  readonly wakers: readonly (readonly [title: string, wake: (site: Site, id: string) => Promise<unknown>])[];
  /** Gives as much as three waiters want, without a message. */
  readonly silent: readonly (readonly [title: string, give: (site: Site) => Promise<unknown>])[];
}

const isId: unknown = expect.stringMatching(/^[0-9a-f]{32}$/);

const semaphore: Kind = {
  make: async (site) => {
    await site.semaphore().trySetPermits(0);
    return "";
  },
  wait: (site, i, options) => site.semaphore(i).acquire(1, options),
  granted: undefined,
  waitFor: (site, ms, options) => site.semaphore().tryAcquire(1, ms, options),
  inTime: true,
  tooLate: false,
  give: (site, i, waiters) => site.semaphore(i).release(waiters),
  left: "0",
  wakers: [
    ["another client's release", (site) => site.semaphore(1).release()],
    ["its own client's release", (site) => site.semaphore(0).release()],
    ["another client's addPermits", (site) => site.semaphore(1).addPermits(2)],
    [
      "another client's trySetPermits",
      async (site) => {
        await site.redis.del(site.name);
        expect(await site.semaphore(1).trySetPermits(3)).toBe(true);
      },
    ],
    [
      "the end of another client's run",
      async (site) => {
        await site.redis.incr(site.name);
        await site.semaphore(1).run(() => {});
      },
    ],
  ],
  silent: [
    ["permits are released by hand", (site) => site.redis.incrby(site.name, 3)],
    ["permits are set anew by hand", (site) => site.redis.set(site.name, "3")],
  ],
};

const permits: Kind = {
  /** Two permits are in use: one of Redisson's without an end, and the one that is returned. */
  make: async (site) => {
    await site.permits().trySetPermits(1);
    await site.enter(UNKNOWN, NO_LEASE);
    return site.permits().acquire({ lease: NEVER });
  },
  wait: (site, i, options) => site.permits(i).acquire({ lease: NEVER, ...options }),
  granted: isId,
  waitFor: (site, ms, options) => site.permits().tryAcquire(ms, NEVER, options),
  inTime: isId,
  tooLate: null,
  give: (site, i, waiters) => site.permits(i).addPermits(waiters),
  left: "0",
  wakers: [
    ["another client's release", (site, id) => site.permits(1).release(id)],
    ["another client's tryRelease", (site, id) => site.permits(1).tryRelease(id)],
    ["its own client's release", (site, id) => site.permits(0).release(id)],
    ["another client's addPermits", (site) => site.permits(1).addPermits(1)],
    ["another client's setPermits", (site) => site.permits(1).setPermits(3)],
  ],
  silent: [["permits are added by hand", (site) => site.redis.incrby(site.name, 3)]],
};

const latch: Kind = {
  make: async (site) => {
    await site.latch().trySetCount(1);
    return "";
  },
  wait: (site, i, options) => site.latch(i).await(undefined, options),
  granted: true,
  waitFor: (site, ms, options) => site.latch().await(ms, options),
  inTime: true,
  tooLate: false,
  give: (site, i) => site.latch(i).countDown(),
  left: null,
  wakers: [
    ["another client's countDown", (site) => site.latch(1).countDown()],
    ["its own client's countDown", (site) => site.latch(0).countDown()],
    [
      "a delete of Redisson's, which announces 1",
      async (site) => {
        await site.redis.del(site.name);
        await site.redis.publish(latchChannel(site.name), "1");
      },
    ],
  ],
  silent: [
    ["it is deleted by hand", (site) => site.redis.del(site.name)],
    ["it lapses", (site) => site.redis.pexpire(site.name, 50)],
  ],
};

describe.concurrent.each([
  ["a semaphore", semaphore],
  ["an expirable semaphore", permits],
  ["a latch", latch],
])("who waits for %s", (_kind, kind) => {
  test.each(kind.wakers)("is woken by %s", async (_, wake) => {
    await using site = await Site.of(stage, asleep, {});
    const id = await kind.make(site);
    const waiting = await site.parked(0, () => kind.wait(site));
    await wake(site, id);
    expect(await soon(waiting)).toEqual(kind.granted);
    await site.untilNobodyListens();
  });

  test("is woken by what is given between its refusal and its subscription", async () => {
    await using site = await Site.of(stage, { ...asleep, split: true }, {});
    const { proxy, subscribing, redis } = site.bed(0);
    await kind.make(site);
    proxy.clear();
    subscribing.stall();
    const waiting = watch(kind.wait(site));
    await until("it has asked", () => site.asked() > 0);
    await redis.ping(); // then the call has been refused
    await kind.give(site, 1, 1);
    expect(await site.listeners()).toBe(0);
    subscribing.restore();
    await soon(waiting);
  });

  test("sees within pollCap what is given while its subscriber connection is half open", async () => {
    await using site = await Site.of(stage, { pollCap: 500, split: true }, {});
    await kind.make(site);
    const waiting = await site.parked(0, () => kind.wait(site));
    site.bed(0).subscribing.blackhole();
    await kind.give(site, 1, 1);
    await soon(waiting, 500 + SLACK);
  });

  test.each(kind.silent)("sees within pollCap, as do the others, that %s", async (_, give) => {
    await using site = await Site.of(stage, { pollCap: 400 });
    await kind.make(site);
    const calls = [await site.parked(0, () => kind.wait(site))];
    for (let i = 1; i < 3; i++) calls.push(watch(kind.wait(site)));
    await give(site);
    for (const call of calls) await soon(call, 400 + SLACK);
    expect(await site.value()).toBe(kind.left);
  });

  test("costs nothing while nothing happens: 200 waiters, at most 5 commands in 3 seconds", async () => {
    await using site = await Site.of(stage, {});
    await kind.make(site);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [await site.parked(0, () => kind.wait(site, 0, { signal }))];
    for (let i = 1; i < 200; i++) calls.push(watch(kind.wait(site, 0, { signal })));
    await turn();
    site.bed(0).proxy.clear();
    await pause(3_000);
    expect(calls.every(({ state }) => state === "pending")).toBe(true);
    expect(site.bed(0).proxy.count(ownCommand)).toBeLessThanOrEqual(5);
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    controller.abort("enough");
    for (const call of calls) expect(await failsSoon(call)).toBe("enough");
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await site.untilNobodyListens();
  });

  test("is told in time that its wait is over, or is served as soon as it can be", async () => {
    await using site = await Site.of(stage, asleep, {});
    await kind.make(site);
    expect(await kind.waitFor(site, 0)).toBe(kind.tooLate);
    const short = watch(kind.waitFor(site, 1_000));
    const others = [NEVER, Number.POSITIVE_INFINITY].map((ms) => watch(kind.waitFor(site, ms)));
    expect(await soon(short)).toBe(kind.tooLate);
    expect(short.took).toBeGreaterThan(990);
    expect(short.took).toBeLessThan(1_000 + SLACK);
    await site.expectStillWaiting(...others);
    await kind.give(site, 1, 2);
    for (const call of others) expect(await soon(call)).toEqual(kind.inTime);
    expect(await site.value()).toBe(kind.left);
    await site.untilNobodyListens();
  });

  test("is rejected at once with the signal's reason, leaves nothing, and holds up nobody", async () => {
    await using site = await Site.of(stage, asleep, {});
    await kind.make(site);
    const controller = new AbortController();
    const { signal } = controller;
    const calls = [
      await site.parked(0, () => kind.wait(site, 0, { signal })),
      watch(kind.waitFor(site, NEVER, { signal })),
    ];
    const behind = watch(kind.wait(site));
    await turn();
    const reason = new Error("enough");
    controller.abort(reason);
    await turn();
    expect(calls.map(({ error }) => error)).toEqual([reason, reason]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await kind.give(site, 1, 1);
    await soon(behind);
    expect(await site.value()).toBe(kind.left);
    await site.untilNobodyListens();
  });

  test("with a signal that is aborted already is rejected with its reason, and sends nothing", async () => {
    await using site = await Site.of(stage);
    await kind.give(site, 0, 5);
    site.bed(0).proxy.clear();
    const signal = AbortSignal.abort("no");
    await expect(kind.wait(site, 0, { signal })).rejects.toBe("no");
    for (const ms of [undefined, 0, 500]) await expect(kind.waitFor(site, ms, { signal })).rejects.toBe("no");
    expect(site.bed(0).proxy.count(ownCommand)).toBe(0);
  });

  test("is told UNAVAILABLE if its wait ends while Redis is away", async () => {
    await using own = await Stage.start(["standalone"]);
    // Redis counts as away after it was silent for a tenth of commandTimeout.
    await using site = await Site.of(own, { pollCap: 300, commandTimeout: 3_000 });
    await kind.make(site);
    const waiting = await site.parked(0, () => kind.waitFor(site, 5_000));
    own.server.pause();
    expect(await failsSoon(waiting)).toMatchObject({ code: "UNAVAILABLE", lockName: site.name });
    expect(waiting.took).toBeLessThan(5_000 + SLACK);
    own.server.resume();
  });
});

describe.concurrent.each([
  ["a semaphore", semaphore],
  ["an expirable semaphore", permits],
])("those who wait for %s", (_kind, kind) => {
  test("are served in the order of the calls of their process", async () => {
    await using site = await Site.of(stage, asleep, {});
    await kind.make(site);
    const order: number[] = [];
    const take = async (i: number): Promise<void> => {
      await kind.wait(site);
      order.push(i);
    };
    const calls = [await site.parked(0, () => take(0))];
    for (let i = 1; i < 12; i++) calls.push(watch(take(i)));
    for (const permits of [1, 3, 1, 5, 2]) await kind.give(site, 1, permits);
    for (const call of calls) await soon(call);
    expect(order).toEqual(Array.from({ length: 12 }, (_, i) => i));
  });

  test("are woken by one message of many permits, as many as there are, in every process", async () => {
    await using site = await Site.of(stage, asleep, asleep, {});
    await kind.make(site);
    const first = [
      await site.parked(0, () => kind.wait(site, 0)),
      await site.parked(1, () => kind.wait(site, 1)),
    ];
    const more = [0, 1].flatMap((i) => Array.from({ length: 9 }, () => watch(kind.wait(site, i))));
    await turn();
    await kind.give(site, 2, 20);
    for (const call of [...first, ...more]) await soon(call);
    expect(await site.value()).toBe("0");
  });
});

test.concurrent.each<[string, number, number, (site: Site, signal: AbortSignal) => Promise<unknown>]>([
  ["permits of a semaphore", 2, 0, (site, signal) => site.semaphore().acquire(2, { signal })],
  ["an expirable permit", 1, 1, (site, signal) => site.permits().acquire({ signal })],
])("an abort while the grant of %s is on its way gives it back", async (_, each, ids, take) => {
  await using site = await Site.of(stage, asleep);
  await site.redis.set(site.name, 20 * each);
  site.bed(0).proxy.delayReplies(200, site.own);
  let granted = 0;
  const calls = Array.from({ length: 20 }, async (_, i) => {
    const controller = new AbortController();
    const call = watch(take(site, controller.signal));
    await Promise.race([pause(15 * i), call.promise.catch(() => {})]);
    controller.abort("enough");
    await turn();
    if (call.state === "resolved") granted++;
    else expect(call.error).toBe("enough");
  });
  await Promise.all(calls);
  site.bed(0).proxy.restore();
  expect(granted).toBeLessThan(18);
  await site.untilValue(String((20 - granted) * each));
  await site.expectPermits((20 - granted) * each, granted * ids);
  expect(site.bed(0).troubles).toEqual([]);
});
