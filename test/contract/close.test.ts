/** Contract section 1, close: which calls it refuses, what it waits for, what it ends, and what it leaves. */
import { describe, expect } from "vitest";
import type { Lock, MultiHold } from "../../src/index.js";
import { failure, NAME, openVirtual, row, SINGLE, watch } from "../support/place/index.js";

const CLOSED = { code: "CLIENT_CLOSED", name: "ClientClosedError" };
const LOST = { code: "LOCK_LOST", reason: "closed" };
const OPTIONS = { client: { commandTimeout: 1_000, watchdogTimeout: 9_000 } };

const CALLS: ((lock: Lock) => Promise<unknown>)[] = [
  (lock) => lock.lock(),
  (lock) => lock.tryLock(),
  (lock) => lock.tryLock(500),
  (lock) => lock.run(() => 1),
  (lock) => lock.forceUnlock(),
  (lock) => lock.isLocked(),
  (lock) => lock.remainTimeToLive(),
];

describe("what is refused", () => {
  row(
    "a closed client refuses every call, and asks nobody [§1 close]",
    OPTIONS,
    async ({ lock, a, server }) => {
      await a.client.close();
      server.took();
      const rest: typeof CALLS = [() => lock.getHoldCount(), () => lock.isHeldByCurrentOwner()];
      for (const call of [...CALLS, ...rest]) expect(await failure(call(lock))).toMatchObject(CLOSED);
      for (const call of [() => a.client.ready(), () => a.client.scope(() => 1), () => a.client.newOwner()])
        expect(await failure(call)).toMatchObject(CLOSED);
      expect(server.took()).toEqual([]);
    },
  );

  row(
    "a client that gives its holds time refuses calls already, nested ones too [§1 close]",
    async ({ lock, client }) => {
      const hold = await lock.lock();
      const closing = client.close();
      for (const call of [...CALLS, () => lock.lock({ owner: hold })])
        expect(await failure(call(lock))).toMatchObject(CLOSED);
      expect(hold.isHeld).toBe(true);
      await hold.unlock();
      await closing;
    },
  );

  row(
    "calls whose first answer is on its way are rejected, nested ones too, and leave nothing [§1 close]",
    async ({ lock, other, client, settle }) => {
      const hold = await lock.lock();
      const calls = [watch(other.lock()), watch(lock.lock({ owner: hold }))];
      const closing = client.close();
      await settle();
      expect(calls.map(({ outcome }) => outcome)).toEqual(["CLIENT_CLOSED", "CLIENT_CLOSED"]);
      await hold.unlock();
      await closing;
    },
  );

  row(
    "waiters are rejected at once, before any hold has ended, and leave nothing [§1 close]",
    async (place) => {
      const { lock, other, rival, a, settle, pass } = place;
      a.listen("gaveUp");
      const [hold, theirs] = [await other.lock(), await rival.lock()];
      const waiting = [watch(lock.lock()), watch(lock.tryLock(60_000)), watch(lock.run(() => 1))];
      await pass(100);
      const closing = watch(a.client.close());
      await settle();
      for (const { error } of waiting) expect(error).toMatchObject(CLOSED);
      const told = a.heard("gaveUp").filter(({ lockName }) => lockName === lock.name);
      expect(told.map(({ reason, waited }) => [reason, waited])).toEqual(Array(3).fill(["closed", 100]));
      expect([hold.isHeld, closing.state]).toEqual([true, "pending"]);
      await hold.unlock();
      await closing.promise;
      await theirs.unlock();
    },
  );
});

describe("what it waits for", () => {
  row(
    "holds get their time to end by themselves, and close is over as soon as they have [§1 close]",
    async (place) => {
      const { lock, other, a, settle } = place;
      a.listen("lost");
      const outer = await lock.lock();
      const inner = await lock.lock({ owner: outer });
      const last = await other.lock();
      const closing = watch(a.client.close({ timeout: Number.POSITIVE_INFINITY }));
      for (const hold of [inner, outer, last]) {
        await settle();
        expect([hold.isHeld, closing.state]).toEqual([true, "pending"]);
        await hold.unlock();
      }
      await settle();
      expect(closing.state).toBe("resolved");
      expect(a.heard("lost")).toEqual([]);
    },
  );

  row(
    "until then holds are renewed, and may be extended [§1 close]",
    OPTIONS,
    async ({ lock, client, pass, view }) => {
      const hold = await lock.lock();
      const closing = client.close({ timeout: 60_000 });
      await pass(20_000);
      expect(hold.isHeld).toBe(true);
      await hold.extend(60_000);
      expect([hold.remaining > 50_000, (await view.ttl()) > 50_000]).toEqual([true, true]);
      await hold.unlock();
      await closing;
    },
  );

  for (const way of ["requests", "replies"] as const) {
    row(
      `what an aborted call has left is given back first, though its ${way} are late [§1 close]`,
      OPTIONS,
      async (place) => {
        const { lock, a, settle } = place;
        await (await lock.lock()).unlock();
        const controller = new AbortController();
        a.keep(way);
        const call = watch(lock.lock({ signal: controller.signal }));
        await settle();
        controller.abort("enough");
        const closing = watch(a.client.close());
        await settle();
        expect([call.outcome, closing.state]).toEqual(["enough", "pending"]);
        await a.letGo();
        await closing.promise;
      },
    );

    row(
      `a release is waited for, though its ${way} are late [§1 close]`,
      OPTIONS,
      async ({ lock, a, settle }) => {
        const hold = await lock.lock();
        a.keep(way);
        const back = watch(hold.unlock());
        const closing = watch(a.client.close());
        await settle();
        expect(closing.state).toBe("pending");
        await a.letGo();
        await closing.promise;
        expect([back.outcome, hold.signal.aborted]).toEqual([undefined, false]);
      },
    );
  }

  row("calls of close, early and late ones, share one end [§1 close]", async ({ lock, client, settle }) => {
    const hold = await lock.lock();
    const closing = [watch(client.close({ timeout: 60_000 })), watch(client.close({ timeout: 0 }))];
    await settle();
    expect(closing.map(({ state }) => state)).toEqual(["pending", "pending"]);
    await hold.unlock();
    await Promise.all(closing.map(({ promise }) => promise));
    await client.close();
    await client[Symbol.asyncDispose]();
  });

  row(
    "a close of a client that Redis does not answer ends all the same [§1 close]",
    OPTIONS,
    async ({ lock, a, pass }) => {
      const hold = await lock.lock({ lease: 60_000 });
      a.keep("requests");
      const closing = watch(a.close({ timeout: 50 }));
      await pass(5_000);
      expect(closing.state).toBe("resolved");
      expect(hold.signal.reason).toMatchObject(LOST);
      await hold.unlock();
      await a.letGo();
    },
  );

  row(
    "an unlock without an answer rejects CLIENT_CLOSED when it is asked again at the end [§1 close]",
    { ...OPTIONS, kinds: SINGLE },
    async (place) => {
      const { lock, a, pass } = place;
      const hold = await lock.lock();
      a.keep("requests");
      void watch(hold.unlock());
      await pass(1_000);
      const again = watch(hold.unlock());
      void a.client.close({ timeout: 0 });
      await pass(5_000);
      expect(again.outcome).toBe("CLIENT_CLOSED");
      await a.letGo();
    },
  );
});

describe("what it ends", () => {
  row(
    "when its time is over, each hold is told first, as closed, and released after that [§1 close-ends-holds] [B304]",
    async (place) => {
      const { lock, a, server, pass } = place;
      a.listen("lost");
      const outer = await lock.lock();
      const inner = await lock.lock({ owner: outer, lease: 90_000 });
      let sentBefore = -1;
      outer.signal.addEventListener("abort", () => {
        sentBefore = server.took().length;
      });
      // A close also counts real time, of which this needs much less.
      const closing = watch(a.close({ timeout: 20_000 }));
      await pass(19_999);
      expect([closing.state, inner.isHeld]).toEqual(["pending", true]);
      server.took();
      await pass(1);
      expect(closing.state).toBe("resolved");
      // A RedLock is lost with its majority: by then its first member has been given back.
      expect(sentBefore).toBe(place.kind.servers > 1 ? 1 : 0);
      // By then the last member of a RedLock has been given back.
      const members = place.kind.servers > 1 ? [] : ((outer as MultiHold).members ?? []);
      for (const hold of [outer, inner, ...members]) {
        expect(hold.signal.reason).toMatchObject(LOST);
        expect(hold.isHeld).toBe(false);
        expect(() => hold.assertHeld()).toThrow(expect.objectContaining(LOST));
        expect(await failure(hold.extend(1_000))).toMatchObject(LOST);
      }
      expect(a.heard("lost").filter(({ lockName }) => lockName === lock.name).length).toBeGreaterThan(0);
      for (const { reason } of a.heard("lost")) expect(reason).toBe("closed");
    },
  );

  row(
    "the unlock of a hold that it ended resolves, however often and from wherever [§1 close-ends-holds]",
    async (place) => {
      const { lock, client } = place;
      const bare = await lock.lock();
      const nested = await lock.lock({ owner: bare });
      await client.close({ timeout: 0 });
      for (const hold of [bare, nested]) {
        await hold.unlock();
        await hold.unlock();
        await hold[Symbol.asyncDispose]();
      }
    },
  );

  row(
    "a run that goes on over it rejects LOCK_LOST with its result; its own error wins [§1 close-ends-holds]",
    async (place) => {
      const { lock, a } = place;
      const run = lock.run(async () => {
        await a.close({ timeout: 0 });
        return 1;
      });
      expect(await failure(run)).toMatchObject({ ...LOST, result: 1 });
      const again = openVirtual(place.kind);
      const mine = new Error("mine");
      const failing = again.lock.run(async () => {
        await again.a.close({ timeout: 0 });
        throw mine;
      });
      expect(await failure(failing)).toBe(mine);
    },
  );

  row(
    "a closed client renews nothing and has no timer, not for presence nor for long holds [§1 close] [B72]",
    { client: { presence: true, warnAfter: 3_600_000 } },
    async (place) => {
      const { lock, excluded, a, b, server, pass } = place;
      await lock.lock();
      const waiting = watch(b.client.getLock(`${NAME}~~`).lock());
      await waiting.promise;
      const blocked = watch(excluded.lock());
      const permits = a.client.getPermitExpirableSemaphore("permits");
      await permits.trySetPermits(1);
      await permits.acquire();
      await pass(2_000);
      for (const client of [...a.clients, ...b.clients]) await client.close({ timeout: 0 });
      expect(blocked.outcome).toBe("CLIENT_CLOSED");
      server.took();
      expect(server.clock.timers).toBe(0);
      await pass(60_000);
      expect(server.took()).toEqual([]);
      server.delete("permits");
    },
  );
});

describe("await using", () => {
  row(
    "of a hold gives it back, with the errors of unlock, and null is fine [§2 hold-face]",
    async ({ lock, excluded, view }) => {
      {
        await using hold = await lock.lock();
        await using none = await excluded.tryLock();
        expect([hold.isHeld, none]).toEqual([true, null]);
      }
      expect(await view.keys()).toEqual([]);
      const error = await failure(async () => {
        await using hold = await lock.lock();
        await view.wipe();
        expect(hold.isHeld).toBe(true);
      });
      expect(error).toMatchObject({ code: "LOCK_LOST" });
    },
  );
});
