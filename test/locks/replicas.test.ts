/** Grants that replicas must acknowledge: sent with a WAIT, and undone if too few acknowledge. In virtual time. */
import { describe, expect } from "vitest";
import type { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold, Lock } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, type KindScene, NAME, type Scene, scene, sceneOf, testIn, watch } from "./scene.js";

interface Place extends KindScene {
  /** The connection that the client uses for grants only. */
  readonly grants: MemoryConnection;
  /** Sets how many replicas acknowledge. */
  acknowledge(count: number): void;
  /** The arguments of each WAIT so far. */
  readonly waits: () => (readonly string[])[];
}

describe.each(byName(KINDS))("%s", (_, kind) => {
  const test = testIn((): Place => {
    const place = sceneOf(kind, { replicas: 2, replicasTimeout: 500, commandTimeout: 1_000 });
    let acknowledged = 2;
    place.server.instead = ({ name }) => (name === "WAIT" ? acknowledged : undefined);
    const acknowledge = (count: number) => {
      acknowledged = count;
    };
    const waits = () => place.server.ran.filter(({ name }) => name === "WAIT").map(({ args }) => args);
    place.a.listen("acquired", "released", "lost", "error");
    const [, grants] = place.a.connections as [MemoryConnection, MemoryConnection];
    return { ...place, grants, acknowledge, waits };
  });
  const REPLICAS = { code: "REPLICAS", acknowledged: 1, required: 2, lockName: NAME };

  test("a grant counts when enough have acknowledged it, outermost or nested", async (place) => {
    const { lock, waits, server } = place;
    const outer = await lock.lock();
    expect(waits()).toEqual([["2", "500"]]);
    const inner = await lock.lock({ owner: outer });
    expect(waits()).toHaveLength(2);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
    await inner.unlock();
    await outer.unlock();
    // A release waits for no replica.
    expect(waits()).toHaveLength(2);
  });

  test("a call that is refused does not care how many have", async ({ lock, rival, acknowledge, a }) => {
    const theirs = await rival.lock();
    acknowledge(0);
    expect(await lock.tryLock()).toBeNull();
    await theirs.unlock();
    expect(a.heard("error")).toEqual([]);
  });

  test("a grant short of that is undone before the call rejects", async (place) => {
    const { lock, acknowledge, server, a } = place;
    acknowledge(1);
    expect(await failure(lock.lock())).toMatchObject(REPLICAS);
    expect(server.hash()).toEqual({});
    expect(await failure(lock.tryLock())).toMatchObject(REPLICAS);
    acknowledge(2);
    const hold = await lock.lock();
    expect(a.heard("acquired")).toHaveLength(1);
    await hold.unlock();
  });

  test("a nested grant short of that is undone alone", async ({ lock, acknowledge, server }) => {
    const outer = await lock.lock();
    acknowledge(1);
    expect(await failure(lock.lock({ owner: outer }))).toMatchObject(REPLICAS);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
    expect(outer.isHeld).toBe(true);
    await outer.unlock();
  });

  test.for([
    ["outermost", false],
    ["nested", true],
  ])("an %s grant short of that rejects once it is undone, and not before", async ([, isNested], place) => {
    const { lock, acknowledge, a, settle } = place;
    const outer = await lock.lock();
    if (!isNested) await outer.unlock();
    acknowledge(1);
    // The undo of the grant goes over the client's other connection.
    a.keep("replies");
    const call = watch(isNested ? lock.lock({ owner: outer }) : lock.lock());
    await settle();
    expect(call.outcome).toBe("pending");
    await a.letGo();
    expect(call.error).toMatchObject(REPLICAS);
    if (isNested) await outer.unlock();
  });

  test("a nested call whose lock is gone asks for no acknowledgement of that", async (place) => {
    const { lock, server, acknowledge, a } = place;
    await a.client.scope(async () => {
      await lock.lock();
      server.delete();
      const next = await lock.lock();
      expect(next.isHeld).toBe(true);
      acknowledge(0);
      server.delete();
      expect(await failure(lock.lock())).toMatchObject({ code: "REPLICAS" });
    });
  });

  test("calls of one moment share a WAIT; those that come while it is under way share the next", async (place) => {
    const { a, settle, server, waits } = place;
    const locks = Array.from({ length: 6 }, (_, i) => kind.make(a.client, `lock-${i}`));
    const calls = locks.slice(0, 3).map((lock) => watch(lock.lock()));
    await settle();
    expect(calls.every(({ state }) => state === "resolved")).toBe(true);
    expect(waits()).toHaveLength(1);
    // The answers come in later microtasks, so the first call and the others are two batches.
    const first = watch((locks[3] as Lock).lock());
    await new Promise<void>((done) => process.nextTick(done));
    const more = locks.slice(4).map((lock) => watch(lock.lock()));
    await settle();
    expect([first, ...more].every(({ state }) => state === "resolved")).toBe(true);
    expect(waits()).toHaveLength(3);
    expect(server.names().filter((name) => /^lock-\d$/.test(name))).toHaveLength(6);
    await a.client.close({ timeout: 0 });
  });

  test("one script that fails does not fail those beside it", async ({ a, settle, server }) => {
    server.execute(["SET", "lock-1", "foreign"]);
    const calls = Array.from({ length: 3 }, (_, i) => watch(kind.make(a.client, `lock-${i}`).lock()));
    await settle();
    expect(calls.map(({ state }) => state)).toEqual(["resolved", "rejected", "resolved"]);
    expect(calls[1]?.outcome).toBe("WRONG_DATA");
    await a.client.close({ timeout: 0 });
    server.delete("lock-1");
  });

  test("a WAIT that fails for good fails its calls, and what they got is given back", async (place) => {
    const { lock, server, settle } = place;
    server.instead = ({ name }) => {
      if (name === "WAIT") throw new ReplyError("ERR unknown command 'WAIT'");
      return undefined;
    };
    expect(await failure(lock.lock())).toMatchObject({ code: "UNSUPPORTED" });
    await settle();
    server.instead = () => undefined;
  });

  test("figures count what travels on its connection", async ({ lock, a }) => {
    const before = a.client.stats().commands;
    await (await lock.lock()).unlock();
    expect(a.client.stats().commands - before).toBe(2);
  });

  test("the connection goes and comes back with the client's", async ({ lock, a, advance }) => {
    await (await lock.lock()).unlock();
    await a.cut();
    const call = watch(lock.lock());
    await advance(500);
    expect(call.outcome).toBe("pending");
    await a.mend();
    await advance(500);
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
  });

  test("a call without an answer is UNAVAILABLE in time, and what it got is given back", async (place) => {
    const { lock, a, advance } = place;
    await (await lock.lock()).unlock();
    await a.cut();
    const call = watch(lock.lock());
    // The call has the time of its command, of its own WAIT, and of one WAIT before it.
    await advance(1_999);
    expect(call.outcome).toBe("pending");
    await advance(1);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.mend();
    await advance(2_000);
    const next = await lock.lock();
    await next.unlock();
  });

  test("the connection ends with the client's, and is made again with it, unless the client is closed", async (place) => {
    const { lock, a, grants, server, advance } = place;
    for (const again of ["ready", "end"]) {
      a.connection.disconnect();
      expect(grants.status).toBe("end");
      await a.connection.connect();
      await advance(60_000);
      expect(grants.status).toBe(again);
      if (again === "end") break;
      await (await lock.lock()).unlock();
      await a.client.close();
      expect(grants.status).toBe("end");
    }
    expect(server.clock.timers).toBe(0);
  });

  const LOSSES: [string, (place: Place) => unknown][] = [
    ["the connection breaks", ({ grants }) => grants.emit("close")],
    ["both break", ({ grants, a }) => [a.connection, grants].map((each) => each.emit("close"))],
    ["a node of it fails", ({ grants }) => grants.emit("node error")],
    ["a node of it goes", ({ grants }) => grants.emit("-node")],
  ];

  test.for(LOSSES)("a grant that may arrive once more takes nothing then: %s", async ([, lose], place) => {
    const { lock, a, grants, settle, server } = place;
    a.keep("requests", grants);
    const call = watch(lock.lock());
    await settle();
    lose(place);
    await a.sendTwice();
    server.delete();
    expect(await failure((call.value as Hold).unlock())).toMatchObject({ code: "LOCK_LOST" });
    await settle();
    await a.letGo();
    expect(server.hash()).toEqual({});
  });

  test("on a cluster grants behind a WAIT that is not answered go in its time, once, and its late answer changes nothing [B245]", async (place) => {
    const { a, advance, grants, settle, server, waits } = place;
    // On this cluster the other masters are well: only the connection to the silent one is made anew.
    const replaced: string[] = [];
    const node = (host: string) => ({
      options: { host, port: 0 },
      disconnect: () => void replaced.push(host),
    });
    const nodes = () => [node("well"), node("memory")];
    Object.assign(grants, { isCluster: true, slots: Array(16_384).fill(["memory:0"]), nodes });
    const lock = (i: number) => watch(kind.make(a.client, `lock-${i}`).lock());
    const granted = () => server.names().filter((name) => /^lock-\d$/.test(name));
    a.keep("replies", grants);
    const calls = [lock(0)];
    await settle();
    for (const i of [1, 2]) calls.push(lock(i));
    // The call has the time of its command and of its WAIT.
    await advance(1_499);
    expect(granted()).toEqual(["lock-0"]);
    await advance(1);
    expect(granted()).toHaveLength(3);
    expect(replaced).toEqual(["memory"]);
    expect(waits()).toHaveLength(2);
    for (const i of [3, 4]) {
      calls.push(lock(i));
      await settle();
    }
    await a.letGo();
    expect(calls.every(({ state }) => state === "resolved")).toBe(true);
    expect(waits()).toHaveLength(3);
    await a.client.close({ timeout: 0 });
  });

  test("a connection that is silent for longer than a WAIT may take is replaced, and grants go by the new one [B128]", async (place) => {
    const { a, advance, grants, settle, server } = place;
    const lock = (i: number) => watch(kind.make(a.client, `lock-${i}`).lock());
    a.keep("replies", grants);
    const calls = [lock(0)];
    await settle();
    calls.push(lock(1));
    await advance(1_499);
    expect(calls.map(({ state }) => state)).toEqual(["pending", "pending"]);
    a.keep("replies");
    await advance(1);
    expect(calls.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
    const granted = server.hash("lock-0");
    await a.letGo();
    expect(server.hash("lock-0")).toEqual(granted);
    await a.client.close({ timeout: 0 });
  });

  test("one that is not there yet is left to ioredis", async ({ a, lock, advance, grants }) => {
    await a.cut();
    let lost = 0;
    grants.on("close", () => void lost++);
    const call = watch(lock.lock());
    await advance(2_000);
    expect([call.outcome, lost]).toEqual(["UNAVAILABLE", 0]);
    await a.mend();
    await advance(2_000);
  });

  test("a grant that waits behind a WAIT is not sent once its call is over [B127]", async (place) => {
    const { a, lock, advance, grants, settle, server } = place;
    a.keep("replies", grants);
    const first = watch(kind.make(a.client, "other").lock());
    await settle();
    const controller = new AbortController();
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    server.took();
    controller.abort("enough");
    await a.letGo();
    await advance(1_000);
    expect(call.outcome).toBe("enough");
    expect(server.took()).toEqual([expect.stringMatching(/undo$/)]);
    await first.value?.unlock();
  });

  test.for([
    ["not for a failure that passes", "LOADING Redis is loading the dataset in memory", 0],
    ["for a slot that has moved", "MOVED 1 memory:1", 1],
  ])("a cluster is asked anew where its masters are, %s", async ([, text, times], place) => {
    const { lock, grants, advance, server } = place;
    let asked = 0;
    Object.assign(grants, { isCluster: true, slots: [], refreshSlotsCache: () => asked++ });
    const acknowledged = server.instead;
    server.instead = (ran) => {
      if (!ran.name.endsWith("/acquire")) return acknowledged(ran);
      server.instead = acknowledged;
      throw new ReplyError(text);
    };
    const call = watch(lock.lock());
    await advance(100);
    expect(asked).toBe(times);
    await call.value?.unlock();
  });

  test("what was given up is undone before the next command of its owner, whichever connection is slow [B109]", async (place) => {
    const { a, lock, settle, grants } = place;
    const owner = a.client.newOwner();
    const controller = new AbortController();
    a.keep("replies", grants);
    const call = watch(lock.lock({ owner, signal: controller.signal }));
    await settle();
    a.keep("requests");
    controller.abort("enough");
    const next = watch(lock.tryLock(0, undefined, { owner }));
    await settle();
    for (let i = 0; i < 2; i++) await a.letOneGo();
    await a.letGo();
    expect([call.outcome, next.value?.isHeld]).toEqual(["enough", true]);
    await next.value?.unlock();
  });

  test("a hold that runs out between two looks at the clock is given back before a nested call is sent [B110]", async (place) => {
    const { a, lock, advance, settle, server } = place;
    const { clock } = server;
    const [mono, wall] = [clock.mono.bind(clock), clock.wall.bind(clock)];
    for (let reads = 1; reads < 20; reads++) {
      const outer = await lock.lock({ lease: 5_000 });
      const short = await lock.lock({ lease: 500, owner: outer });
      await advance(492);
      a.keep("requests");
      let left = reads;
      clock.mono = () => mono() + (--left < 0 ? 1 : 0);
      clock.wall = () => wall() + (left < 0 ? 1 : 0);
      const nested = watch(lock.lock({ owner: outer, lease: 60_000 }));
      Object.assign(clock, { mono, wall });
      await settle();
      await a.letGo();
      const held = [outer, short, nested.value].filter((hold) => hold?.isHeld).length;
      expect(await lock.getHoldCount({ owner: outer })).toBe(held);
      expect(server.ttl()).toBeGreaterThan(nested.value?.remaining ?? 0);
      for (const hold of [nested.value, short, outer]) if (hold?.isHeld) await hold.unlock();
    }
  });

  test("a lock that stays in use is no outage, while the WAIT of another call blocks [B126]", async (place) => {
    const { lock, rival, a, advance, grants } = place;
    const theirs = await rival.lock({ lease: 60_000 });
    const call = watch(lock.tryLock(1_000));
    await advance(100);
    a.keep("replies", grants);
    const other = watch(kind.make(a.client, "other").lock());
    await advance(900);
    expect(call.outcome).toBeNull();
    await a.letGo();
    await other.value?.unlock();
    await theirs.unlock();
  });

  test("a grant that its connection kept for longer than tombstones live takes nothing [B127]", async (place) => {
    const { a, lock, advance, grants, server } = place;
    a.keep("requests", grants);
    const call = watch(lock.tryLock(0, 600_000));
    await advance(30_000);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    await advance(10_000);
    expect(server.hash()).toEqual({});
  });

  test("a nested grant that its connection kept for longer than tombstones live is undone alone [B172]", async (place) => {
    const { a, lock, advance, settle, grants, server } = place;
    const outer = await lock.lock();
    a.keep("requests", grants);
    const call = watch(lock.lock({ owner: outer, lease: 600_000 }));
    await advance(30_000);
    expect(call.outcome).toBe("UNAVAILABLE");
    await a.letGo();
    await settle();
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
    expect(server.ttl()).toBeLessThanOrEqual(30_000);
    const nested = await lock.lock({ owner: outer });
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
    await nested.unlock();
    await outer.unlock();
  });

  test("a call that waits on after a try without an answer has what that try gets late", async (place) => {
    const { a, lock, rival, advance, grants, server } = place;
    const theirs = await rival.lock({ lease: 600_000 });
    const call = watch(lock.lock({ lease: 600_000 }));
    await advance(100);
    a.keep("requests", grants);
    await theirs.unlock();
    await advance(30_000);
    expect(call.outcome).toBe("pending");
    await a.letGo();
    await advance(10_000);
    expect(server.hash()).toEqual(kind.fields(call.value?.ownerId as string, 1));
    await call.value?.unlock();
  });

  test("a call that has ended unanswered is undone at once, whatever comes late", async (place) => {
    const { a, lock, advance, grants, server } = place;
    a.keep("requests", grants);
    const call = watch(lock.lock({ wait: 300 }));
    await advance(300);
    expect(call.state).toBe("rejected");
    expect(server.took()).toEqual([expect.stringMatching(/undo$/)]);
    await a.letGo();
    expect(server.hash()).toEqual({});
  });
});

describe("permits", () => {
  const test = testIn((): Scene & { readonly grants: MemoryConnection } => {
    const place = scene({ replicas: 2, replicasTimeout: 500, commandTimeout: 1_000 });
    place.server.instead = ({ name }) => (name === "WAIT" ? 2 : undefined);
    const [, grants] = place.a.connections as [MemoryConnection, MemoryConnection];
    return { ...place, grants };
  });

  test("what the connection for grants kept for longer than markers live takes none for good [B171]", async (place) => {
    const { a, advance, grants, server } = place;
    const plain = a.client.getSemaphore("plain");
    const leased = a.client.getPermitExpirableSemaphore("leased");
    await plain.trySetPermits(3);
    await leased.trySetPermits(3);
    a.keep("requests", grants);
    const started: Promise<unknown>[] = [
      plain.tryAcquire(2),
      plain.drainPermits(),
      leased.tryAcquire(0, 3_600_000),
    ];
    const calls = started.map((call) => watch(call));
    await advance(90_000);
    expect(calls.map(({ outcome }) => outcome)).toEqual(Array(3).fill("UNAVAILABLE"));
    await a.letGo();
    await advance(1_000);
    expect([await plain.availablePermits(), await leased.availablePermits()]).toEqual([3, 3]);
    for (const name of ["plain", "leased"]) server.delete(name);
  });
});
