/** How holds are lost, for which reason, and who is told when; and how the watchdog keeps holds. In virtual time. */
import { describe, expect } from "vitest";
import type { Hold } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, NAME, type Scene, type Server, STRANGER, sceneOf, testIn, watch } from "./scene.js";

const WATCHDOG = 9_000;
const ROUND = WATCHDOG / 3;
const RETRY = ROUND / 10;
/** The part of the watchdog's lease that the default drift leaves. */
const DEADLINE = WATCHDOG * 0.99 - 2;

describe.each(byName(KINDS))("%s", (_, kind) => {
  const open = (options = {}) => {
    const place = sceneOf(kind, { watchdogTimeout: WATCHDOG, commandTimeout: 1_000, ...options });
    place.a.listen("lost", "renewed", "suspended", "released", "error");
    return place;
  };
  const test = testIn(open);
  /** For tests of late answers. */
  const patient = test.with({ commandTimeout: 30_000 });

  test.with({ drift: 0.6664 })(
    "the greatest drift that is allowed leaves a hold the time of its renewals",
    async ({ lock, advance }) => {
      // Of the 9 s, 3 s and 2 ms must be left.
      const hold = await lock.lock();
      await advance(10 * WATCHDOG);
      expect(hold.isHeld).toBe(true);
      expect(() => open({ drift: 0.66645 })).toThrow(/^drift must be at least 0 and below 0\.666,/);
      await hold.unlock();
    },
  );

  /** Gives the lock to a hold of another client, which excludes this one. */
  const seize = (server: Server) => server.give(kind.rival.fields(STRANGER, 1));

  const WAYS = [
    ["gone", "expired", (server: Server) => server.delete()],
    ["taken by another", "taken", seize],
  ] as const;

  describe.each(WAYS)("a lock that is %s on the server", (_, reason, act) => {
    const LOST = { code: "LOCK_LOST", reason, lockName: NAME };

    test("is noticed by the next renewal, which tells all holds of the owner", async (place) => {
      const { lock, server, advance, a } = place;
      const hold = await lock.lock();
      const inner = await lock.lock({ owner: hold, lease: 60_000 });
      const { signal } = hold;
      act(server);
      await advance(ROUND - 1);
      expect(hold.isHeld).toBe(true);
      await advance(1 + WATCHDOG / 12);
      expect(signal.reason).toMatchObject(LOST);
      expect(inner.signal.reason).toMatchObject(LOST);
      const told = { reason, ownerId: hold.ownerId, lockName: NAME, kind: kind.kind };
      expect(a.heard("lost")).toMatchObject([told, told]);
      expect(await failure(inner.unlock())).toBe(inner.signal.reason);
      expect(await failure(hold.unlock())).toBe(signal.reason);
      // Once the loss is told, the client forgets the hold, so a second unlock sends no command.
      server.took();
      await watch(hold.unlock());
      expect(server.took()).toEqual([]);
      server.delete();
    });

    test("is noticed by extend, which tells all holds of the owner", async ({ lock, server, a }) => {
      const outer = await lock.lock();
      const inner = await lock.lock({ lease: 60_000, owner: outer });
      act(server);
      const before = server.hash();
      expect(await failure(inner.extend(20_000))).toMatchObject(LOST);
      expect([outer.isHeld, inner.isHeld]).toEqual([false, false]);
      expect(outer.signal.reason).toMatchObject(LOST);
      expect(server.hash()).toEqual(before);
      expect(await failure(inner.extend(20_000))).toMatchObject(LOST);
      expect(a.heard("lost")).toHaveLength(2);
      server.delete();
    });

    test("is noticed by an unlock, which tells no release", async ({ lock, server, a }) => {
      const outer = await lock.lock();
      const inner = await lock.lock({ owner: outer });
      act(server);
      const before = server.hash();
      expect(await failure(inner.unlock())).toMatchObject(LOST);
      expect(outer.isHeld).toBe(false);
      expect(await failure(outer.unlock())).toMatchObject(LOST);
      expect(server.hash()).toEqual(before);
      expect(a.heard("released")).toEqual([]);
      expect(a.heard("lost")).toHaveLength(2);
      server.delete();
    });

    test("is noticed by a nested call, which starts afresh as a stranger", async ({ lock, server, a }) => {
      await a.client.scope(async () => {
        const hold = await lock.lock({ lease: 60_000 });
        act(server);
        const again = watch(lock.tryLock());
        await server.settle();
        expect(hold.signal.reason).toMatchObject(LOST);
        if (reason === "taken") expect(again.outcome).toBeNull();
        else {
          expect(again.value?.isHeld).toBe(true);
          expect(again.value?.ownerId).not.toBe(hold.ownerId);
          expect(server.hash()).toEqual(kind.fields(again.value?.ownerId as string, 1));
        }
        // unlock() closes the innermost open hold: the new hold, if there is one, and after that the lost one.
        if (again.value) await lock.unlock();
        expect(await failure(lock.unlock())).toMatchObject(LOST);
      });
      server.delete();
    });
  });

  test("a loss is told once by its signal and its event, by the unlock that reaches it, and then dropped", async (place) => {
    const { lock, a, advance } = place;
    await a.client.scope(async () => {
      const hold = await lock.lock({ lease: 5_000 });
      let told = 0;
      hold.signal.addEventListener("abort", () => told++);
      await advance(5_000);
      expect(told).toBe(1);
      expect(await failure(lock.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(await failure(hold.unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(a.heard("lost")).toHaveLength(1);
    });
  });

  test("a signal that is first asked for after the loss has its reason", async ({ lock, advance }) => {
    const hold = await lock.lock({ lease: 5_000 });
    await advance(5_000);
    expect(hold.signal.aborted).toBe(true);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
  });

  test("a hold is renewed every third of the watchdog's lease, by one command for all of its owner", async (place) => {
    const { lock, server, advance, a } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    server.took();
    await advance(ROUND + WATCHDOG / 12);
    expect(server.took()).toHaveLength(1);
    expect(a.heard("renewed")).toEqual([{ lockName: NAME, kind: kind.kind, ownerId: outer.ownerId }]);
    for (const hold of [outer, inner]) expect(hold.remaining).toBeGreaterThan(DEADLINE - WATCHDOG / 12 - 1);
    await advance(10 * ROUND);
    const { length } = server.took();
    expect(length).toBeGreaterThanOrEqual(8);
    expect(length).toBeLessThanOrEqual(13);
    // The watchdog also renews the keys beside the lock's own key.
    for (const key of kind.beside(NAME, outer.ownerId, 2)) expect(server.ttl(key)).toBeGreaterThan(ROUND);
    expect(server.hash()).toEqual(kind.fields(outer.ownerId, 2));
    await outer.unlock();
    await advance(2 * ROUND);
    expect(inner.isHeld).toBe(true);
    await inner.unlock();
    server.took();
    await advance(5 * ROUND);
    expect(server.took()).toEqual([]);
  });

  test("a leased hold is never renewed", async ({ lock, server, advance, a }) => {
    await lock.lock({ lease: 60_000 });
    server.took();
    await advance(50_000);
    expect(server.took()).toEqual([]);
    expect(a.heard("renewed")).toEqual([]);
    await a.client.close({ timeout: 0 });
  });

  test("a renewal that gets no answer is told once, tried again soon, and saves the hold in the end", async (place) => {
    const { lock, advance, a } = place;
    const hold = await lock.lock();
    a.keep("requests");
    await advance(ROUND + WATCHDOG / 12 + 1_000);
    expect(a.heard("suspended")).toMatchObject([
      { lockName: NAME, kind: kind.kind, ownerId: hold.ownerId, cause: { code: "UNAVAILABLE" } },
    ]);
    expect(hold.isHeld).toBe(true);
    await advance(RETRY + 1_000);
    expect(a.heard("suspended")).toHaveLength(1);
    await a.letGo();
    await advance(RETRY + 1_000);
    expect(a.heard("renewed").length).toBeGreaterThan(0);
    await advance(5 * ROUND);
    expect(hold.isHeld).toBe(true);
    // A second outage is told again.
    a.keep("requests");
    await advance(ROUND + WATCHDOG / 12 + 1_000);
    expect(a.heard("suspended")).toHaveLength(2);
    await a.letGo();
    await hold.unlock();
  });

  test("renewals that are answered too late, each of them, keep the hold all the same [B243]", async (place) => {
    const { lock, advance, a } = place;
    const hold = await lock.lock();
    for (let past = 0; past < 4 * WATCHDOG; past += 1_100) {
      a.keep("replies");
      for (; hold.isHeld && a.onTheirWay === 0; past += 100) await advance(100);
      await advance(1_100);
      await a.letGo();
    }
    expect(a.heard("renewed")).toEqual([]);
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  });

  test("a late answer to a renewal that found no lock ends nothing", async ({ lock, server, advance, a }) => {
    const hold = await lock.lock();
    await advance(ROUND - 1);
    a.keep("replies");
    const fields = server.hash();
    server.delete();
    await advance(1 + 1_000);
    expect(a.onTheirWay).toBe(1);
    server.give(fields);
    await a.letGo();
    expect(hold.isHeld).toBe(true);
    await hold.unlock();
  });

  test("a hold whose renewals are not answered is lost as unreachable, and what is left of it is given back", async (place) => {
    const { lock, advance, a } = place;
    const hold = await lock.lock();
    const leased = await lock.lock({ lease: 8_000, owner: hold });
    a.keep("replies");
    await advance(DEADLINE - 1);
    expect(hold.isHeld).toBe(true);
    expect(leased.signal.reason).toMatchObject({ reason: "expired" });
    await advance(1);
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
    expect(a.heard("lost").map(({ reason }) => reason)).toEqual(["expired", "unreachable"]);
    await a.letGo();
  });

  patient("a hold that was lost is not brought back by the late answer to its renewal", async (place) => {
    const { lock, advance, a, server } = place;
    const hold = await lock.lock();
    await advance(ROUND - 1);
    a.keep("replies");
    await advance(1 + WATCHDOG / 12);
    expect(a.onTheirWay).toBeGreaterThan(0);
    await advance(DEADLINE);
    expect(hold.signal.reason).toMatchObject({ reason: "unreachable" });
    await a.letGo();
    expect(hold.isHeld).toBe(false);
    expect(a.heard("renewed")).toEqual([]);
    expect(server.hash()).toEqual({});
  });

  patient(
    "an answer that comes after the deadline is too late, though no timer has fired yet",
    async ({ lock, advance, a, server }) => {
      const hold = await lock.lock();
      await advance(ROUND - 1);
      a.keep("replies");
      await advance(1 + WATCHDOG / 12);
      server.clock.moveTo(DEADLINE);
      await a.letGo();
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "unreachable" });
      expect(a.heard("renewed")).toEqual([]);
    },
  );

  patient("a renewal is counted from when it was sent", async (place) => {
    const { lock, advance, a } = place;
    const hold = await lock.lock();
    await advance(ROUND - 1);
    a.keep("replies");
    await advance(1 + WATCHDOG / 12);
    const sentWith = hold.remaining;
    await advance(2_000);
    await a.letGo();
    expect(a.heard("renewed")).toHaveLength(1);
    expect(hold.remaining).toBeGreaterThan(DEADLINE - 2_000 - WATCHDOG / 12 - 1);
    expect(hold.remaining).toBeLessThanOrEqual(DEADLINE - 2_000);
    expect(sentWith).toBeLessThan(hold.remaining + 2_000);
    await hold.unlock();
  });

  test("a renewal does not lower a deadline that was extended beyond it", async (place) => {
    const { lock, advance, a, server } = place;
    const hold = await lock.lock();
    await hold.extend(60_000);
    await advance(2 * ROUND);
    expect(a.heard("renewed").length).toBeGreaterThan(0);
    expect(hold.remaining).toBe(60_000 * 0.99 - 2 - 2 * ROUND);
    expect(server.ttl()).toBe(60_000 - 2 * ROUND);
    // A late answer to a renewal does not lower it either.
    await hold.extend(12_500);
    a.keep("replies");
    await advance(ROUND + 900);
    await a.letGo();
    expect(hold.remaining).toBe(12_500 * 0.99 - 2 - ROUND - 900);
    await hold.unlock();
  });

  patient(
    "the answer to a renewal that was on its way means nothing for holds given back meanwhile",
    async ({ lock, advance, a, server }) => {
      const hold = await lock.lock();
      await advance(ROUND - 1);
      a.keep("replies");
      await advance(1 + WATCHDOG / 12);
      const back = watch(hold.unlock());
      await a.letGo();
      expect(back.outcome).toBeUndefined();
      expect(a.heard("renewed")).toEqual([]);
      expect(a.heard("lost")).toEqual([]);
      const next = await lock.lock();
      await advance(ROUND + WATCHDOG / 12);
      expect(a.heard("renewed")).toHaveLength(1);
      expect(server.hash()).toEqual(kind.fields(next.ownerId, 1));
      await next.unlock();
    },
  );

  test("a nested hold that the watchdog keeps beside a leased one has a round of its own", async (place) => {
    const { lock, advance, server, a } = place;
    const leased = await lock.lock({ lease: 60_000 });
    await advance(ROUND - 200);
    await lock.lock({ owner: leased });
    server.took();
    await advance(ROUND - 1);
    expect(server.took()).toEqual([]);
    await advance(1 + WATCHDOG / 12);
    expect(server.took()).toHaveLength(1);
    await a.client.close({ timeout: 0 });
  });

  patient(
    "a hold that is on its way back is not renewed, whatever else of its owner ends meanwhile",
    async ({ lock, advance, server, a }) => {
      const hold = await lock.lock();
      await lock.lock({ owner: hold, lease: ROUND + 1_000 });
      a.keep("replies");
      void watch(hold.unlock());
      await advance(ROUND + 1_000);
      expect(a.heard("lost")).toHaveLength(1);
      expect(server.took().filter((name) => name.endsWith("/renew"))).toEqual([]);
      await a.letGo();
    },
  );

  test("a nested hold that the watchdog keeps has the earlier one's round until that is over", async (place) => {
    const { lock, advance, a } = place;
    const outer = await lock.lock();
    await advance(ROUND / 2);
    const inner = await lock.lock({ owner: outer });
    await advance(ROUND / 2 + WATCHDOG / 12);
    expect(a.heard("renewed")).toHaveLength(1);
    await outer.unlock();
    await advance(20 * ROUND);
    expect(inner.isHeld).toBe(true);
    await inner.unlock();
  });

  test.for(["forced", "taken", "expired", "unreachable", "closed"] as const)(
    "what ends all of a client's holds as %s is told with that reason, and given back",
    async (reason, { lock, a, settle }) => {
      const holds: Hold[] = [await lock.lock()];
      holds.push(await lock.lock({ lease: 60_000, owner: holds[0] }));
      a.loseAll(reason);
      expect(holds.map(({ isHeld }) => isHeld)).toEqual([false, false]);
      await settle();
      for (const hold of holds) {
        expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason });
        // For a close the signal is enough, so unlock() does not reject.
        const back = watch(hold.unlock());
        await settle();
        expect(back.outcome).toBe(reason === "closed" ? undefined : "LOCK_LOST");
      }
    },
  );

  test("a listener of the signal runs outside the scope that took the hold", async ({ lock, a, advance }) => {
    let inside: unknown = "not told";
    await a.client.scope(async () => {
      const hold = await lock.lock({ lease: 5_000 });
      const other = a.client.getLock("other");
      await other.lock();
      hold.signal.addEventListener("abort", () => {
        inside = other.currentHold();
      });
      expect(other.currentHold()).not.toBeNull();
      await advance(5_000);
    });
    expect(inside).toBeNull();
    await a.client.close({ timeout: 0 });
  });

  test("a renewed hold whose time is over in a stall, with no renewal due before it, is lost as expired", async (place) => {
    const { lock, server } = place;
    const hold = await lock.lock();
    server.clock.moveTo(DEADLINE);
    expect(() => hold.assertHeld()).toThrow(expect.objectContaining({ reason: "expired" }));
  });

  test.for([
    ["given back", (hold: Hold) => hold.unlock()],
    ["lost", (_hold: Hold, { a }: Scene) => a.loseAll("forced")],
  ])("after a hold that was %s the owner's next one has a round of its own", async ([, end], place) => {
    const { lock, advance, a, server } = place;
    await a.client.scope(async () => {
      await end(await lock.lock(), place);
      await advance(ROUND - 200);
      const hold = await lock.lock();
      server.took();
      await advance(ROUND - 1);
      expect(server.took()).toEqual([]);
      await advance(1 + WATCHDOG / 12);
      expect(server.took()).toHaveLength(1);
      await hold.unlock();
    });
  });

  test("the end of a leased hold renews nothing early, and what stays without a watchdog's hold is not renewed", async (place) => {
    const { lock, advance, server } = place;
    const renewals = () => server.took().filter((name) => name.endsWith("/renew")).length;
    const outer = await lock.lock();
    for (const lease of [1_000, 20_000]) await lock.lock({ owner: outer, lease });
    const leased = await lock.lock({ owner: outer, lease: 60_000 });
    await advance(1_500);
    expect(renewals()).toBe(0);
    await advance(2_500);
    expect(renewals()).toBe(1);
    await outer.unlock();
    await advance(10 * ROUND);
    expect(renewals()).toBe(0);
    expect(leased.isHeld).toBe(true);
    await leased.unlock();
  });

  patient("while a renewal is on its way none is sent beside it, whatever ends meanwhile", async (place) => {
    const { lock, advance, a } = place;
    const outer = await lock.lock();
    const brief = await lock.lock({ owner: outer, lease: ROUND + 1_500 });
    await advance(ROUND - 1);
    a.keep("requests");
    await advance(1 + WATCHDOG / 12);
    expect(a.onTheirWay).toBe(1);
    await advance(1_000);
    expect(brief.isHeld).toBe(false);
    // The command that gives `brief` back is on its way too.
    expect(a.onTheirWay).toBe(2);
    await a.letGo();
    expect(a.heard("renewed")).toHaveLength(1);
    await outer.unlock();
  });

  test("a renewal that failed is tried again after a tenth of a round, and not at once", async (place) => {
    const { lock, advance, a } = place;
    const hold = await lock.lock();
    await advance(ROUND - 1);
    a.keep("requests");
    await advance(1 + 1_000);
    expect(a.heard("suspended")).toHaveLength(1);
    expect(a.onTheirWay).toBe(1);
    await advance(RETRY - 1);
    expect(a.onTheirWay).toBe(1);
    await advance(1);
    expect(a.onTheirWay).toBe(2);
    await a.letGo();
    await hold.unlock();
  });

  test("a renewal that failed while the lock is on its way back is told of nobody", async (place) => {
    const { lock, advance, a, settle } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    await advance(ROUND - 1);
    a.keep("requests");
    await advance(1);
    const unlocks = [watch(outer.unlock()), watch(inner.unlock())];
    await advance(1_000);
    expect(a.heard("suspended")).toEqual([]);
    await a.letGo();
    await settle();
    for (const { state } of unlocks) expect(state).not.toBe("pending");
  });
});
