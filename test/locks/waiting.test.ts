/** Calls that wait for a lock: their cost, what wakes them, and what an outage does to them. In virtual time. */
import { describe, expect } from "vitest";
import { type Hold, type Lock, MultiLock } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, NAME, scene, sceneOf, testIn, type Watched, watch } from "./scene.js";

/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;

describe.each(byName(KINDS))("%s", (_, kind) => {
  const test = testIn((options) => sceneOf(kind, { commandTimeout: 1_000, pollCap: NEVER, ...options }));

  test("a waiter asks twice, is then woken by the message of the release, and costs nothing in between", async (place) => {
    const { lock, rival, server, advance, settle } = place;
    const theirs = await rival.lock({ lease: 60_000 });
    server.took();
    const call = watch(lock.lock());
    await settle();
    expect(server.took()).toHaveLength(2);
    await advance(20_000);
    expect(server.took()).toEqual([]);
    await theirs.unlock();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  });

  test("without a message it tries again when the holder's time ends", async (place) => {
    const { lock, rival, advance, b, server } = place;
    await rival.lock({ lease: 5_000 });
    const call = watch(lock.lock());
    await place.settle();
    // No message of a release reaches the waiter.
    server.instead = ({ name }) => (name === "PUBLISH" ? 0 : undefined);
    b.keep("requests");
    await advance(4_999);
    expect(call.outcome).toBe("pending");
    await advance(100);
    expect(call.value?.isHeld).toBe(true);
    await b.letGo();
    await call.value?.unlock();
  });

  test("after the longer of two holds has gone it hears from the late release of the other, which finds none [B203]", async (place) => {
    const { lock, rival, advance, b } = place;
    const short = await rival.lock({ lease: 5_000 });
    const long = await rival.lock({ lease: 60_000, owner: short });
    const call = watch(lock.lock());
    await place.settle();
    await long.unlock();
    // The holder's process sends its release at the deadline, and it arrives when the TTL has ended.
    b.keep("requests");
    await advance(6_000);
    await b.letGo();
    await place.settle();
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  });

  test.with({ pollCap: 500 })(
    "a wait that ends while Redis owes an answer is UNAVAILABLE, and one that ends while others hold it is not",
    async ({ lock, rival, a, advance }) => {
      const theirs = await rival.lock();
      const calls = [
        watch(lock.lock({ wait: 4_000 })),
        watch(lock.tryLock(4_000)),
        watch(lock.lock({ wait: 300 })),
      ];
      await advance(300);
      expect(calls[2]?.outcome).toBe("WAIT_TIMEOUT");
      a.keep("replies");
      await advance(4_000);
      expect(calls.slice(0, 2).map(({ outcome }) => outcome)).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
      await a.letGo();
      await theirs.unlock();
    },
  );

  test("a waiter survives an outage, and finds out afterwards what it did not hear of", async (place) => {
    const { lock, rival, a, advance } = place;
    const theirs = await rival.lock();
    const calls = [watch(lock.lock()), watch(lock.lock())];
    await advance(100);
    await a.cut();
    await advance(20_000);
    await theirs.unlock();
    await advance(20_000);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["pending", "pending"]);
    await a.mend();
    await advance(10);
    for (const call of calls) {
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
      await place.settle();
    }
  });

  test.with({ watchdogTimeout: 900_000 })(
    "a try without an answer is made again as soon as the server answers anything",
    async ({ lock, rival, a, advance }) => {
      const theirs = await rival.lock();
      const call = watch(lock.lock());
      await advance(100);
      a.keep("requests");
      await theirs.unlock();
      await advance(2_000);
      expect(call.outcome).toBe("pending");
      await a.letGo();
      await advance(10);
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
    },
  );

  test("a single try behind a call of its owner without an answer is UNAVAILABLE in its own time", async (place) => {
    const { lock, a, advance } = place;
    await (await lock.lock()).unlock();
    a.keep("requests");
    await a.client.scope(async () => {
      const first = watch(lock.lock());
      await advance(500);
      const second = watch(lock.tryLock());
      await advance(500);
      expect([first.outcome, second.outcome]).toEqual(["UNAVAILABLE", "pending"]);
      await advance(501);
      expect(second.outcome).toBe("UNAVAILABLE");
    });
    await a.letGo();
  });

  test("a waiter that is aborted asks the server for nothing, unless that knows of it", async (place) => {
    const { lock, rival, server, settle } = place;
    const controller = new AbortController();
    const theirs = await rival.lock();
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    server.took();
    controller.abort("enough");
    await settle();
    expect(call.outcome).toBe("enough");
    expect(server.took()).toHaveLength(kind.places ? 1 : 0);
    await theirs.unlock();
  });

  test("a call made during an outage is UNAVAILABLE in time", async ({ lock, a, advance }) => {
    await a.cut();
    const call = watch(lock.lock());
    await advance(999);
    expect(call.outcome).toBe("pending");
    await advance(1);
    expect(call.outcome).toBe("UNAVAILABLE");
    expect((call.error as Error).cause).toBeInstanceOf(Error);
    await a.mend();
    await advance(1_000);
  });

  test("a lock whose data is of another kind is refused by every operation, and stays as it is", async (place) => {
    const { lock, server } = place;
    server.execute(["SET", NAME, "foreign"]);
    const calls: (() => Promise<unknown>)[] = [
      () => lock.lock(),
      () => lock.tryLock(),
      () => lock.run(() => 1),
      () => lock.forceUnlock(),
      () => lock.isLocked(),
      () => lock.remainTimeToLive(),
    ];
    for (const call of calls)
      expect(await failure(call())).toMatchObject({ code: "WRONG_DATA", lockName: NAME });
    expect(server.execute(["GET", NAME])).toBe("foreign");
    server.delete();
  });

  test.with({ watchdogTimeout: 9_000 })(
    "a lock of a MultiLock is kept by the watchdog until the last is granted, and limited to the lease then",
    async (place) => {
      const { lock, a, b, advance } = place;
      const last = a.client.getLock("last");
      const group = new MultiLock(lock, last);
      const theirs = await b.client.getLock("last").lock({ lease: 90_000 });
      const call = watch(group.lock({ lease: 20_000 }));
      await advance(30_000);
      expect(call.outcome).toBe("pending");
      await theirs.unlock();
      await place.settle();
      const hold = call.value ?? expect.fail("it was not granted");
      expect(hold.members.map(({ remaining }) => remaining)).toEqual([19_798, 19_798]);
      a.listen("renewed");
      await advance(19_797);
      expect(hold.isHeld).toBe(true);
      await advance(1);
      expect(hold.isHeld).toBe(false);
      expect(a.heard("renewed")).toEqual([]);
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST" });
    },
  );
});

testIn(() => scene({ pollCap: NEVER }))(
  "a lease that ends within the millisecond is waited for, and not asked for all the time",
  async ({ a, server, settle, advance }) => {
    let refusals = 0;
    server.instead = ({ name }) => (name === "lock/acquire" && ++refusals <= 10 ? [0, 0] : undefined);
    const call = watch(a.client.getLock(NAME).lock());
    await settle();
    expect(refusals).toBe(2);
    await advance(100);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  },
);

describe("a fair lock", () => {
  const test = testIn((options) => {
    const place = scene({ pollCap: NEVER, ...options });
    const [mine, theirs] = [place.a, place.b].map(({ client }) => client.getFairLock(NAME)) as [Lock, Lock];
    return { ...place, mine, theirs };
  });

  test("is granted in the order of the calls, over clients, however long they wait", async (place) => {
    const { mine, theirs, advance, settle } = place;
    const first = await mine.lock();
    const calls: Watched<Hold>[] = [];
    for (const lock of [mine, theirs, mine, mine, theirs]) {
      calls.push(watch(lock.lock()));
      await advance(10);
    }
    await advance(60_000);
    await first.unlock();
    for (const [i, call] of calls.entries()) {
      await settle();
      expect(calls.map(({ state }) => state === "resolved")).toEqual(calls.map((_, other) => other <= i));
      await call.value?.unlock();
    }
  });

  test("holds nobody up for a waiter that is aborted, whichever place it has", async (place) => {
    const { mine, theirs, advance, settle } = place;
    const first = await mine.lock();
    const controllers = [0, 1].map(() => new AbortController());
    const aborted = controllers.map(({ signal }) => watch(mine.lock({ signal })));
    await advance(10);
    const next = watch(theirs.lock());
    await advance(10);
    controllers[1]?.abort("second");
    await settle();
    controllers[0]?.abort("first");
    await settle();
    expect(aborted.map(({ outcome }) => outcome)).toEqual(["first", "second"]);
    await first.unlock();
    await settle();
    expect(next.value?.isHeld).toBe(true);
    await next.value?.unlock();
  });

  test.with({ pollCap: 1_000 })(
    "skips a waiter whose process has gone silent, after three polls",
    async ({ mine, theirs, a, advance }) => {
      const first = await theirs.lock({ lease: 1_000 });
      const silent = watch(mine.lock());
      await advance(10);
      const next = watch(theirs.lock());
      await advance(10);
      await a.cut();
      await first.unlock();
      await advance(2_000);
      expect(next.outcome).toBe("pending");
      await advance(3_000);
      expect(next.value?.isHeld).toBe(true);
      await next.value?.unlock();
      await a.mend();
      await advance(3_000);
      await silent.value?.unlock();
    },
  );
});
