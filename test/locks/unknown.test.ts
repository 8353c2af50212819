/**
 * Calls with an unknown outcome: when the call ends, its command or the answer is still on its way, or arrives twice.
 * The client undoes what such a call may have left, and nothing else. In virtual time.
 */
import { describe, expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold, Lock } from "../../src/index.js";
import { OwnerLock } from "../../src/locks/owner-lock.js";
import { checkOwner } from "../../src/owners/owner.js";
import { byName, KINDS } from "../contract/kinds.js";
import {
  deferred,
  expectNothingLeft,
  failure,
  type KindScene,
  NAME,
  type Scene,
  scene,
  sceneOf,
  testIn,
  watch,
} from "./scene.js";

const COMMAND_TIMEOUT = 1_000;

/** The call gets no answer in its time. */
async function expectInVain({ advance }: Scene, call: Promise<unknown>): Promise<void> {
  const watched = watch(call);
  await advance(COMMAND_TIMEOUT);
  expect(watched.outcome).toBe("UNAVAILABLE");
}

describe.each(byName(KINDS))("%s", (_, kind) => {
  const open = async (options = {}): Promise<KindScene> => {
    const place = sceneOf(kind, { commandTimeout: COMMAND_TIMEOUT, pollCap: 500, ...options });
    // One lock and unlock each, so that the server knows the scripts.
    for (const each of [place.lock, place.rival]) await (await each.lock()).unlock();
    await place.advance(61_000);
    place.server.took();
    place.a.listen("lost", "released", "error", "gaveUp");
    return place;
  };
  const test = testIn(open);

  describe.each(["requests", "replies"] as const)("whose %s are on their way", (way) => {
    test("a call for a free lock is UNAVAILABLE in time, and what it got is given back", async (place) => {
      const { lock, a, advance } = place;
      a.keep(way);
      const call = watch(lock.lock());
      await advance(COMMAND_TIMEOUT - 1);
      expect(call.outcome).toBe("pending");
      await advance(1);
      expect(call.error).toMatchObject({ code: "UNAVAILABLE", lockName: NAME });
      await a.letGo();
    });

    test("a call that is aborted is over at once, and what it got is given back", async (place) => {
      const { lock, a, settle, rival } = place;
      const controller = new AbortController();
      a.keep(way);
      const call = watch(lock.lock({ signal: controller.signal }));
      await settle();
      controller.abort("enough");
      await settle();
      expect(call.outcome).toBe("enough");
      await a.letGo();
      const next = await rival.tryLock();
      expect(next?.isHeld).toBe(true);
      await next?.unlock();
    });

    test("a call whose wait ends is UNAVAILABLE, and what it got is given back", async (place) => {
      const { lock, a, advance } = place;
      a.keep(way);
      const call = watch(lock.lock({ wait: 300 }));
      await advance(300);
      expect(call.outcome).toBe("UNAVAILABLE");
      await a.letGo();
    });

    test("a nested call is undone alone: the outer hold and its count are as they were", async (place) => {
      const { lock, a, advance, server } = place;
      const outer = await lock.lock({ lease: 60_000 });
      a.keep(way);
      const call = watch(lock.lock({ owner: outer, lease: 100_000 }));
      await advance(COMMAND_TIMEOUT);
      expect(call.outcome).toBe("UNAVAILABLE");
      await a.letGo();
      expect(outer.isHeld).toBe(true);
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      expect(server.ttl()).toBe(59_000);
      const later = await lock.lock({ owner: outer });
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
      await later.unlock();
      await outer.unlock();
    });

    test("a nested call that is aborted is undone alone", async ({ lock, a, server, settle }) => {
      const outer = await lock.lock({ lease: 60_000 });
      const controller = new AbortController();
      a.keep(way);
      const call = watch(lock.lock({ owner: outer, signal: controller.signal }));
      await settle();
      controller.abort("enough");
      await settle();
      expect(call.outcome).toBe("enough");
      await a.letGo();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      expect(await lock.getHoldCount({ owner: outer })).toBe(1);
      await outer.unlock();
    });

    test("an unlock is UNAVAILABLE in time, goes on, and is shared by a further call", async (place) => {
      const { lock, a, advance } = place;
      const hold = await lock.lock({ lease: 60_000 });
      a.keep(way);
      const first = watch(hold.unlock());
      expect(hold.isHeld).toBe(false);
      await advance(COMMAND_TIMEOUT - 1);
      expect(first.outcome).toBe("pending");
      await advance(1);
      expect(first.error).toMatchObject({ code: "UNAVAILABLE", lockName: NAME });
      const second = watch(hold.unlock());
      await advance(COMMAND_TIMEOUT);
      expect(second.outcome).toBe("UNAVAILABLE");
      const third = watch(hold.unlock());
      await a.letGo();
      expect(third.outcome).toBeUndefined();
      expect(a.heard("released")).toHaveLength(1);
      expect(a.heard("lost")).toEqual([]);
    });

    test("an unlock of a nested hold leaves the outer one as it was", async (place) => {
      const { lock, a, advance, server } = place;
      const outer = await lock.lock({ lease: 60_000 });
      const inner = await lock.lock({ lease: 90_000, owner: outer });
      a.keep(way);
      const back = watch(inner.unlock());
      await advance(COMMAND_TIMEOUT);
      expect(back.outcome).toBe("UNAVAILABLE");
      await a.letGo();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      expect(server.ttl()).toBeLessThanOrEqual(60_000);
      await outer.unlock();
    });

    test("lock.unlock() is asked again until the release is through, and then there is nothing to unlock", async (place) => {
      const { lock, a } = place;
      await a.client.scope(async () => {
        await lock.lock({ lease: 60_000 });
        a.keep(way);
        for (let i = 0; i < 2; i++) await expectInVain(place, lock.unlock());
        await a.letGo();
        expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      });
    });

    test("an owner whose lock.unlock() went on in the background knows nothing of the lock afterwards", async (place) => {
      const { lock, a } = place;
      const owner = a.client.newOwner();
      await lock.lock({ owner, lease: 60_000 });
      a.keep(way);
      await expectInVain(place, lock.unlock({ owner }));
      const known = () => checkOwner(owner)?.get(`${a.client.id}/${NAME}`, OwnerLock);
      expect(known()).toBeDefined();
      await a.letGo();
      expect(known()).toBeUndefined();
    });

    test("lock.unlock() that is asked again in vain knows the other holds of its owner and of this client as before [B65]", async (place) => {
      const { lock, a } = place;
      await a.client.scope(async () => {
        const outer = await lock.lock({ lease: 60_000 });
        await lock.lock({ lease: 60_000 });
        a.keep(way);
        for (let i = 0; i < 2; i++) await expectInVain(place, lock.unlock());
        const elsewhere = failure(lock.unlock({ owner: a.client.newOwner() }));
        expect(await elsewhere).toMatchObject({
          code: "NOT_OWNER",
          message: expect.stringContaining("holds it by a bare lock"),
        });
        const last = watch(outer.unlock());
        await a.letGo();
        expect(last.outcome).toBeUndefined();
        expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      });
    });

    test("extend is UNAVAILABLE in time, and the hold believes in the earlier of both deadlines", async (place) => {
      const { lock, a, advance, settle } = place;
      const hold = await lock.lock({ lease: 60_000 });
      a.keep(way);
      const up = watch(hold.extend(100_000));
      await advance(COMMAND_TIMEOUT);
      expect(up.outcome).toBe("UNAVAILABLE");
      expect(hold.remaining).toBe(60_000 * 0.99 - 2 - COMMAND_TIMEOUT);
      const down = watch(hold.extend(20_000));
      await advance(COMMAND_TIMEOUT);
      expect(down.outcome).toBe("UNAVAILABLE");
      expect(hold.remaining).toBe(20_000 * 0.99 - 2 - COMMAND_TIMEOUT);
      await a.letGo();
      await settle();
      expect(hold.remaining).toBeLessThanOrEqual(20_000 * 0.99 - 2);
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
    });

    test("calls of the owner that stand behind a release without an answer are UNAVAILABLE in time", async (place) => {
      const { lock, a, advance, server } = place;
      const outer = await lock.lock({ lease: 60_000 });
      const inner = await lock.lock({ lease: 60_000, owner: outer });
      a.keep(way);
      const calls = [inner.unlock(), outer.extend(50_000), lock.lock({ owner: outer }), outer.unlock()].map(
        (call: Promise<unknown>) => watch(call),
      );
      await advance(COMMAND_TIMEOUT - 1);
      expect(calls.map(({ outcome }) => outcome)).toEqual(Array(4).fill("pending"));
      await advance(1);
      expect(calls.map(({ outcome }) => outcome)).toEqual(Array(4).fill("UNAVAILABLE"));
      server.took();
      await a.letGo();
      // A call that has rejected is not sent any more.
      expect(server.took().filter((name) => /acquire|reenter/.test(name))).toEqual([]);
    });

    /** Calls, and how many milliseconds after an unanswered command each is made. */
    const LATER: [string, number, (lock: Lock, holds: Hold[]) => Promise<unknown>][] = [
      ["a nested lock() behind", 500, (lock, [outer]) => lock.lock({ owner: outer })],
      ["a nested lock() after", COMMAND_TIMEOUT, (lock, [outer]) => lock.lock({ owner: outer })],
      ["an unlock() behind", 500, (_, [, inner]) => (inner as Hold).unlock()],
      ["an unlock() after", COMMAND_TIMEOUT, (_, [, inner]) => (inner as Hold).unlock()],
      ["an extend() behind", 500, (_, [, inner]) => (inner as Hold).extend(50_000)],
      ["an extend() after", COMMAND_TIMEOUT, (_, [, inner]) => (inner as Hold).extend(50_000)],
    ];

    test.for(LATER)(
      "%s a command without an answer is UNAVAILABLE in its own time [B62]",
      async ([, after, call], { lock, a, advance, settle }) => {
        const outer = await lock.lock({ lease: 60_000 });
        const inner = await lock.lock({ lease: 60_000, owner: outer });
        a.keep(way);
        const first = watch(outer.extend(90_000));
        await advance(after);
        const later = watch(call(lock, [outer, inner]));
        await advance(COMMAND_TIMEOUT - 1);
        expect(later.outcome).toBe("pending");
        await advance(2);
        expect([first.outcome, later.outcome]).toEqual(["UNAVAILABLE", "UNAVAILABLE"]);
        await a.letGo();
        await settle();
        for (const hold of [inner, outer]) await watch(hold.unlock());
      },
    );

    test("a waiting call's try may be unanswered: it goes on, and has the lock once it is free", async (place) => {
      const { lock, rival, a, advance } = place;
      const theirs = await rival.lock();
      const call = watch(lock.lock());
      await advance(100);
      a.keep(way);
      await advance(5_000);
      expect(call.outcome).toBe("pending");
      await theirs.unlock();
      await a.letGo();
      await advance(1_000);
      expect(call.value?.isHeld).toBe(true);
      await call.value?.unlock();
    });

    test("a waiting call that is aborted while its try is unanswered leaves nothing", async (place) => {
      const { lock, rival, a, advance, settle } = place;
      const controller = new AbortController();
      const theirs = await rival.lock();
      const call = watch(lock.lock({ signal: controller.signal }));
      await advance(100);
      a.keep(way);
      await theirs.unlock();
      await advance(600);
      controller.abort("enough");
      await settle();
      expect(call.outcome).toBe("enough");
      await a.letGo();
    });
  });

  test("a grant that arrives after its deadline is given back, and the call rejects LOCK_LOST", async (place) => {
    const { lock, a, advance, settle } = place;
    a.keep("replies");
    const call = watch(lock.lock({ lease: 300 }));
    await settle();
    await advance(300);
    await a.letGo();
    expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "expired", lockName: NAME });
  });

  test("a nested grant that arrives after its deadline is undone alone", async (place) => {
    const { lock, a, advance, server, settle } = place;
    const outer = await lock.lock({ lease: 60_000 });
    a.keep("replies");
    const call = watch(lock.lock({ lease: 300, owner: outer }));
    await settle();
    await advance(300);
    await a.letGo();
    expect(call.error).toMatchObject({ code: "LOCK_LOST", reason: "expired", lockName: NAME });
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
    await outer.unlock();
  });

  test("a nested call whose outer hold is lost meanwhile starts afresh", async (place) => {
    const { lock, a, advance, server, settle } = place;
    const outer = await lock.lock({ lease: 500 });
    a.keep("replies");
    const call = watch(lock.lock({ owner: outer, lease: 60_000 }));
    await settle();
    await advance(500);
    expect(outer.signal.reason).toMatchObject({ reason: "expired" });
    await a.letGo();
    await settle();
    expect(call.value?.isHeld).toBe(true);
    expect(call.value?.ownerId).not.toBe(outer.ownerId);
    expect(server.hash()).toEqual(kind.fields(call.value?.ownerId as string, 1));
    await call.value?.unlock();
  });

  describe("a command that is executed, and sent again since its answer was lost, counts once", () => {
    test("of lock()", async ({ lock, a, server, settle }) => {
      a.keep("replies");
      const call = watch(lock.lock());
      await settle();
      await a.reconnect();
      expect(call.value?.isHeld).toBe(true);
      expect(server.hash()).toEqual(kind.fields(call.value?.ownerId as string, 1));
      await call.value?.unlock();
      // The kept replies of the first connection arrive at last.
      await a.letGo();
    });

    test("of a nested lock()", async ({ lock, a, server, settle }) => {
      const outer = await lock.lock();
      a.keep("replies");
      const call = watch(lock.lock({ owner: outer }));
      await settle();
      await a.reconnect();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
      await call.value?.unlock();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      await outer.unlock();
    });

    test("of unlock()", async ({ lock, a, settle }) => {
      const outer = await lock.lock();
      const inner = await lock.lock({ owner: outer });
      for (const hold of [inner, outer]) {
        a.keep("replies");
        const back = watch(hold.unlock());
        await settle();
        await a.reconnect();
        expect(back.outcome).toBeUndefined();
      }
      expect(a.heard("lost")).toEqual([]);
      expect(a.heard("released")).toHaveLength(2);
    });
  });

  describe("a command of a lost connection that arrives late changes nothing", () => {
    test("of lock(), after the unlock", async ({ lock, a, settle, server }) => {
      a.keep("requests");
      const call = watch(lock.lock());
      await settle();
      await a.reconnect();
      await call.value?.unlock();
      await a.letGo();
      expect(server.hash()).toEqual({});
    });

    test("of lock(), after a hold that the server had lost was given back", async (place) => {
      const { lock, a, settle, server } = place;
      a.keep("requests");
      const call = watch(lock.lock());
      await settle();
      await a.reconnect();
      server.delete();
      expect(await failure((call.value as Hold).unlock())).toMatchObject({ code: "LOCK_LOST" });
      await settle();
      await a.letGo();
      expect(server.hash()).toEqual({});
    });

    test("of a nested lock(), after a further command", async ({ lock, a, settle, server }) => {
      const outer = await lock.lock({ lease: 60_000 });
      a.keep("requests");
      const call = watch(lock.lock({ owner: outer, lease: 60_000 }));
      await settle();
      await a.reconnect();
      await call.value?.unlock();
      await a.letGo();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      await outer.unlock();
    });

    test("of unlock() of a nested hold, after a further lock()", async ({ lock, a, settle, server }) => {
      const outer = await lock.lock({ lease: 60_000 });
      const inner = await lock.lock({ owner: outer, lease: 60_000 });
      a.keep("requests");
      const back = watch(inner.unlock());
      await settle();
      await a.reconnect();
      expect(back.outcome).toBeUndefined();
      const third = await lock.lock({ owner: outer, lease: 60_000 });
      await a.letGo();
      expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
      await third.unlock();
      await outer.unlock();
    });

    test("of extend(), after a further extend()", async ({ lock, a, settle, server }) => {
      const hold = await lock.lock({ lease: 60_000 });
      a.keep("requests");
      const first = watch(hold.extend(5_000));
      await settle();
      await a.reconnect();
      expect(first.outcome).toBeUndefined();
      await hold.extend(50_000);
      await a.letGo();
      expect(server.ttl()).toBe(50_000);
      await hold.unlock();
    });

    test("of extend() that got no answer, after a further extend()", async ({ lock, a, advance, server }) => {
      const hold = await lock.lock({ lease: 60_000 });
      a.keep("requests");
      const first = watch(hold.extend(5_000));
      await advance(COMMAND_TIMEOUT);
      expect(first.outcome).toBe("UNAVAILABLE");
      await a.reconnect();
      await hold.extend(50_000);
      await a.letGo();
      expect(server.ttl()).toBe(50_000);
      expect(hold.remaining).toBe(50_000 * 0.99 - 2);
      await hold.unlock();
    });
  });

  test("a hold that is granted while its call is aborted is given back", async ({ lock, a, settle }) => {
    const controller = new AbortController();
    a.keep("replies");
    const call = watch(lock.lock({ signal: controller.signal }));
    await settle();
    const arrives = a.letGo();
    controller.abort("enough");
    await arrives;
    expect(call.outcome).toBe("enough");
  });

  test("one that is aborted with its try on its way is in nobody's way [B98]", async ({
    lock,
    a,
    settle,
  }) => {
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
  });

  test.with({ commandTimeout: 30_000 })(
    "one whose try is granted when its tombstone has lapsed leaves nothing either [B109]",
    async ({ lock, advance, server }) => {
      let isFull = true;
      server.instead = ({ name }) => {
        if (isFull && name.endsWith("/acquire")) throw new ReplyError("OOM command not allowed");
        return undefined;
      };
      const controller = new AbortController();
      const call = watch(lock.lock({ signal: controller.signal, lease: 600_000 }));
      await advance(100);
      controller.abort("enough");
      await advance(21_000);
      isFull = false;
      await advance(5_000);
      expect([call.outcome, server.hash()]).toEqual(["enough", {}]);
    },
  );

  test("a hold that was forced leaves nothing, though its acquire arrives once more [B112]", async (place) => {
    const { lock, twin, a, settle, server } = place;
    a.keep("requests");
    const call = watch(lock.lock({ lease: 600_000 }));
    await settle();
    await a.reconnect();
    expect(await twin.forceUnlock()).toBe(true);
    await a.letGo();
    expect([call.value?.isHeld, server.hash()]).toEqual([false, {}]);
  });

  test("calls that are refused leave no place behind on the server", async (place) => {
    const { lock, rival, advance, server } = place;
    const theirs = await rival.lock();
    const names = server.names();
    const calls = [watch(lock.lock({ wait: 500 })), watch(lock.tryLock(700)), watch(lock.tryLock())];
    await advance(700);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["WAIT_TIMEOUT", null, null]);
    await theirs.unlock();
    const places = server.names().filter((name) => !names.includes(name) && !/latch/.test(name));
    expect(places).toEqual([]);
    const next = await rival.tryLock();
    expect(next?.isHeld).toBe(true);
    await next?.unlock();
  });

  test("a hold count that somebody else has changed makes a nested call UNAVAILABLE, which says so", async (place) => {
    const { lock, server } = place;
    const outer = await lock.lock({ lease: 60_000 });
    for (const [field] of Object.entries(kind.fields(outer.ownerId, 1)).filter(([, count]) => count === "1"))
      server.execute(["HSET", NAME, field, "5"]);
    const error = await failure(lock.lock({ owner: outer }));
    expect(error).toMatchObject({ code: "UNAVAILABLE", lockName: NAME });
    expect(error.cause).toMatchObject({ message: "its hold count was changed by others" });
    expect(outer.isHeld).toBe(true);
    server.delete();
  });

  test("a nested call that waited while other holds ran out goes behind their release [B96]", async (place) => {
    const { lock, a, advance } = place;
    const outer = await lock.lock({ lease: 60_000 });
    const short = [
      await lock.lock({ lease: 500, owner: outer }),
      await lock.lock({ lease: 500, owner: outer }),
    ];
    a.keep("requests");
    const extended = watch(outer.extend(60_000));
    const nested = watch(lock.lock({ lease: 60_000, owner: outer }));
    await advance(501);
    expect(short.map(({ isHeld }) => isHeld)).toEqual([false, false]);
    await a.letGo();
    expect([extended.outcome, nested.state]).toEqual([undefined, "resolved"]);
    expect(await lock.getHoldCount({ owner: outer })).toBe(2);
    await nested.value?.unlock();
    await outer.unlock();
  });

  test("nor does it matter that they run out while it waits for the tombstone of a command before it [B111]", async (place) => {
    const { lock, a, advance, settle } = place;
    const outer = await lock.lock({ lease: 60_000 });
    for (let i = 0; i < 2; i++) await lock.lock({ lease: 500, owner: outer });
    a.keep("requests");
    const extended = watch(outer.extend(60_000));
    await settle();
    await a.reconnect();
    a.keep("requests");
    const nested = watch(lock.lock({ lease: 60_000, owner: outer }));
    await advance(501);
    await a.letGo();
    expect([extended.outcome, nested.state]).toEqual([undefined, "resolved"]);
    expect(await lock.getHoldCount({ owner: outer })).toBe(2);
    await nested.value?.unlock();
    await outer.unlock();
  });

  test("an abort at any moment of a grant's arrival leaves the caller a hold, or nothing at all", async () => {
    const seen = new Set<string>();
    for (let ticks = 0; ticks < 30; ticks++) {
      const place = await open();
      const { lock, a, settle } = place;
      a.listen("acquired");
      const controller = new AbortController();
      a.keep("replies");
      const call = watch(lock.lock({ signal: controller.signal }));
      await settle();
      const arrives = a.letGo();
      for (let i = 0; i < ticks; i++) await undefined;
      controller.abort("enough");
      await arrives;
      seen.add(call.state);
      if (call.state === "rejected") expect(call.outcome).toBe("enough");
      else await call.value?.unlock();
      await settle();
      const granted = call.state === "resolved" ? 1 : 0;
      expect([a.heard("acquired").length, a.heard("released").length]).toEqual([granted, granted]);
      await expectNothingLeft(place);
    }
    expect([...seen].sort()).toEqual(["rejected", "resolved"]);
  });

  describe("an unlock whose answer is lost for longer than its tombstone lives", () => {
    test("has given the hold back", async ({ lock, a, advance }) => {
      const hold = await lock.lock({ lease: 60_000 });
      a.keep("replies");
      void watch(hold.unlock());
      await advance(20_001);
      await a.reconnect();
      expect(await hold.unlock()).toBeUndefined();
      expect(a.heard("lost")).toEqual([]);
      expect(a.heard("released")).toHaveLength(1);
      await a.letGo();
    });

    test("tells a loss if it is sent again before that, and finds nothing", async (place) => {
      const { lock, a, advance, server } = place;
      const hold = await lock.lock({ lease: 60_000 });
      a.keep("requests");
      void watch(hold.unlock());
      await advance(20_000);
      server.delete();
      await a.reconnect();
      expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(a.heard("released")).toEqual([]);
      await a.letGo();
    });

    test("has given a nested hold back, if all that it left has lapsed since", async (place) => {
      const { lock, a, advance } = place;
      const outer = await lock.lock({ lease: 5_000 });
      const inner = await lock.lock({ lease: 60_000, owner: outer });
      a.keep("replies");
      void watch(inner.unlock());
      await advance(5_001);
      await a.reconnect();
      expect(await inner.unlock()).toBeUndefined();
      expect(a.heard("released")).toHaveLength(1);
      expect(await failure(outer.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      await a.letGo();
    });

    test("tells the loss of a nested hold, if what it left has time still", async (place) => {
      const { lock, a, advance, server } = place;
      const outer = await lock.lock({ lease: 30_000 });
      const inner = await lock.lock({ lease: 60_000, owner: outer });
      a.keep("requests");
      void watch(inner.unlock());
      await advance(19_000);
      server.delete();
      await a.reconnect();
      expect(await failure(inner.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(outer.isHeld).toBe(false);
      await a.letGo();
    });
  });

  test.with({ commandTimeout: 5_000 })(
    "an extend() that waits for the tombstone of the one before it, while its hold ends, tells the loss",
    async (place) => {
      const { lock, a, advance, server } = place;
      const hold = await lock.lock({ lease: 6_000 });
      a.keep("requests");
      const first = watch(hold.extend(60_000));
      await advance(5_000);
      const second = watch(hold.extend(60_000));
      await advance(1_500);
      server.took();
      await a.letGo();
      expect(first.outcome).toBe("UNAVAILABLE");
      expect(second.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(server.took().filter((name) => name.endsWith("/extend"))).toHaveLength(1);
      expect(await undoneByNext(place, hold)).toEqual([]);
    },
  );

  test("an unlock that was answered late gets its tombstone before the next command", async (place) => {
    const { lock, a, advance, server } = place;
    const outer = await lock.lock({ lease: 60_000 });
    const inner = await lock.lock({ lease: 60_000, owner: outer });
    a.keep("replies");
    void watch(inner.unlock());
    await advance(COMMAND_TIMEOUT + 1);
    await a.letGo();
    server.took();
    await outer.extend(50_000);
    expect(server.took().map((name) => name.split("/")[1])).toEqual(["undo", "extend"]);
    await outer.unlock();
  });

  test("a run whose tries stood for too long behind the release of another of its owner has one hold in the end", async (place) => {
    const { lock, a, advance, settle } = place;
    const end = deferred();
    await a.client.scope(async () => {
      void watch(lock.run(() => end.promise));
      const next = watch(lock.run(() => "next"));
      await settle();
      a.keep("requests");
      end.resolve();
      await advance(5_000);
      await a.letGo();
      await advance(1_000);
      expect(next.outcome).toBe("next");
    });
  });

  /** The owner of an ended hold takes the lock twice, and gets it anew; returns the undo commands of the second call. */
  const undoneByNext = async ({ lock, server }: Scene & { lock: Lock }, over: Hold): Promise<string[]> => {
    const next = await lock.lock({ owner: over });
    server.took();
    const nested = await lock.lock({ owner: next });
    const undone = server.took().filter((name) => name.endsWith("/undo"));
    for (const hold of [nested, next]) await hold.unlock();
    return undone;
  };

  test("commands of a hold that is lost need no tombstone before those of the next one", async (place) => {
    const { lock, a, advance } = place;
    const hold = await lock.lock();
    a.keep("requests");
    void watch(hold.extend(60_000));
    await advance(COMMAND_TIMEOUT);
    a.loseAll("forced");
    await a.letGo();
    expect(await undoneByNext(place, hold)).toEqual([]);
  });

  test.with({ watchdogTimeout: 9_000 }).for([
    ["a renewal", ({ advance }: Scene) => advance(4_000)],
    [
      "force on another server",
      async () => {
        const other = kind.make(scene().a.client, NAME);
        await other.lock();
        expect(await other.forceUnlock()).toBe(true);
      },
    ],
  ])(
    "a lock() that may arrive once more is undone also if %s came in between",
    async ([, between], place) => {
      const { lock, a, server, settle } = place;
      a.keep("requests");
      const call = watch(lock.lock());
      await settle();
      await a.reconnect();
      await between(place);
      server.delete();
      expect(await failure((call.value as Hold).unlock())).toMatchObject({ code: "LOCK_LOST" });
      await settle();
      await a.letGo();
      expect(server.hash()).toEqual({});
    },
  );
});
