/** Calls that wait for a lock: what they cost, what wakes them, and what an outage is to them. In virtual time. */
import { describe, expect, test } from "vitest";
import { type Lock, MultiLock } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { expectNothingLeft, failure, NAME, type Scene, scene, type Watched, watch } from "./scene.js";

/** Nobody is woken by the poll. */
const NEVER = 600_000;

describe.each(byName(KINDS))("%s", (_, kind) => {
  const open = (options = {}): Scene & { lock: Lock; rival: Lock } => {
    const place = scene({ commandTimeout: 1_000, ...options });
    return { ...place, lock: kind.make(place.a.client, NAME), rival: kind.rival.make(place.b.client, NAME) };
  };

  test("a waiter asks twice, is then woken by the message of the release, and costs nothing in between", async () => {
    const place = open({ pollCap: NEVER });
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
    await expectNothingLeft(place);
  });

  test("without a message it tries again when the holder's time ends", async () => {
    const place = open({ pollCap: NEVER });
    const { lock, rival, advance, b, server } = place;
    await rival.lock({ lease: 5_000 });
    const call = watch(lock.lock());
    await place.settle();
    // Nobody is told of it.
    server.instead = ({ name }) => (name === "PUBLISH" ? 0 : undefined);
    b.keep("requests");
    await advance(4_999);
    expect(call.outcome).toBe("pending");
    await advance(100);
    expect(call.value?.isHeld).toBe(true);
    await b.letGo();
    await call.value?.unlock();
    await expectNothingLeft(place);
  });

  test("a wait that ends while Redis owes an answer is UNAVAILABLE, and one that ends while others hold it is not", async () => {
    const place = open({ pollCap: 500 });
    const { lock, rival, a, advance } = place;
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
    await expectNothingLeft(place);
  });

  test("a waiter survives an outage, and finds out afterwards what it did not hear of", async () => {
    const place = open({ pollCap: NEVER });
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
    await expectNothingLeft(place);
  });

  test("a try without an answer is made again as soon as the server answers anything", async () => {
    const place = open({ pollCap: NEVER, watchdogTimeout: 900_000 });
    const { lock, rival, a, advance } = place;
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
    await expectNothingLeft(place);
  });

  test("a single try behind a call of its owner without an answer is UNAVAILABLE in its own time", async () => {
    const place = open();
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
    await expectNothingLeft(place);
  });

  test("a waiter that is aborted asks the server for nothing, unless that knows of it", async () => {
    const place = open({ pollCap: NEVER });
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
    await expectNothingLeft(place);
  });

  test("a call made during an outage is UNAVAILABLE in time", async () => {
    const place = open();
    const { lock, a, advance } = place;
    await a.cut();
    const call = watch(lock.lock());
    await advance(999);
    expect(call.outcome).toBe("pending");
    await advance(1);
    expect(call.outcome).toBe("UNAVAILABLE");
    expect((call.error as Error).cause).toBeInstanceOf(Error);
    await a.mend();
    await advance(1_000);
    await expectNothingLeft(place);
  });

  test("a lock whose data is of another kind is refused by every operation, and stays as it is", async () => {
    const { lock, server } = open();
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
  });

  test("a lock of a MultiLock is kept by the watchdog until the last is granted, and limited to the lease then", async () => {
    const place = open({ watchdogTimeout: 9_000, pollCap: NEVER });
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
    await expectNothingLeft(place);
  });
});

test("a lease that ends within the millisecond is waited for, and not asked for all the time", async () => {
  const { a, server, settle, advance } = scene({ pollCap: NEVER });
  let refusals = 0;
  server.instead = ({ name }) => (name === "lock/acquire" && ++refusals <= 10 ? [0, 0] : undefined);
  const call = watch(a.client.getLock(NAME).lock());
  await settle();
  expect(refusals).toBe(2);
  await advance(100);
  expect(call.value?.isHeld).toBe(true);
});

describe("a fair lock", () => {
  test("is granted in the order of the calls, over clients, however long they wait", async () => {
    const place = scene();
    const { a, b, advance, settle } = place;
    const [mine, theirs] = [a, b].map(({ client }) => client.getFairLock(NAME)) as [Lock, Lock];
    const first = await mine.lock();
    const calls: Watched<Awaited<ReturnType<Lock["lock"]>>>[] = [];
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
    await expectNothingLeft(place);
  });

  test("holds nobody up for a waiter that is aborted, whichever place it has", async () => {
    const place = scene({ pollCap: NEVER });
    const { a, b, advance, settle } = place;
    const [mine, theirs] = [a, b].map(({ client }) => client.getFairLock(NAME)) as [Lock, Lock];
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
    await expectNothingLeft(place);
  });

  test("skips a waiter whose process has gone silent, after three polls", async () => {
    const place = scene({ pollCap: 1_000 });
    const { a, b, advance } = place;
    const [mine, theirs] = [a, b].map(({ client }) => client.getFairLock(NAME)) as [Lock, Lock];
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
    await expectNothingLeft(place);
  });
});
