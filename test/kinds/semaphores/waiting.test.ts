/** Contract section 5: waiting for permits and for a latch: what wakes a waiter, in which order, at what cost, and its end. */
import { getEventListeners } from "node:events";
import { expect } from "vitest";
import { NAME, type Watched, watch } from "../../support/place/index.js";
import { type Faces, LEASES, NEVER, type Numbers, test, UNKNOWN } from "./place.js";

interface Signal {
  readonly signal?: AbortSignal;
}

type Act = (on: Faces, id: string) => Promise<unknown>;

interface Kind {
  /** Makes one that has nothing to give; resolves with the id of a permit in use, if the kind has ids. */
  readonly make: (on: Faces) => Promise<unknown>;
  /** Client `i` waits: without end, or for so many milliseconds. */
  readonly wait: (on: Faces, i?: number, options?: Signal) => Promise<unknown>;
  readonly waitFor: (on: Faces, ms: number | undefined, options?: Signal) => Promise<unknown>;
  readonly tooLate: unknown;
  /** Client `i` gives as much as that many waiters want. */
  readonly give: (on: Faces, i: number, waiters: number) => Promise<unknown>;
  /** The number when all that was given has been taken. */
  readonly left: string | null;
  /** What wakes one waiter of the first client. */
  readonly wakers: Readonly<Record<string, Act>>;
  /** What gives as much as three waiters want, without a message. */
  readonly silent: Act;
}

const publish = (on: Faces, channel: string, message: unknown) =>
  on.call("PUBLISH", channel, String(message));
const SC = "redisson_sc:{job}";
const LATCH = "redisson_countdownlatch__channel__{job}";

const SEMAPHORE: Kind = {
  make: (on) => on.semaphore().trySetPermits(0),
  wait: (on, i, options) => on.semaphore(i).acquire(1, options),
  waitFor: (on, ms, options) => on.semaphore().tryAcquire(1, ms, options),
  tooLate: false,
  give: (on, i, waiters) => on.semaphore(i).release(waiters),
  left: "0",
  wakers: {
    "another client's release": (on) => on.semaphore(1).release(),
    "its own client's release": (on) => on.semaphore().release(),
    "another client's addPermits": (on) => on.semaphore(1).addPermits(2),
    "another client's trySetPermits": async (on) => {
      await on.call("DEL", on.name);
      await on.semaphore(1).trySetPermits(3);
    },
    "the end of another client's run": async (on) => {
      await on.call("INCR", on.name);
      await on.semaphore(1).run(() => {});
    },
    "Redisson's release, which announces the new total": async (on) =>
      publish(on, SC, await on.call("INCRBY", on.name, 3)),
  },
  silent: (on) => on.call("INCRBY", on.name, 3),
};

const PERMITS: Kind = {
  make: async (on) => {
    await on.permits().trySetPermits(1);
    return on.permits().acquire({ lease: NEVER });
  },
  wait: (on, i, options) => on.permits(i).acquire({ lease: NEVER, ...options }),
  waitFor: (on, ms, options) => on.permits().tryAcquire(ms, NEVER, options),
  tooLate: null,
  give: (on, i, waiters) => on.permits(i).addPermits(waiters),
  left: "0",
  wakers: {
    "another client's release": (on, id) => on.permits(1).release(id),
    "another client's tryRelease": (on, id) => on.permits(1).tryRelease(id),
    "its own client's release": (on, id) => on.permits().release(id),
    "another client's addPermits": (on) => on.permits(1).addPermits(1),
    "another client's setPermits": (on) => on.permits(1).setPermits(3),
    "Redisson's release of a list, which announces their number": async (on, id) => {
      await on.permits(1).release(id);
      await on.call("INCRBY", on.name, 2);
      await publish(on, SC, 3);
    },
  },
  silent: (on) => on.call("INCRBY", on.name, 3),
};

const COUNT_DOWN_LATCH: Kind = {
  make: (on) => on.latch().trySetCount(1),
  wait: (on, i, options) => on.latch(i).await(undefined, options),
  waitFor: (on, ms, options) => on.latch().await(ms, options),
  tooLate: false,
  give: (on, i) => on.latch(i).countDown(),
  left: null,
  wakers: {
    "another client's countDown": (on) => on.latch(1).countDown(),
    "its own client's countDown": (on) => on.latch().countDown(),
    "Redisson's last countDown, which announces 0": async (on) => {
      await on.call("DEL", on.name);
      await publish(on, LATCH, 0);
    },
    "a delete of Redisson's, which announces 1": async (on) => {
      await on.call("DEL", on.name);
      await publish(on, LATCH, 1);
    },
  },
  silent: (on) => on.call("PEXPIRE", on.name, 50),
};

const KINDS: readonly (readonly [name: string, kind: Kind])[] = [
  ["a semaphore", SEMAPHORE],
  ["an expirable semaphore", PERMITS],
  ["a latch", COUNT_DOWN_LATCH],
];

const states = (calls: readonly Watched[]) => calls.map(({ state }) => state);

/** A call that waits, and has nothing on its way. */
async function parked<T>({ settle }: Numbers, call: Promise<T>): Promise<Watched<T>> {
  const watched = watch(call);
  await settle();
  expect(watched.outcome).toBe("pending");
  return watched;
}

for (const [name, kind] of KINDS) {
  const { make, wait, waitFor, give, left } = kind;

  for (const [waker, wake] of Object.entries(kind.wakers)) {
    test(`who waits for ${name} is woken by ${waker} [§2 woken-by-message]`, async (place) => {
      const id = await make(place);
      const waiting = await parked(place, wait(place));
      await place.soon(wake(place, String(id)));
      expect(waiting.state).toBe("resolved");
    });
  }

  test.with({ pollCap: 3_000 })(
    `those who wait for ${name} cost nothing, and without a message see within pollCap what there is [§2 poll-cap]`,
    async (place) => {
      const { pass, server, settle, soon } = place;
      await make(place);
      const { signal } = new AbortController();
      const calls = Array.from({ length: 60 }, () => watch(wait(place, 0, { signal })));
      await settle();
      server.took();
      await pass(2_999);
      expect(server.took()).toEqual([]);
      await pass(3_001);
      expect(server.took().length).toBeLessThanOrEqual(3);
      expect(getEventListeners(signal, "abort")).toHaveLength(1);
      await kind.silent(place, "");
      await pass(3_000);
      expect(states(calls.slice(0, 3))).toEqual(["resolved", "resolved", "resolved"]);
      await soon(give(place, 1, 57));
      expect(new Set(states(calls))).toEqual(new Set(["resolved"]));
      expect(getEventListeners(signal, "abort")).toEqual([]);
      expect((await place.counts())[0]).toBe(left);
    },
  );

  test(`a wait for ${name} ends in time, or is served as soon as it can be [§2 wait]`, async (place) => {
    await make(place);
    expect(await waitFor(place, 0)).toBe(kind.tooLate);
    const short = await parked(place, waitFor(place, 1_000));
    const others = [NEVER, Number.POSITIVE_INFINITY].map((ms) => watch(waitFor(place, ms)));
    await place.pass(999);
    expect(short.outcome).toBe("pending");
    await place.pass(1);
    expect([short.outcome, ...states(others)]).toEqual([kind.tooLate, "pending", "pending"]);
    await place.soon(give(place, 1, 2));
    expect([...states(others), (await place.counts())[0]]).toEqual(["resolved", "resolved", left]);
  });

  test(`an abort ends a wait for ${name} at once, holds up nobody, and before the call sends nothing [§2 signal]`, async (place) => {
    await make(place);
    const [controller, reason] = [new AbortController(), new Error("enough")];
    const { signal } = controller;
    const calls = [await parked(place, wait(place, 0, { signal })), watch(waitFor(place, NEVER, { signal }))];
    const behind = await parked(place, wait(place));
    controller.abort(reason);
    await place.settle();
    expect(calls.map(({ error }) => error)).toEqual([reason, reason]);
    expect(getEventListeners(signal, "abort")).toEqual([]);
    await place.soon(give(place, 1, 1));
    expect([behind.state, (await place.counts())[0]]).toEqual(["resolved", left]);
    await give(place, 1, 5);
    const sent = place.server.ran.length;
    const late = [
      wait(place, 0, { signal }),
      ...[undefined, 0, 500].map((ms) => waitFor(place, ms, { signal })),
    ];
    for (const call of late) await expect(call).rejects.toBe(reason);
    expect(place.server.ran).toHaveLength(sent);
  });

  test.with({ pollCap: 3_000 })(
    `who waits for ${name} survives an outage, unless its wait ends then [§2 waiting-survives-outage] [§2 last-try-unanswered]`,
    async (place) => {
      await make(place);
      const calls = [await parked(place, wait(place)), watch(wait(place))];
      const short = await parked(place, waitFor(place, 5_000));
      await place.a.cut();
      await place.pass(5_001);
      expect([short.outcome, ...states(calls)]).toEqual(["UNAVAILABLE", "pending", "pending"]);
      await give(place, 1, 2);
      await place.a.mend();
      await place.pass(1_000);
      expect([...states(calls), (await place.counts())[0]]).toEqual(["resolved", "resolved", left]);
    },
  );
}

for (const [name, { make, wait, give }] of KINDS.slice(0, 2)) {
  test(`those who wait for ${name} are served in the order of their calls [§5 semaphore]`, async (place) => {
    await make(place);
    const order: number[] = [];
    for (let i = 0; i < 12; i++) void wait(place).then(() => order.push(i));
    await place.settle();
    for (const permits of [1, 3, 1, 5]) {
      await place.soon(give(place, 1, permits));
    }
    expect(order).toEqual(Array.from({ length: 10 }, (_, i) => i));
    await place.soon(give(place, 1, 2));
    expect(order).toHaveLength(12);
  });

  test(`one message wakes as many who wait for ${name} as there are permits, in every process [§2 woken-by-message]`, async (place) => {
    await make(place);
    const calls = Array.from({ length: 20 }, (_, i) => watch(wait(place, i % 2)));
    await place.settle();
    place.server.took();
    await place.soon(give(place, 2, 4));
    expect(states(calls).filter((state) => state === "resolved")).toHaveLength(4);
    // Each process has to find out, and the tries of one are no more than the permits.
    expect(place.server.took().length).toBeLessThanOrEqual(1 + 4 + 4);
    await place.soon(give(place, 2, 16));
    expect(new Set(states(calls))).toEqual(new Set(["resolved"]));
    expect((await place.counts())[0]).toBe("0");
  });
}

test("small requests do not pass a large one that came first, whoever is served before it [§5 semaphore]", async (place) => {
  const { semaphore, settle, counts, soon } = place;
  await semaphore().trySetPermits(0);
  const calls = [1, 5, 1].map((permits) => watch(semaphore().acquire(permits)));
  await settle();
  for (const [permits, free, ...expected] of [
    [2, "1", "resolved", "pending", "pending"],
    [3, "4", "resolved", "pending", "pending"],
    [1, "0", "resolved", "resolved", "pending"],
    [1, "0", "resolved", "resolved", "resolved"],
  ] as const) {
    await soon(semaphore(1).release(permits));
    expect([(await counts())[0], ...states(calls)]).toEqual([free, ...expected]);
  }
});

test("a large request that is aborted or times out holds up nobody behind it [§5 semaphore]", async (place) => {
  const { semaphore, settle, pass, counts } = place;
  await semaphore().trySetPermits(2);
  const controller = new AbortController();
  const calls: Watched<unknown>[] = [
    await parked(place, semaphore().tryAcquire(5, 2_000)),
    watch(semaphore().acquire(5, { signal: controller.signal })),
    watch(semaphore().acquire()),
    watch(semaphore().acquire()),
  ];
  await pass(2_000);
  expect(calls.map(({ outcome }) => outcome)).toEqual([false, "pending", "pending", "pending"]);
  controller.abort("enough");
  await settle();
  expect(calls.map(({ outcome }) => outcome)).toEqual([false, "enough", undefined, undefined]);
  expect(await counts()).toEqual(["0", 0]);
});

test("an abort at any moment after a release loses no permit [§5 semaphore] [§2 nothing-left]", async (place) => {
  const { semaphore, settle, counts } = place;
  await semaphore().trySetPermits(0);
  for (let ticks = 0; ticks < 25; ticks++) {
    const controller = new AbortController();
    const first = await parked(place, semaphore().acquire(1, { signal: controller.signal }));
    const second = await parked(place, semaphore().acquire());
    const released = semaphore(1).release();
    for (let i = 0; i < ticks; i++) await undefined;
    controller.abort("enough");
    await released;
    await settle();
    if (first.state === "resolved") await semaphore(1).release();
    await settle();
    expect([second.state, await counts()]).toEqual(["resolved", ["0", 0]]);
  }
});

test("no message harms who waits, and none but the right one lets it go [§2 woken-by-message]", async (place) => {
  const { call, semaphore, latch, settle, soon } = place;
  const junk = ["", "-3", "0", "1", "x".repeat(100_000), "1e400", "NaN", "99999999999999999999"];
  await call("SET", NAME, 0);
  const waiting = await parked(place, semaphore().acquire());
  for (const message of junk) await publish(place, SC, message);
  await settle();
  expect(waiting.state).toBe("pending");
  await call("INCR", NAME);
  await soon(publish(place, SC, "one"));
  expect(waiting.state).toBe("resolved");
  await call("SET", NAME, 2);
  const gate = await parked(place, latch().await());
  for (const message of junk) await publish(place, LATCH, message);
  await soon(latch(1).countDown());
  expect(gate.state).toBe("pending");
  await soon(latch(1).countDown());
  expect(gate.value).toBe(true);
});

test("a latch lets all go who wait, by one look each, though it is set again then [§5 latch]", async (place) => {
  const { latch, server, settle, soon } = place;
  for (let round = 0; round < 3; round++) {
    expect(await latch(2).trySetCount(1)).toBe(true);
    const calls = Array.from({ length: 60 }, (_, i) => watch(latch(i % 2).await(i % 3 ? NEVER : undefined)));
    await settle();
    server.took();
    await soon(latch(2).countDown());
    expect(new Set(states(calls))).toEqual(new Set(["resolved"]));
    expect(server.took().length).toBeLessThanOrEqual(61);
  }
});

test("a permit whose lease ends goes to who waits in any process, without a message [§5 permits] [§2 poll-cap]", async (place) => {
  const { permits, pass, server, settle, left, call, enter } = place;
  await permits().trySetPermits(9);
  for (let i = 0; i < 9; i++) await permits(2).acquire({ lease: 4_000 });
  await call("SET", NAME, 0);
  // One of Redisson's, which ends a second later.
  await enter(UNKNOWN, 5_000);
  const calls = Array.from({ length: 10 }, (_, i) => watch(permits(i % 2).acquire({ lease: NEVER })));
  await settle();
  server.took();
  await pass(3_900);
  expect([server.took(), ...new Set(states(calls))]).toEqual([[], "pending"]);
  await pass(200);
  expect(states(calls).filter((state) => state === "resolved")).toHaveLength(9);
  await pass(1_000);
  expect(new Set(states(calls))).toEqual(new Set(["resolved"]));
  expect(new Set(calls.map(({ value }) => value))).toEqual(new Set(Object.keys(left())));
  expect([await call("GET", NAME), await call("ZCARD", LEASES)]).toEqual(["0", 10]);
});
