/** Closing a client: which calls it refuses, which listeners it tells, and what it waits for. In virtual time. */
import { describe, expect } from "vitest";
import { byName, KINDS } from "../contract/kinds.js";
import { failure, NAME, sceneOf, testIn, watch } from "./scene.js";

describe.each(byName(KINDS))("%s", (_, kind) => {
  const test = testIn(() => {
    const place = sceneOf(kind, { commandTimeout: 1_000, watchdogTimeout: 9_000 });
    place.a.listen("lost", "gaveUp", "released");
    return place;
  });

  test("a closed client refuses every call, and asks nobody", async ({ lock, a, server }) => {
    await a.client.close();
    server.took();
    const calls: (() => Promise<unknown>)[] = [
      () => lock.lock(),
      () => lock.tryLock(),
      () => lock.run(() => 1),
      () => lock.forceUnlock(),
      () => lock.isLocked(),
      () => lock.remainTimeToLive(),
      () => lock.getHoldCount(),
      () => lock.isHeldByCurrentOwner(),
    ];
    for (const call of calls)
      expect(await failure(call())).toMatchObject({ code: "CLIENT_CLOSED", lockName: NAME });
    expect(server.ran.filter(({ name }) => name.includes("/"))).toEqual([]);
  });

  test("waiters are rejected at once, and leave nothing", async ({ lock, rival, a, settle, advance }) => {
    const theirs = await rival.lock();
    const waiting = [watch(lock.lock()), watch(lock.lock())];
    await advance(100);
    const closing = watch(a.client.close());
    await settle();
    expect(waiting.map(({ outcome }) => outcome)).toEqual(["CLIENT_CLOSED", "CLIENT_CLOSED"]);
    expect(a.heard("gaveUp")).toMatchObject([
      { reason: "closed", waited: 100 },
      { reason: "closed", waited: 100 },
    ]);
    expect(closing.state).toBe("resolved");
    await theirs.unlock();
  });

  test("holds get their time to end by themselves, and close is over as soon as they have", async (place) => {
    const { lock, a, settle } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer });
    const other = await kind.make(a.client, "other").lock();
    const closing = watch(a.client.close({ timeout: Number.POSITIVE_INFINITY }));
    for (const hold of [inner, outer, other]) {
      await settle();
      expect([hold.isHeld, closing.state]).toEqual([true, "pending"]);
      await hold.unlock();
    }
    await settle();
    expect(closing.state).toBe("resolved");
    expect(a.heard("lost")).toEqual([]);
  });

  test("holds that are left are lost as closed and given back, and their unlock resolves", async (place) => {
    const { lock, a } = place;
    const outer = await lock.lock();
    const inner = await lock.lock({ owner: outer, lease: 90_000 });
    await a.client.close({ timeout: 0 });
    for (const hold of [outer, inner]) {
      expect(hold.isHeld).toBe(false);
      expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", reason: "closed" });
      expect(await hold.unlock()).toBeUndefined();
    }
    expect(a.heard("lost").map(({ reason }) => reason)).toEqual(["closed", "closed"]);
  });

  test("a run that goes on over it rejects LOCK_LOST, with what it returned", async ({ lock, a }) => {
    const run = lock.run(async () => {
      await a.client.close({ timeout: 0 });
      return 1;
    });
    expect(await failure(run)).toMatchObject({ code: "LOCK_LOST", reason: "closed", result: 1 });
  });

  test.for(["requests", "replies"] as const)(
    "what a call has left is given back before it is over, though its %s are late",
    async (way, { lock, a, settle }) => {
      await (await lock.lock()).unlock();
      const controller = new AbortController();
      a.keep(way);
      const call = watch(lock.lock({ signal: controller.signal }));
      await settle();
      controller.abort("enough");
      const closing = watch(a.client.close());
      await settle();
      expect(call.outcome).toBe("enough");
      expect(closing.state).toBe("pending");
      await a.letGo();
      expect(closing.state).toBe("resolved");
    },
  );

  test.for(["requests", "replies"] as const)(
    "a release is waited for, though its %s are late",
    async (way, { lock, a, settle }) => {
      const hold = await lock.lock();
      a.keep(way);
      const back = watch(hold.unlock());
      const closing = watch(a.client.close());
      await settle();
      expect(closing.state).toBe("pending");
      await a.letGo();
      expect([back.outcome, closing.state]).toEqual([undefined, "resolved"]);
    },
  );

  test("an unlock without an answer at the end rejects CLIENT_CLOSED when it is asked again", async (place) => {
    const { lock, a, advance } = place;
    const hold = await lock.lock();
    a.keep("requests");
    void watch(hold.unlock());
    await advance(1_000);
    const again = watch(hold.unlock());
    void a.client.close({ timeout: 0 });
    await advance(5_000);
    expect(again.outcome).toBe("CLIENT_CLOSED");
    await a.letGo();
  });

  test("no timer is left: not of what was told of holds and waits, and not of what is told of long holds [B72]", async () => {
    const { lock, a, b, server, advance } = sceneOf(kind, { presence: true, warnAfter: 3_600_000 });
    await lock.lock();
    const waiting = watch(b.client.getLock(NAME).lock());
    await a.client.getPermitExpirableSemaphore("permits").trySetPermits(1);
    await a.client.getPermitExpirableSemaphore("permits").acquire();
    await advance(2_000);
    await a.client.getLock("another").lock();
    await b.client.close({ timeout: 0 });
    await a.client.close({ timeout: 0 });
    expect(waiting.outcome).toBe("CLIENT_CLOSED");
    expect(server.clock.timers).toBe(0);
  });

  test("a closed client renews nothing", async ({ lock, a, server, advance }) => {
    await lock.lock();
    await a.client.close({ timeout: 0 });
    server.took();
    await advance(60_000);
    expect(server.took()).toEqual([]);
    expect(server.clock.timers).toBe(0);
  });
});
