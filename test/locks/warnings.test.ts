/**
 * Warnings of two mistakes that no error can report: a call waits for a bare hold of its own async tree, or the program
 * drops a bare hold that it has not given back. In virtual time, except that the engine collects garbage when it likes.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect } from "vitest";
import { systemClock } from "../../src/base/clock.js";
import { type Hold, type Lock, MultiLock, RedLock } from "../../src/index.js";
import { BareCalls, type WatchedCall } from "../../src/locks/bare-calls.js";
import { letGo } from "../support/kept-holds.js";
import { until } from "../support/until.js";
import { deferred, failure, NAME, type Scene, scene, testIn, watch } from "./scene.js";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

type Warning = Error & { code?: string };

const LONG = 600_000;

interface Place extends Scene {
  readonly lock: Lock;
  /** The warnings so far. */
  readonly warnings: Warning[];
}

const open = (): Place => {
  const place = scene({ watchdogTimeout: LONG });
  return { ...place, lock: place.a.client.getLock(NAME), warnings: [] };
};

const test = testIn(open, async ({ warnings }, body) => {
  const listener = (warning: Warning) => {
    if (warning.name === "HoldfastWarning") warnings.push(warning);
  };
  process.on("warning", listener);
  try {
    await body();
  } finally {
    process.off("warning", listener);
  }
});

type Three = [Lock, Lock, Lock];

/** One lock on each of three masters; the first is that of `place`, whose clock is that of groups. */
async function onThreeMasters(
  place: Place,
  act: (locks: Three, ofStrangers: Three) => Promise<void>,
): Promise<void> {
  const others = [scene({ watchdogTimeout: LONG }), scene({ watchdogTimeout: LONG })];
  const places = [place, ...others];
  const locksOf = (who: "a" | "b") => places.map((each) => each[who].client.getLock(NAME)) as Three;
  await act(locksOf("a"), locksOf("b"));
  for (const { a, b } of others) await Promise.all([a.client.close(), b.client.close()]);
}

test("a call of a closed client is not noted, so no note outlives the clients [B137]", () => {
  const call = (): WatchedCall => ({ isBare: true, lease: undefined, owner: undefined, begun: LONG });
  const [open, closed] = [new BareCalls(systemClock), new BareCalls(systemClock)];
  closed.close();
  const calls = [open, closed].map((each) => {
    const made = call();
    each.begin(made, NAME, failure);
    return made.noted !== undefined;
  });
  open.close();
  expect(calls).toEqual([true, false]);
});

describe("a call that waits for a bare hold of its own async tree", () => {
  const CALLS: [string, (place: Place) => Promise<unknown>][] = [
    ["lock", ({ lock }) => lock.lock()],
    ["tryLock", ({ lock }) => lock.tryLock(LONG)],
    ["run", ({ lock }) => lock.run(() => 1)],
    ["lock of a scope", ({ a, lock }) => a.client.scope(() => lock.lock())],
  ];

  test.for(CALLS)("is warned of after 10 s: %s", async ([, call], place) => {
    const { warnings } = place;
    const hold = await place.lock.lock();
    const waiting = watch(call(place));
    await place.advance(9_999);
    expect(warnings).toEqual([]);
    await place.advance(1);
    expect(warnings).toMatchObject([
      {
        code: "HOLDFAST_OWN_HOLD",
        message: expect.stringMatching(
          /^lock "job": a call has waited 10 s for a bare hold of its own async tree, which may be waiting for itself\. Bare calls do not re-enter: use run\(\) or client\.scope\(\), or name \{ owner: hold \}\. At /,
        ),
      },
    ]);
    await hold.unlock();
    await place.settle();
    expect(waiting.state).toBe("resolved");
    await place.advance(60_000);
    expect(warnings).toHaveLength(1);
    await place.a.client.close({ timeout: 0 });
  });

  test("is warned of once for each place in the code", async ({ warnings, lock, advance }) => {
    for (let i = 0; i < 3; i++) {
      const hold = await lock.lock();
      await failure(Promise.all([lock.lock({ wait: 11_000 }), advance(11_000)]));
      await hold.unlock();
    }
    expect(warnings).toHaveLength(1);
  });

  test("is found past holds of other locks, those that were given back, and calls that got none", async (place) => {
    const { warnings, lock, a, advance } = place;
    const hold = await lock.lock();
    const other = await a.client.getLock("other").lock();
    const third = await a.client.getLock("third").lock();
    expect(await lock.tryLock()).toBeNull();
    await other.unlock();
    const waiting = watch(lock.lock({ wait: 11_000 }));
    await advance(11_000);
    expect(waiting.outcome).toBe("WAIT_TIMEOUT");
    expect(warnings).toHaveLength(1);
    expect(warnings[0]?.message).toContain(`lock "${NAME}"`);
    await third.unlock();
    await hold.unlock();
  });

  const GROUPS: [
    string,
    (get: (name: string) => Lock) => [held: Lock | MultiLock, wanted: () => Promise<Hold>],
  ][] = [
    [
      "a lock whose group is held",
      (get) => [new MultiLock(get("x"), get("y")), () => get("y").lock({ wait: 11_000 })],
    ],
    [
      "a group of which a lock is held",
      (get) => [get("y"), () => new MultiLock(get("x"), get("y")).lock({ wait: 11_000 })],
    ],
    [
      "a group that shares a lock with a held one",
      (get) => [
        new MultiLock(get("x"), get("y")),
        () => new MultiLock(get("y"), get("z")).lock({ wait: 11_000 }),
      ],
    ],
  ];

  test.for(GROUPS)("is warned of where it wants %s [B240]", async ([, locks], { a, warnings, advance }) => {
    const [held, call] = locks((name) => a.client.getLock(name));
    const hold = await held.lock();
    const waiting = watch(call());
    await advance(12_000);
    expect(waiting.outcome).toBe("WAIT_TIMEOUT");
    expect(warnings).toMatchObject([{ code: "HOLDFAST_OWN_HOLD" }]);
    expect(warnings[0]?.message).toContain(`lock "${held.name}"`);
    await hold.unlock();
  });

  test("is warned of where it wants a RedLock of which its tree holds more than can be spared [B240]", async (place) => {
    const { warnings, advance } = place;
    await onThreeMasters(place, async ([x, y, z]) => {
      const hold = await x.lock();
      const innocent = watch(new RedLock(x, y, z).lock({ wait: 11_000 }));
      await advance(12_000);
      await innocent.value?.unlock();
      expect(warnings).toEqual([]);
      const second = await y.lock();
      const waiting = watch(new RedLock(x, y, z).lock({ wait: 11_000 }));
      await advance(12_000);
      expect(waiting.outcome).toBe("WAIT_TIMEOUT");
      expect(warnings).toMatchObject([{ code: "HOLDFAST_OWN_HOLD" }]);
      await second.unlock();
      await hold.unlock();
    });
  });

  const INNOCENT: [string, (place: Place) => Promise<unknown>][] = [
    [
      "one that is over in time",
      async ({ lock, advance }) => {
        const hold = await lock.lock();
        const waiting = watch(lock.lock());
        await advance(9_000);
        await hold.unlock();
        await advance(9_000);
        return waiting.value?.unlock();
      },
    ],
    [
      "one whose hold was given back meanwhile, and that waits for somebody else",
      async ({ lock, a, b, advance }) => {
        const owner = a.client.newOwner();
        const hold = await lock.lock();
        const waiting = watch(lock.lock({ owner, wait: 12_000 }));
        const theirs = watch(b.client.getLock(NAME).lock());
        await advance(100);
        await hold.unlock();
        await advance(12_000);
        await waiting.value?.unlock();
        return theirs.value?.unlock();
      },
    ],
    [
      "one that names the owner of the hold",
      async ({ lock, advance }) => {
        const hold = await lock.lock();
        const again = await lock.lock({ owner: hold });
        await advance(11_000);
        await again.unlock();
        return hold.unlock();
      },
    ],
    [
      "one that waits for its turn, in a scope that has a bare hold",
      async ({ lock, a, advance }) =>
        a.client.scope(async () => {
          const hold = await lock.lock();
          const end = deferred();
          const runs = [lock.run(() => end.promise), lock.run(() => 1)];
          await advance(11_000);
          end.resolve();
          await Promise.all(runs);
          await hold.unlock();
        }),
    ],
    [
      "one that waits for a stranger",
      async ({ lock, b, advance }) => {
        const theirs = await b.client.getLock(NAME).lock();
        const waiting = watch(lock.lock({ wait: 11_000 }));
        await advance(11_000);
        expect(waiting.outcome).toBe("WAIT_TIMEOUT");
        return theirs.unlock();
      },
    ],
    [
      "one that waits for a stranger, after its own tree gave the lock back",
      async ({ lock, b, advance }) => {
        const hold = await lock.lock();
        await hold.unlock();
        const theirs = await b.client.getLock(NAME).lock();
        const waiting = watch(lock.lock({ wait: 11_000 }));
        await advance(11_000);
        expect(waiting.outcome).toBe("WAIT_TIMEOUT");
        return theirs.unlock();
      },
    ],
    [
      "one that waits for the hold of a run around it",
      async ({ lock, a, advance }) =>
        lock.run(async () => {
          const waiting = watch(a.client.scope(() => lock.lock({ wait: 11_000 })));
          await advance(11_000);
          expect(waiting.outcome).toBe("WAIT_TIMEOUT");
        }),
    ],
    [
      "one that waits for the hold of a sibling, whose call was under way as its own task began",
      async ({ lock, a, advance }) => {
        const theirs = lock.lock();
        await (async () => {
          const other = await a.client.getLock("other").lock();
          const waiting = watch(lock.lock({ wait: 11_000 }));
          await advance(11_000);
          expect(waiting.outcome).toBe("WAIT_TIMEOUT");
          await other.unlock();
        })();
        await (await theirs).unlock();
      },
    ],
    [
      "siblings that wait for each other",
      async ({ lock, advance }) => {
        const siblings = Array.from({ length: 3 }, async () => watch(lock.lock({ wait: 25_000 })));
        const calls = await Promise.all(siblings);
        await advance(11_000);
        for (const { value } of calls) await value?.unlock();
        await advance(11_000);
        for (const { value } of calls) if (value?.isHeld) await value.unlock();
        await advance(11_000);
        for (const { value } of calls) if (value?.isHeld) await value.unlock();
      },
    ],
    [
      "one for a RedLock that can spare the master which its tree holds",
      async (place) =>
        onThreeMasters(place, async ([x, y, z], strangers) => {
          const hold = await x.lock();
          const theirs = await strangers[1].lock();
          const waiting = watch(new RedLock(x, y, z).lock({ wait: 11_000 }));
          await place.advance(12_000);
          expect(waiting.outcome).toBe("WAIT_TIMEOUT");
          await theirs.unlock();
          await hold.unlock();
        }),
    ],
    [
      "one of a group whose members another group of its tree does not have",
      async ({ a, b, advance }) => {
        const [x, y, z] = ["x", "y", "z"].map((name) => a.client.getLock(name)) as [Lock, Lock, Lock];
        const hold = await new MultiLock(x, y).lock();
        const theirs = await b.client.getLock("z").lock();
        const waiting = watch(new MultiLock(z, a.client.getLock("v")).lock({ wait: 11_000 }));
        await advance(12_000);
        expect(waiting.outcome).toBe("WAIT_TIMEOUT");
        await theirs.unlock();
        await hold.unlock();
      },
    ],
    [
      "one that waits for a hold which a task of another tree took",
      async ({ lock, advance }) => {
        const taken = deferred();
        const end = deferred();
        const task = (async () => {
          await null;
          const hold = await lock.lock();
          taken.resolve();
          await end.promise;
          await hold.unlock();
        })();
        await taken.promise;
        const waiting = watch(lock.lock({ wait: 11_000 }));
        await advance(11_000);
        expect(waiting.outcome).toBe("WAIT_TIMEOUT");
        end.resolve();
        await task;
      },
    ],
  ];

  test.for(INNOCENT)("is not %s", async ([, act], place) => {
    const { warnings } = place;
    await act(place);
    expect(warnings).toEqual([]);
  });

  test("is looked for at the first 100 bare calls, and at as many again a minute later", async (place) => {
    const { warnings, a, advance } = place;
    const lock = a.client.getLock("often");
    const hold = async (): Promise<Hold> => lock.lock({ lease: LONG });
    for (let i = 0; i < 100; i++) await (await hold()).unlock();
    const mine = await a.client.getLock("mine").lock();
    await failure(Promise.all([a.client.getLock("mine").lock({ wait: 11_000 }), advance(11_000)]));
    expect(warnings).toEqual([]);
    await mine.unlock();
    await advance(49_000);
    const again = await a.client.getLock("mine").lock();
    await failure(Promise.all([a.client.getLock("mine").lock({ wait: 11_000 }), advance(11_000)]));
    expect(warnings).toHaveLength(1);
    await again.unlock();
  });

  test("is found by one client also if another looks no more", async ({ warnings, a, b, advance }) => {
    const mine = await b.client.getLock("mine").lock();
    for (let i = 0; i < 100; i++) await (await a.client.getLock("often").lock({ lease: LONG })).unlock();
    await failure(Promise.all([b.client.getLock("mine").lock({ wait: 11_000 }), advance(11_000)]));
    expect(warnings).toHaveLength(1);
    await mine.unlock();
  });
});

describe("a bare hold without a lease that is garbage before its unlock", () => {
  /** Takes a hold, and keeps no reference to it. */
  async function drop(take: () => Promise<Hold | null>, { advance }: Scene): Promise<void> {
    await (async () => void (await take()))();
    // After this time the client watches the hold.
    await advance(250);
  }

  async function untilFree(lock: Lock): Promise<void> {
    await until("the lock is free", async () => {
      collect();
      return !(await lock.isLocked());
    });
  }

  test("is given back, and warned of once for each place", async (place) => {
    const { warnings } = place;
    letGo();
    const { lock } = place;
    for (let i = 0; i < 2; i++) {
      await drop(() => lock.lock(), place);
      await untilFree(lock);
    }
    await drop(() => lock.tryLock(), place);
    await untilFree(lock);
    await until("the warnings", () => warnings.length === 2);
    for (const warning of warnings)
      expect(warning).toMatchObject({
        code: "HOLDFAST_DROPPED_HOLD",
        message: expect.stringMatching(
          /^lock "job": a bare hold without a lease was garbage-collected before its unlock, and was given back\. Keep what lock\(\) resolves with and call its unlock\(\), or use run\(\) or client\.scope\(\)\. At /,
        ),
      });
  });

  test("is also one of a group whose members were asked for, though their owner was known", async (place) => {
    letGo();
    const { lock, warnings } = place;
    const take = () =>
      lock.run(async () => {
        const hold = await new MultiLock(lock).lock();
        expect(hold.members[0]?.isHeld).toBe(true);
        return hold;
      });
    await drop(take, place);
    await untilFree(lock);
    await until("the warning", () => warnings.length === 1);
    expect(warnings).toMatchObject([{ code: "HOLDFAST_DROPPED_HOLD" }]);
  });

  test("is also one of a RedLock that has given back a minority of its members [B239]", async (place) => {
    letGo();
    await onThreeMasters(place, async ([lock, ...more]) => {
      const red = new RedLock(lock, ...more);
      const take = async () => {
        const hold = await red.lock();
        await until("all have granted it", () => hold.members.length === 3);
        await hold.members[2]?.unlock();
        expect(hold.isHeld).toBe(true);
        return hold;
      };
      await drop(take, place);
      await untilFree(lock);
      await until("the warning", () => place.warnings.length === 1);
      expect(place.warnings).toMatchObject([{ code: "HOLDFAST_DROPPED_HOLD" }]);
    });
  });

  test("is not one with a lease, of a named owner, of a run or scope, or whose signal is kept [B184] [B264]", async (place) => {
    const { warnings } = place;
    letGo();
    const { a, advance } = place;
    const lock = (name: string) => a.client.getLock(name);
    const kept = [
      lock("lease"),
      lock("owner"),
      lock("scope"),
      lock("signal"),
      lock("used"),
      lock("member's signal"),
      lock("member used"),
      lock("member's current hold"),
    ] as const;
    const [leased, owned, scoped, heard, used, member, memberUsed, current] = kept;
    const dropped = lock("dropped");
    const owner = a.client.newOwner();
    const signals: (AbortSignal | undefined)[] = [];
    const holds: (Hold | null)[] = [];
    await (async () => {
      await leased.lock({ lease: LONG });
      await owned.lock({ owner });
      await a.client.scope(async () => void (await scoped.lock()));
      signals.push((await heard.lock()).signal);
      signals.push((await new MultiLock(member).lock()).members[0]?.signal);
      // A call that re-enters by `owner: outer` acts for the hold's owner.
      const outer = await used.lock();
      await (await used.lock({ owner: outer })).unlock();
      const [outerMember] = (await new MultiLock(memberUsed).lock()).members;
      await (await memberUsed.lock({ owner: outerMember as Hold })).unlock();
      await current.run(async () => {
        await new MultiLock(current).lock();
        holds.push(current.currentHold());
      });
    })();
    await drop(() => dropped.lock(), place);
    await untilFree(dropped);
    await advance(1);
    expect(await Promise.all(kept.map((one) => one.isLocked()))).toEqual(kept.map(() => true));
    expect(signals.map((signal) => signal?.aborted)).toEqual([false, false]);
    expect(holds.map((hold) => hold?.isHeld)).toEqual([true]);
    expect(warnings).toHaveLength(1);
    await a.client.close({ timeout: 0 });
  });
});
