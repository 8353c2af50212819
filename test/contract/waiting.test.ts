/** Contract section 2: calls that wait: for how long, what wakes them, what they cost, and what an outage does to them. */
import { expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import { type Hold, type Lock, LockTimeoutError } from "../../src/index.js";
import { recordWarnings } from "../support/index.js";
import {
  EXCLUSIVE,
  FAIR,
  failure,
  GROUPS,
  PLAIN,
  READ,
  row,
  SINGLE,
  type VirtualPlace,
  WRITE,
  watch,
} from "../support/place/index.js";

/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;
const COMMAND_TIMEOUT = 1_000;
const PATIENT = { pollCap: NEVER, commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: 900_000 };

const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;

row.real(
  "tryLock() of a free lock gives a hold with the lease asked for [§2 wait]",
  async ({ lock, view }) => {
    const leased = await lock.tryLock(0, 10_000);
    expect(leased?.isHeld).toBe(true);
    expect(await view.ttl()).toBeLessThanOrEqual(10_000);
    await leased?.unlock();
    const kept = await lock.tryLock();
    expect(await view.ttl()).toBeGreaterThan(20_000);
    await kept?.unlock();
  },
);

row(
  "a wait of 0, or none of tryLock(), is one try [§2 wait] [§2 wait-timeout]",
  { kinds: SINGLE },
  async (place) => {
    const { lock, rival, pass } = place;
    const theirs = await rival.lock();
    count(place);
    for (const call of [() => lock.tryLock(), () => lock.tryLock(0)]) {
      expect(await call()).toBeNull();
      expect(count(place)).toBe(1);
    }
    for (const call of [() => lock.lock({ wait: 0 }), () => lock.run(() => "never", { wait: 0 })]) {
      expect(await failure(call())).toMatchObject({ code: "WAIT_TIMEOUT" });
      expect(count(place)).toBeLessThanOrEqual(2);
    }
    await theirs.unlock();
    await pass(10);
    await (await lock.lock({ wait: 0 })).unlock();
  },
);

row(
  "a wait ends to the millisecond: null of tryLock(), WAIT_TIMEOUT of lock() and run(), which says how long it waited [§2 wait-timeout]",
  async ({ lock, rival, pass }) => {
    const theirs = await rival.lock();
    const calls = [
      lock.tryLock(2_500),
      lock.lock({ wait: 2_500 }),
      lock.run(() => "never", { wait: 2_500 }),
    ].map((call: Promise<unknown>) => watch(call));
    await pass(2_499);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["pending", "pending", "pending"]);
    await pass(1);
    expect(calls.map(({ outcome }) => outcome)).toEqual([null, "WAIT_TIMEOUT", "WAIT_TIMEOUT"]);
    for (const { error } of calls.slice(1)) {
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).toMatchObject({ name: "LockTimeoutError", lockName: lock.name, waited: 2_500 });
    }
    await theirs.unlock();
  },
);

row.real(
  "a wait that is over leaves nothing: the next one gets the lock at once [§2 nothing-left] [§2 wait-timeout]",
  async ({ lock, rival, view, pass }) => {
    const theirs = await rival.lock();
    const calls = [watch<unknown>(lock.lock({ wait: 300 })), watch<unknown>(lock.tryLock(100))];
    await pass(310);
    await Promise.allSettled(calls.map(({ promise }) => promise));
    expect(calls.map(({ outcome }) => outcome)).toEqual(["WAIT_TIMEOUT", null]);
    await theirs.unlock();
    await (await rival.tryLock())?.unlock();
    expect(await view.keys()).toEqual([]);
  },
);

const warnings = recordWarnings();

for (const wait of [2 ** 31, 2 ** 53, Number.MAX_VALUE, Number.POSITIVE_INFINITY]) {
  row.real(
    `a wait of ${wait} ms is no time-out [§2 wait]`,
    { kinds: [PLAIN] },
    async ({ lock, rival, pass }) => {
      const theirs = await rival.lock();
      const call = watch(lock.tryLock(wait));
      await pass(50);
      expect(call.state).toBe("pending");
      await theirs.unlock();
      await (await call.promise)?.unlock();
      expect(warnings).toEqual([]);
    },
  );
}

row("a wait may be no whole number [§2 wait]", { kinds: [PLAIN] }, async ({ lock, rival, pass }) => {
  const theirs = await rival.lock();
  const calls = [watch(lock.tryLock(2_900.5)), watch(lock.lock({ wait: 2_900.25 }))];
  await pass(2_901);
  expect(calls.map(({ outcome }) => outcome)).toEqual([null, "WAIT_TIMEOUT"]);
  await theirs.unlock();
});

row.real("options that are undefined are absent [§2 wait] [§6 arguments]", async ({ lock, rival, view }) => {
  const nothing = { wait: undefined, lease: undefined, signal: undefined, owner: undefined };
  const hold = await lock.lock(nothing);
  expect(await view.ttl()).toBeGreaterThan(20_000);
  expect(await rival.tryLock(undefined, undefined, { signal: undefined, owner: undefined })).toBeNull();
  expect([await lock.isHeldByCurrentOwner({ owner: undefined }), await lock.getHoldCount(undefined)]).toEqual(
    [false, 0],
  );
  await hold.unlock();
  expect(await lock.run(() => 5, undefined)).toBe(5);
});

row(
  "a signal ends the wait at once, with its reason, and the others wait on [§2 signal]",
  { client: PATIENT },
  async ({ lock, rival, settle }) => {
    const theirs = await rival.lock();
    const controller = new AbortController();
    const { signal } = controller;
    const aborted = [
      lock.lock({ signal }),
      lock.tryLock(60_000, 1_000, { signal }),
      lock.run(() => "never", { signal }),
    ].map((call: Promise<unknown>) => watch(call));
    await settle();
    const patient = watch(lock.lock());
    await settle();
    const reason = new Error("enough");
    controller.abort(reason);
    await settle();
    expect(aborted.map(({ error }) => error)).toEqual([reason, reason, reason]);
    await theirs.unlock();
    await settle();
    expect(patient.value?.isHeld).toBe(true);
    await patient.value?.unlock();
  },
);

row(
  "an aborted waiter asks Redis for nothing, unless Redis knows of it [§2 signal]",
  { kinds: SINGLE, client: PATIENT },
  async (place) => {
    const { lock, rival, settle, kind } = place;
    const controller = new AbortController();
    const theirs = await rival.lock();
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    count(place);
    controller.abort("enough");
    await settle();
    expect([call.outcome, count(place)]).toEqual(["enough", kind.places ? 1 : 0]);
    await theirs.unlock();
  },
);

row(
  "a signal that is aborted already has nothing sent, and one that comes after the grant changes nothing [§2 signal]",
  async ({ lock, servers }) => {
    const sent = () => servers.reduce((sum, server) => sum + server.ran.length, 0);
    const before = sent();
    const signal = AbortSignal.abort("enough");
    for (const call of [
      lock.lock({ signal }),
      lock.tryLock(0, 500, { signal }),
      lock.run(() => 1, { signal }),
    ])
      expect(await failure(call)).toBe("enough");
    expect(sent()).toBe(before);
    const controller = new AbortController();
    const hold = await lock.lock({ signal: controller.signal });
    controller.abort("late");
    expect([hold.isHeld, hold.signal.aborted]).toEqual([true, false]);
    await hold.unlock();
  },
);

row.real(
  "an abort right after the first call of a client rejects it with the reason, and leaves nothing [§2 signal] [§2 nothing-left]",
  async (place) => {
    const { lock } = place.with({});
    const controller = new AbortController();
    const { signal } = controller;
    const starts: Promise<unknown>[] = [
      lock.lock({ signal }),
      lock.tryLock(0, 5_000, { signal }),
      lock.run(() => "never", { signal }),
    ];
    const calls = starts.map((call) => watch(call));
    const reason = new Error("enough");
    controller.abort(reason);
    await place.pass(20);
    expect(calls.map(({ error }) => error)).toEqual([reason, reason, reason]);
    await place.eventually(async () => !(await place.lock.isLocked()));
    await (await lock.lock()).unlock();
  },
);

row.real(
  "the platform's signal of a time-out ends a wait with its error [§2 signal]",
  { kinds: [PLAIN] },
  async (place) => {
    const theirs = await place.rival.lock();
    const aborted = failure(place.lock.lock({ signal: AbortSignal.timeout(30) }));
    expect((await aborted).name).toBe("TimeoutError");
    await theirs.unlock();
  },
);

row(
  "an abort at any moment of a grant's arrival leaves the caller a hold, or nothing at all [§2 signal] [§2 nothing-left] [F42]",
  { kinds: SINGLE },
  async ({ lock, a, settle, rival }) => {
    a.listen("acquired", "released");
    const seen = new Set<string>();
    let granted = 0;
    for (let ticks = 0; ticks < 30; ticks++) {
      const controller = new AbortController();
      a.keep("replies");
      const call = watch(lock.lock({ signal: controller.signal }));
      await settle();
      const arrives = a.letGo();
      for (let i = 0; i < ticks; i++) await undefined;
      controller.abort("enough");
      await arrives;
      seen.add(call.state);
      if (call.state === "resolved") granted++;
      else expect(call.outcome).toBe("enough");
      await call.value?.unlock();
      await settle();
      await (await rival.tryLock())?.unlock();
      expect([a.heard("acquired").length, a.heard("released").length]).toEqual([granted, granted]);
    }
    expect([...seen].sort()).toEqual(["rejected", "resolved"]);
  },
);

row(
  "a try that Redis refuses for a moment, and whose call was given up, takes nothing later [§2 nothing-left] [B109]",
  { kinds: SINGLE, client: { commandTimeout: 30_000 } },
  async ({ lock, pass, server, view }) => {
    let isFull = true;
    server.instead = ({ args }) => {
      if (isFull && args.includes("job")) throw new ReplyError("OOM command not allowed");
      return undefined;
    };
    const controller = new AbortController();
    const call = watch(lock.lock({ signal: controller.signal, lease: 600_000 }));
    await pass(100);
    controller.abort("enough");
    await pass(21_000);
    isFull = false;
    await pass(5_000);
    expect([call.outcome, await view.hash()]).toEqual(["enough", {}]);
  },
);

row(
  "a waiter asks twice, costs nothing after that, and is woken by the message of the release [§2 woken-by-message]",
  { kinds: SINGLE, client: PATIENT },
  async (place) => {
    const { lock, rival, pass, settle } = place;
    const theirs = await rival.lock({ lease: 60_000 });
    count(place);
    const call = watch(lock.lock());
    await settle();
    expect(count(place)).toBe(2);
    await pass(20_000);
    expect(count(place)).toBe(0);
    await theirs.unlock();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row.real(
  "a release wakes a waiter of another process, and of several one after the other [§2 woken-by-message]",
  { client: { pollCap: 60_000 } },
  async ({ lock, rival, pass }) => {
    const theirs = await rival.lock();
    const calls = [watch(lock.lock()), watch(lock.lock())];
    await pass(50);
    await theirs.unlock();
    const first = await Promise.race(calls.map(({ promise }) => promise));
    await first.unlock();
    const rest = await Promise.all(calls.map(({ promise }) => promise));
    for (const hold of rest) if (hold.isHeld) await hold.unlock();
  },
);

row(
  "without a message the first waiter tries when the holder's time ends, and nobody else in its process [§2 poll-cap]",
  { kinds: SINGLE, client: PATIENT },
  async (place) => {
    const { lock, rival, pass, b, settle } = place;
    await rival.lock({ lease: 5_000 });
    const calls = [watch(lock.lock()), watch(lock.lock())];
    await settle();
    b.keep("requests");
    count(place);
    await pass(4_999);
    expect([calls[0]?.outcome, count(place)]).toEqual(["pending", 0]);
    await pass(100);
    expect(calls[0]?.value?.isHeld).toBe(true);
    await b.letGo();
    await calls[0]?.value?.unlock();
    await pass(100);
    await calls[1]?.value?.unlock();
  },
);

row(
  "without a message the first waiter tries again after pollCap, and nobody else in its process [§2 poll-cap]",
  { kinds: [PLAIN, FAIR, WRITE], client: { ...PATIENT, pollCap: 3_000 } },
  async (place) => {
    const { lock, rival, pass } = place;
    const theirs = await rival.lock({ lease: 600_000 });
    const calls = [1, 2, 3].map(() => watch(lock.lock()));
    await pass(100);
    count(place);
    await pass(30_000);
    expect(count(place)).toBeGreaterThanOrEqual(9);
    // The places of fair waiters are refreshed by the tries of the first, twice in a pollCap.
    expect(count(place)).toBeLessThanOrEqual(22);
    await theirs.unlock();
    for (const call of calls) {
      await pass(100);
      await call.value?.unlock();
    }
  },
);

row(
  "a waiter hears of the late release of a hold whose time was over, though that finds nothing any more [§2 woken-by-message] [B203]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, b, pass, settle }) => {
    const short = await rival.lock({ lease: 5_000 });
    const long = await rival.lock({ lease: 60_000, owner: short });
    const call = watch(lock.lock());
    await settle();
    await long.unlock();
    b.keep("requests");
    await pass(61_000);
    await b.letGo();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "a dropped subscriber connection costs no waiter its wake-up [§2 subscriber-dropped] [F11]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, a, settle, pass }) => {
    const theirs = await rival.lock({ lease: NEVER });
    const call = watch(lock.lock());
    await settle();
    for (const connection of a.connections) connection.lose();
    await theirs.unlock();
    for (const connection of a.connections) connection.open();
    await pass(10);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

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
  "a wait whose last try has no answer ends UNAVAILABLE, and one that ends while others hold the lock does not [§2 last-try-unanswered]",
  { kinds: SINGLE, client: { ...PATIENT, pollCap: 500 } },
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

for (const way of ["requests", "replies"] as const) {
  row(
    `a waiter whose try has no answer, since its ${way} are on their way, waits on and gets the lock once it is free [§2 waiting-survives-outage]`,
    { kinds: SINGLE, client: { ...PATIENT, pollCap: 500 } },
    async ({ lock, rival, a, pass }) => {
      const theirs = await rival.lock();
      const call = watch(lock.lock());
      const controller = new AbortController();
      const aborted = watch(lock.lock({ signal: controller.signal }));
      await pass(100);
      a.keep(way);
      await pass(5_000);
      expect(call.outcome).toBe("pending");
      await theirs.unlock();
      await pass(600);
      controller.abort("enough");
      await a.letGo();
      await pass(1_000);
      expect([aborted.outcome, call.value?.isHeld]).toEqual(["enough", true]);
      await call.value?.unlock();
    },
  );
}

row(
  "a lease that ends within the millisecond is waited for, and not asked for all the time [§2 poll-cap]",
  { kinds: [PLAIN], client: PATIENT },
  async ({ lock, rival, server, pass, settle }) => {
    await rival.lock({ lease: 100 });
    server.clock.moveTo(server.clock.mono() + 99.5);
    server.took();
    const call = watch(lock.lock());
    await settle();
    expect(server.took().length).toBeLessThanOrEqual(3);
    await pass(100);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "other data under the name is refused by every operation, and stays as it is [§6 wrong-data] [F26]",
  { kinds: SINGLE },
  async ({ lock, server }) => {
    server.execute(["SET", "job", "foreign"]);
    const calls: ((lock: Lock) => Promise<unknown>)[] = [
      (each) => each.lock(),
      (each) => each.tryLock(),
      (each) => each.run(() => 1),
      (each) => each.forceUnlock(),
      (each) => each.isLocked(),
      (each) => each.remainTimeToLive(),
    ];
    for (const call of calls)
      expect(await failure(call(lock))).toMatchObject({ code: "WRONG_DATA", lockName: lock.name });
    expect(server.execute(["GET", "job"])).toBe("foreign");
    server.delete();
  },
);

row(
  "calls for a lock of several members wait and are granted like others [§2 woken-by-message]",
  { kinds: GROUPS, client: PATIENT },
  async ({ lock, rival, pass }) => {
    const theirs = await rival.lock({ lease: 60_000 });
    const call = watch(lock.lock());
    await pass(5_000);
    expect(call.state).toBe("pending");
    await theirs.unlock();
    await pass(2_000);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

row(
  "readers that wait behind a writer are granted together [§2 woken-by-message] [§4 read-write]",
  { kinds: [READ], client: PATIENT },
  async ({ lock, rival, settle }) => {
    const writing = await rival.lock();
    const calls = [1, 2, 3].map(() => watch(lock.lock()));
    await settle();
    await writing.unlock();
    await settle();
    expect(calls.map(({ value }) => value?.isHeld)).toEqual([true, true, true]);
    for (const { value } of calls) await (value as Hold).unlock();
  },
);

row(
  "first come, first served: a fair lock keeps the order over processes, past those who leave [§4 fair] [F33]",
  { kinds: [FAIR], client: PATIENT },
  async ({ lock, twin, pass, settle }) => {
    const first = await twin.lock();
    const controller = new AbortController();
    const leaving = watch(lock.lock({ signal: controller.signal }));
    await pass(10);
    const calls: ReturnType<typeof watch<Hold>>[] = [];
    for (const each of [lock, twin, lock, lock, twin]) {
      calls.push(watch(each.lock()));
      await pass(10);
    }
    await pass(60_000);
    controller.abort("enough");
    await settle();
    expect(leaving.outcome).toBe("enough");
    await first.unlock();
    for (const [i, call] of calls.entries()) {
      await settle();
      expect(calls.map(({ state }) => state === "resolved")).toEqual(calls.map((_, other) => other <= i));
      await call.value?.unlock();
    }
  },
);

row(
  "a fair lock skips a waiter whose process has gone silent, after three polls [§4 fair] [F31]",
  { kinds: [FAIR], client: { ...PATIENT, pollCap: 1_000 } },
  async ({ lock, twin, b, pass }) => {
    const first = await lock.lock({ lease: 1_000 });
    const silent = watch(twin.lock());
    await pass(10);
    const next = watch(lock.lock());
    await pass(10);
    await b.cut();
    await first.unlock();
    await pass(2_000);
    expect(next.outcome).toBe("pending");
    await pass(3_000);
    expect(next.value?.isHeld).toBe(true);
    await next.value?.unlock();
    await b.mend();
    await pass(3_000);
    await silent.value?.unlock();
  },
);

row(
  "fair waiters of a process that stood still until their places had lapsed all get the lock [§4 fair] [B170] [B222]",
  { kinds: [FAIR], client: { ...PATIENT, pollCap: 1_000 } },
  async ({ lock, twin, a, pass, settle }) => {
    const theirs = await twin.lock();
    const calls = [1, 2, 3].map(() => watch(lock.lock()));
    await pass(10);
    await a.cut();
    await pass(10_000);
    await theirs.unlock();
    await a.mend();
    await pass(100);
    for (const [i, call] of calls.entries()) {
      await pass(100);
      expect([i, call.state]).toEqual([i, "resolved"]);
      await call.value?.unlock();
      await settle();
    }
  },
);

row(
  "the last waiter of its process that gives up leaves nobody else asleep [§2 nothing-left] [§2 woken-by-message]",
  { kinds: EXCLUSIVE.filter((kind) => SINGLE.includes(kind)), client: PATIENT },
  async ({ lock, twin, rival, settle, pass }) => {
    const holder = await rival.lock({ lease: NEVER });
    const controller = new AbortController();
    const leaving = watch(lock.lock({ signal: controller.signal }));
    await pass(10);
    const next = watch(twin.lock());
    await settle();
    await holder.unlock();
    controller.abort("enough");
    await pass(100);
    for (const { value } of [leaving, next]) await value?.unlock().catch(() => {});
    await pass(100);
    expect(next.state).toBe("resolved");
    if (next.value?.isHeld) await next.value.unlock();
  },
);
