/** Contract section 2: for how long a call waits, and what ends its wait. */
import { expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import { LockTimeoutError } from "../../src/index.js";
import { recordWarnings } from "../support/index.js";
import { failure, PLAIN, row, SINGLE, type VirtualPlace, watch } from "../support/place/index.js";

/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;
const COMMAND_TIMEOUT = 1_000;
const PATIENT = { pollCap: NEVER, commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: 900_000 };

const count = ({ servers }: VirtualPlace) => servers.flatMap((server) => server.took()).length;

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

row(
  "WAIT_TIMEOUT does not wait for the name of the holder [§8 wait-timeout-holder] [§2 wait-timeout]",
  { kinds: SINGLE, client: PATIENT },
  async ({ lock, rival, a, pass }) => {
    const theirs = await rival.lock();
    for (const wait of [2_500, 100]) {
      const call = watch(lock.lock({ wait }));
      await pass(wait / 3);
      a.keep("replies");
      await pass(wait - wait / 3);
      expect(call.outcome).toBe("WAIT_TIMEOUT");
      await a.letGo();
    }
    await theirs.unlock();
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

row(
  "a signal that a listener of the grant aborts comes too late: the call has its hold [§2 signal]",
  async ({ lock, a, pass }) => {
    const controller = new AbortController();
    a.client.on("acquired", () => controller.abort("late"));
    const hold = await lock.lock({ signal: controller.signal });
    expect([controller.signal.aborted, hold.isHeld]).toEqual([true, true]);
    await hold.unlock();
    await pass(10);
    expect(a.client.stats().held).toBe(0);
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
  "a call that is aborted with its try on its way is in nobody's way, not even for a round trip [§2 signal] [B98]",
  { kinds: SINGLE },
  async ({ lock, a, settle }) => {
    const controller = new AbortController();
    a.keep("requests");
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    controller.abort("enough");
    await settle();
    const next = watch(lock.tryLock());
    await a.letGo();
    expect([call.outcome, next.value?.isHeld]).toEqual(["enough", true]);
    await next.value?.unlock();
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
