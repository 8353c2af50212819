/** The owner of a hold (a scope, a run, a named owner), and which holds an unlock by each reaches. In virtual time. */
import { describe, expect, test as plain } from "vitest";
import { type Hold, Lock, MultiLock } from "../../src/index.js";
import { byName, KINDS } from "../contract/kinds.js";
import { deferred, failure, NAME, ORDERS, sceneOf, testIn, testInScope, watch } from "./scene.js";

describe.each(byName(KINDS))("%s", (_, kind) => {
  const open = () => sceneOf(kind, { commandTimeout: 1_000 });
  const test = testIn(open);
  const testOutside = test;
  const notOwner = (text: string) => ({
    code: "NOT_OWNER",
    lockName: NAME,
    message: expect.stringContaining(text) as string,
  });

  describe("lock.unlock()", () => {
    const test = testInScope(open);

    test("in a scope gives back the innermost hold that lock() or tryLock() took there", async ({ lock }) => {
      const outer = await lock.lock();
      const inner = await lock.tryLock();
      await lock.unlock();
      expect([outer.isHeld, inner?.isHeld]).toEqual([true, false]);
      expect(await failure(inner?.unlock() as Promise<void>)).toMatchObject(
        notOwner("given back by lock.unlock()"),
      );
      await lock.unlock();
      expect(outer.isHeld).toBe(false);
      expect(await failure(lock.unlock())).toMatchObject(
        notOwner("nothing to unlock: this owner has no open"),
      );
    });

    test("passes over holds that were given back by themselves", async ({ lock }) => {
      const holds = [await lock.lock(), await lock.lock(), await lock.lock(), await lock.lock()];
      const left = () => holds.map(({ isHeld }) => isHeld);
      await holds[1]?.unlock();
      await lock.unlock();
      expect(left()).toEqual([true, false, true, false]);
      await lock.unlock();
      expect(left()).toEqual([true, false, false, false]);
      await holds[0]?.unlock();
      expect(await failure(lock.unlock())).toMatchObject({ code: "NOT_OWNER" });
    });

    test("passes over a hold of a run, whether inside or outside of it", async ({ lock }) => {
      await lock.run(async () => {
        expect(await failure(lock.unlock())).toMatchObject(
          notOwner("A run() gives its hold back by itself when its function ends"),
        );
        const bare = await lock.lock();
        const inRun = await lock.run((hold) => hold.isHeld);
        expect(inRun).toBe(true);
        await lock.unlock();
        expect(bare.isHeld).toBe(false);
      });
      const text = (await failure(lock.unlock())).message;
      expect(text).not.toContain("A run() gives");
    });

    testOutside("outside a scope never guesses, and says what this client holds", async (place) => {
      const { lock, a, server } = place;
      const free = await failure(lock.unlock());
      expect(free).toMatchObject(notOwner("unlock() outside a scope does not know whose hold to give back"));
      expect(free.message).toContain("call hold.unlock() of what lock() resolved with");
      expect(free.message).not.toContain("bare lock()");
      const other = await kind.make(a.client, "other").lock();
      const brief = await lock.lock({ lease: 1_000 });
      server.clock.moveTo(1_000);
      expect((await failure(lock.unlock())).message).not.toContain("bare lock()");
      expect(brief.isHeld).toBe(false);
      await other.unlock();
      const hold = await lock.lock();
      const bare = await failure(lock.unlock());
      expect(bare.message).toContain("This client holds it by a bare lock()");
      await hold.unlock();
      await lock.run(async () => {
        expect((await failure(lock.unlock())).message).not.toContain("bare lock()");
      });
    });

    test("of a call that is still under way is refused", async ({ lock, rival, settle }) => {
      const theirs = await rival.lock();
      const call = watch(lock.lock());
      expect(await failure(lock.unlock())).toMatchObject(
        notOwner("still under way; await it before unlock()"),
      );
      await theirs.unlock();
      await settle();
      expect(call.state).toBe("resolved");
      await lock.unlock();
    });

    test.for(ORDERS.map((order) => [order.join(", "), order] as const))(
      "knows no call that has ended, in whatever order: %s",
      async ([, order], { lock, rival, settle }) => {
        const theirs = await rival.lock();
        const controllers = [0, 1, 2].map(() => new AbortController());
        const calls = controllers.map(({ signal }) => watch(lock.lock({ signal })));
        await settle();
        for (const which of order) {
          expect((await failure(lock.unlock())).message).toContain("still under way");
          controllers[which]?.abort(which);
          await settle();
        }
        expect(calls.map(({ outcome }) => outcome)).toEqual([0, 1, 2]);
        expect((await failure(lock.unlock())).message).toContain("nothing to unlock");
        await theirs.unlock();
      },
    );

    test("of a run that is under way is not refused for that", async ({ lock, rival, settle }) => {
      const theirs = await rival.lock();
      const run = watch(lock.run(() => 1));
      await settle();
      expect((await failure(lock.unlock())).message).toContain("nothing to unlock");
      await theirs.unlock();
      await settle();
      expect(run.outcome).toBe(1);
    });

    testOutside("of another owner that is named reaches its holds", async ({ lock, a }) => {
      const owner = a.client.newOwner();
      const hold = await lock.lock({ owner });
      expect(await failure(lock.unlock({ owner: a.client.newOwner() }))).toMatchObject({ code: "NOT_OWNER" });
      const again = await lock.lock({ owner: hold });
      await lock.unlock({ owner: hold });
      expect([hold.isHeld, again.isHeld]).toEqual([true, false]);
      await lock.unlock({ owner });
      expect(hold.isHeld).toBe(false);
      // A hold still names its owner after its unlock.
      const next = await lock.lock({ owner: hold });
      await lock.unlock({ owner });
      expect(next.isHeld).toBe(false);
    });
  });

  test("isHeldByCurrentOwner and getHoldCount ask the server for an owner with holds, and nobody for others", async (place) => {
    const { lock, a, server } = place;
    await a.client.scope(async () => {
      await lock.lock();
      server.took();
      expect(await lock.getHoldCount()).toBe(1);
      expect(await lock.isHeldByCurrentOwner()).toBe(true);
      expect(server.took()).toHaveLength(2);
      server.delete();
      expect(await lock.isHeldByCurrentOwner()).toBe(false);
      await a.client.scope(async () => {
        server.took();
        expect(await lock.isHeldByCurrentOwner()).toBe(false);
        expect(await lock.getHoldCount()).toBe(0);
        expect(server.took()).toEqual([]);
      });
    });
    expect(await lock.getHoldCount()).toBe(0);
    const wrong = await failure(lock.getHoldCount({ wait: 1 } as never));
    expect(wrong).toBeInstanceOf(TypeError);
    expect(wrong.message).toBe('getHoldCount: unknown option "wait"; it takes owner');
  });

  test("isLocked and remainTimeToLive tell of whoever holds it", async ({ lock, server }) => {
    expect([await lock.isLocked(), await lock.remainTimeToLive()]).toEqual([false, -2]);
    const hold = await lock.lock({ lease: 4_000 });
    await server.advance(1_000);
    expect([await lock.isLocked(), await lock.remainTimeToLive()]).toEqual([true, 3_000]);
    await hold.unlock();
    expect(await lock.isLocked()).toBe(false);
  });

  test("currentHold is the innermost hold of the current owner that is still held", async (place) => {
    const { lock, a, advance } = place;
    expect(lock.currentHold()).toBeNull();
    const bare = await lock.lock();
    expect(lock.currentHold()).toBeNull();
    await bare.unlock();
    await a.client.scope(async () => {
      expect(lock.currentHold()).toBeNull();
      const first = await lock.lock();
      const second = await lock.lock({ lease: 2_000 });
      expect(lock.currentHold()).toBe(second);
      await a.client.scope(() => expect(lock.currentHold()).toBeNull());
      await advance(2_000);
      expect(lock.currentHold()).toBe(first);
      await first.unlock();
      expect(lock.currentHold()).toBeNull();
    });
    const owner = a.client.newOwner();
    const named = await lock.lock({ owner });
    await owner.scope(() => expect(lock.currentHold()).toBe(named));
    await named.unlock();
  });

  describe("run", () => {
    test("takes the lock, gives its hold to the function, and gives it back", async ({ lock, server }) => {
      let seen: Hold | undefined;
      const value = await lock.run(async (hold) => {
        seen = hold;
        expect(hold.isHeld).toBe(true);
        expect(lock.currentHold()).toBe(hold);
        expect(server.hash()).toEqual(kind.fields(hold.ownerId, 1));
        return "done";
      });
      expect(value).toBe("done");
      expect(seen?.isHeld).toBe(false);
    });

    test("re-enters what encloses it, and so do bare calls inside", async ({ lock, server }) => {
      await lock.run(async (outer) => {
        await lock.run(async (inner) => {
          expect(inner.ownerId).toBe(outer.ownerId);
          const bare = await lock.lock();
          expect(server.hash()).toEqual(kind.fields(outer.ownerId, 3));
          await bare.unlock();
        });
        expect(server.hash()).toEqual(kind.fields(outer.ownerId, 1));
      });
    });

    test("what the function throws wins, also over a loss", async ({ lock, server }) => {
      const error = new Error("mine");
      const fails = lock.run(() => {
        throw error;
      });
      expect(await failure(fails)).toBe(error);
      const both = lock.run(async () => {
        server.delete();
        throw error;
      });
      expect(await failure(both)).toBe(error);
    });

    test("a loss before the end is told, with what the function returned", async (place) => {
      const { lock, server, a, advance } = place;
      a.listen("error", "lost");
      const early = lock.run(
        async () => {
          await advance(1_000);
          return 42;
        },
        { lease: 1_000 },
      );
      expect(await failure(early)).toMatchObject({ code: "LOCK_LOST", reason: "expired", result: 42 });
      const atEnd = lock.run(async () => {
        server.delete();
        return 43;
      });
      expect(await failure(atEnd)).toMatchObject({ code: "LOCK_LOST", reason: "expired", result: 43 });
      expect(a.heard("error")).toEqual([]);
    });

    test("resolves when only its release gets no answer, which is told by `error` and goes on", async (place) => {
      const { lock, a } = place;
      a.listen("error");
      let ownerId = "";
      const run = watch(
        lock.run((hold) => {
          ownerId = hold.ownerId;
          a.keep("requests");
          return 1;
        }),
      );
      await place.advance(999);
      expect(run.outcome).toBe("pending");
      await place.advance(1);
      expect(run.outcome).toBe(1);
      expect(a.heard("error")).toMatchObject([
        { lockName: NAME, kind: kind.kind, ownerId, cause: { code: "UNAVAILABLE" } },
      ]);
      await a.letGo();
    });

    test("gives nothing back when the function did", async ({ lock, server }) => {
      server.took();
      expect(await lock.run((hold) => hold.unlock())).toBeUndefined();
      expect(server.took().filter((name) => /release|pass/.test(name))).toHaveLength(1);
    });

    test("runs its function as the owner that it names", async ({ lock, a }) => {
      const owner = a.client.newOwner();
      const outer = await lock.lock({ owner });
      await lock.run(
        async (hold) => {
          expect(hold.ownerId).toBe(outer.ownerId);
          const other = a.client.getLock("other");
          const first = await other.lock();
          expect((await other.lock()).ownerId).toBe(first.ownerId);
          await other.unlock();
          await other.unlock();
        },
        { owner },
      );
      await outer.unlock();
    });

    test("calls from a context that outlives it are outside", async ({ lock, rival }) => {
      const later = deferred();
      let call: Promise<Hold | null> | undefined;
      await lock.run(() => {
        call = later.promise.then(() => lock.tryLock());
      });
      const theirs = await rival.lock();
      later.resolve();
      expect(await call).toBeNull();
      expect(lock.currentHold()).toBeNull();
      await theirs.unlock();
    });

    test("that gets no lock rejects WAIT_TIMEOUT, and its function never runs", async (place) => {
      const { lock, rival, advance } = place;
      const theirs = await rival.lock();
      let ran = 0;
      const run = watch(lock.run(() => ran++, { wait: 500 }));
      await advance(499);
      expect(run.outcome).toBe("pending");
      await advance(1);
      expect(run.error).toMatchObject({ code: "WAIT_TIMEOUT", waited: 500, lockName: NAME });
      expect(ran).toBe(0);
      expect(await failure(lock.run(() => ran++, { wait: 0 }))).toMatchObject({
        code: "WAIT_TIMEOUT",
        waited: 0,
      });
      await theirs.unlock();
    });
  });

  test("a wait that is over names who holds it; a single try does not ask", async (place) => {
    const { lock, rival, advance, server } = place;
    const theirs = await rival.lock();
    const call = watch(lock.lock({ wait: 2_000 }));
    await advance(2_000);
    expect((call.error as Error).message).toContain("held by");
    server.took();
    const single = await failure(lock.lock({ wait: 0 }));
    expect(single.message).not.toContain("held by");
    expect(server.took()).toHaveLength(1);
    await theirs.unlock();
  });

  test.for([
    ["lock with a wait below 0", (lock: Lock) => lock.lock({ wait: -1 }), RangeError, /./],
    ["lock with a lease of 0", (lock: Lock) => lock.lock({ lease: 0 }), RangeError, /./],
    [
      "lock with an unknown option",
      (lock: Lock) => lock.lock({ leas: 1 } as never),
      TypeError,
      /^lock: .*leas/,
    ],
    ["lock with no signal", (lock: Lock) => lock.lock({ signal: {} as never }), TypeError, /./],
    ["lock with no owner", (lock: Lock) => lock.lock({ owner: {} as never }), TypeError, /./],
    [
      "tryLock with an object for a wait",
      (lock: Lock) => lock.tryLock({ wait: 1 } as never),
      TypeError,
      /^tryLock takes tryLock\(wait, lease, \{ signal, owner \}\), in Redisson's order/,
    ],
    ["tryLock with null for a wait", (lock: Lock) => lock.tryLock(null as never), TypeError, /^wait must be/],
    [
      "tryLock with a wait among its options",
      (lock: Lock) => lock.tryLock(0, 1, { wait: 1 } as never),
      TypeError,
      /^tryLock: .*wait/,
    ],
    ["tryLock with a lease below 1", (lock: Lock) => lock.tryLock(0, 0.5), RangeError, /./],
    ["run without a function", (lock: Lock) => lock.run(1 as never), TypeError, /^fn must be a function/],
    [
      "run with an unknown option",
      (lock: Lock) => lock.run(() => 1, { waits: 1 } as never),
      TypeError,
      /^run: .*waits/,
    ],
    [
      "unlock with an unknown option",
      (lock: Lock) => lock.unlock({ wait: 1 } as never),
      TypeError,
      /^unlock: .*wait/,
    ],
    ["unlock with no owner", (lock: Lock) => lock.unlock({ owner: 1 as never }), TypeError, /./],
  ])("%s is refused, which says why, and nothing is sent", async ([, call, type, text], { lock, server }) => {
    const error = await failure(call(lock));
    expect(error).toBeInstanceOf(type);
    expect(error.message).toMatch(text);
    expect(server.ran).toEqual([]);
  });

  test("extend takes a lease and nothing else", async ({ lock, server }) => {
    const hold = await lock.lock();
    server.took();
    for (const [lease, type] of [
      [undefined, TypeError],
      [0, RangeError],
      ["1", TypeError],
    ] as const)
      expect(await failure(hold.extend(lease as never))).toBeInstanceOf(type);
    expect((await failure(hold.extend(undefined as never))).message).toBe("lease must be a number");
    expect(server.took()).toEqual([]);
    await hold.unlock();
  });

  test("a signal that has aborted sends nothing; one that aborts ends the wait with its reason", async (place) => {
    const { lock, rival, server, a, advance } = place;
    a.listen("gaveUp");
    const aborted = AbortSignal.abort("before");
    const calls: Promise<unknown>[] = [
      lock.lock({ signal: aborted }),
      lock.tryLock(0, 1, { signal: aborted }),
      lock.run(() => 1, { signal: aborted }),
    ];
    expect(await Promise.all(calls.map((call) => call.catch((reason: unknown) => reason)))).toEqual([
      "before",
      "before",
      "before",
    ]);
    expect(server.ran).toEqual([]);
    const theirs = await rival.lock();
    const controller = new AbortController();
    const call = watch(lock.lock({ signal: controller.signal }));
    await advance(700);
    controller.abort("enough");
    await server.settle();
    expect(call.outcome).toBe("enough");
    expect(a.heard("gaveUp").at(-1)).toMatchObject({ reason: "abort", waited: 700, lockName: NAME });
    await theirs.unlock();
  });

  test("NOT_OWNER says what happened and what to do, and no more", async ({ lock, a }) => {
    const end = /\. See docs\/guide\.md#not_owner$/;
    expect((await failure(lock.unlock())).message.replace(end, "")).toBe(
      `lock "${NAME}": unlock() outside a scope does not know whose hold to give back; ` +
        "call hold.unlock() of what lock() resolved with, or have lock() and unlock() inside one client.scope()",
    );
    expect((await failure(a.client.scope(() => lock.unlock()))).message.replace(end, "")).toBe(
      `lock "${NAME}": nothing to unlock: this owner has no open lock() or tryLock() of this lock; ` +
        "call hold.unlock() of another's",
    );
  });

  test("a run that names an owner has ended for calls that outlive its function", async ({ lock, a }) => {
    const other = a.client.getLock("other");
    const owner = a.client.newOwner();
    const held = await other.lock({ owner });
    const later = deferred();
    let call: Promise<Hold | null> | undefined;
    await lock.run(
      () => {
        call = later.promise.then(() => other.tryLock());
      },
      { owner },
    );
    later.resolve();
    expect(await call).toBeNull();
    await held.unlock();
  });
});

plain.each([[undefined], [{}]])("locks are made by a client, not by new: of %j", (table) => {
  const text = "locks are made by a LockClient: client.getLock(name) and its like, not by new";
  expect(() => new Lock(table as never, {} as never)).toThrow(new TypeError(text));
});

plain.each([[undefined], [null], ["job"], [{}]])("a member of a group is a lock, not %j", (member) => {
  const text = "a member must be a lock of a LockClient; of a read-write lock, one of its sides";
  expect(() => new MultiLock(member as never)).toThrow(new TypeError(text));
});
