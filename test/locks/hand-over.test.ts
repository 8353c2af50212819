/** A release while a call of the same process waits: the same command grants the lock to that call. In virtual time. */
import { describe, expect } from "vitest";
import { ReplyError } from "../../src/entries/testing/reply.js";
import type { Hold, LockOptions } from "../../src/index.js";
import { byName, KINDS, type Kind, PLAIN } from "../contract/kinds.js";
import {
  failure,
  type KindScene,
  NAME,
  type Scene,
  sceneOf,
  sidesOf,
  testIn,
  type Watched,
  watch,
} from "./scene.js";

const COMMAND_TIMEOUT = 1_000;
/** Long enough that the poll wakes no waiter. */
const NEVER = 600_000;
/** The kinds of lock with a hand-over by one command. */
const PASSED = KINDS.filter(({ name }) => ["lock", "fenced lock", "write side"].includes(name));

interface Line extends KindScene {
  /** The hold that has the lock. */
  readonly giver: Hold;
  /** The call that waits for the lock, and the call behind it. */
  readonly successor: Watched<Hold>;
  readonly next: Watched<Hold>;
  /** Aborts the successor's call. */
  readonly controller: AbortController;
}

/** Lets the other client's requests arrive. Then the calls get the lock one after the other, the first one at once. */
async function expectOrder(place: Scene, ...calls: Watched<Hold>[]): Promise<void> {
  await place.b.letGo();
  for (const call of calls) {
    expect(call.value?.isHeld).toBe(true);
    await call.value?.unlock();
    await place.advance(60);
  }
}

describe.each(byName(PASSED))("%s", (_, kind) => {
  /** A holder, and two calls that wait behind it in the same process. */
  const lineUp = async (options: LockOptions = {}): Promise<Line> => {
    const place = sceneOf(kind, { commandTimeout: COMMAND_TIMEOUT, pollCap: NEVER, watchdogTimeout: NEVER });
    place.a.listen("acquired", "released", "lost", "error");
    const { lock, rival } = place;
    for (const each of [lock, rival]) await (await each.lock()).unlock();
    const giver = await lock.lock({ lease: 500_000 });
    const controller = new AbortController();
    const successor = watch(lock.lock({ signal: controller.signal, ...options }));
    const next = watch(lock.lock());
    await place.settle();
    await place.advance(100);
    place.server.took();
    return { ...place, giver, successor, next, controller };
  };
  /** At the end the calls that are left get the lock one after the other. */
  const test = testIn(lineUp, async ({ successor, next, settle }, body) => {
    await body();
    for (const call of [successor, next]) {
      await settle();
      await call.value?.unlock();
    }
  });
  const testAlone = testIn(() => sceneOf(kind, { pollCap: NEVER }));

  testAlone("calls of an owner that is being handed the lock re-enter [B97]", async ({ lock, a, settle }) => {
    const owner = a.client.newOwner();
    const giver = await lock.lock();
    const successor = watch(lock.lock({ owner }));
    await settle();
    const given = giver.unlock();
    const beside = [lock.tryLock(0, 60_000, { owner }), lock.lock({ owner, wait: 0 })].map(watch);
    await given;
    await settle();
    const holds = [successor, ...beside].map(({ value }) => value);
    expect(holds.map((hold) => hold?.ownerId)).toEqual(Array(3).fill(successor.value?.ownerId));
    expect(await lock.getHoldCount({ owner })).toBe(3);
    for (const hold of holds) await hold?.unlock();
  });

  testAlone("one that is being handed the lock and gives up does not hold up its owner", async (place) => {
    const { lock, a, settle } = place;
    const owner = a.client.newOwner();
    const controller = new AbortController();
    const giver = await lock.lock();
    const successor = watch(lock.lock({ owner, signal: controller.signal }));
    await settle();
    const given = giver.unlock();
    controller.abort("enough");
    const other = watch(lock.lock({ owner }));
    await given;
    await settle();
    expect([successor.outcome, other.value?.isHeld]).toEqual(["enough", true]);
    await other.value?.unlock();
  });

  test.with({ lease: 200_000 })("one command gives it back and grants it", async (place) => {
    const { giver, successor, server, settle, a } = place;
    await giver.unlock();
    await settle();
    expect(server.took()).toEqual([expect.stringMatching(/\/pass$/)]);
    expect(successor.value?.isHeld).toBe(true);
    expect(successor.value?.ownerId).not.toBe(giver.ownerId);
    expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
    expect(server.ttl()).toBe(200_000);
    expect(successor.value?.remaining).toBe(200_000 * 0.99 - 2);
    expect(a.heard("released").at(-1)).toMatchObject({ ownerId: giver.ownerId });
    expect(a.heard("acquired").at(-1)).toMatchObject({ ownerId: successor.value?.ownerId, waited: 100 });
    server.took();
    await successor.value?.unlock();
    await settle();
    expect(server.took()).toEqual([expect.stringMatching(/\/pass$/)]);
  });

  test("nobody is handed a lock that its owner has by another hold as well", async (place) => {
    const { giver, lock, successor, server, settle } = place;
    const inner = await lock.lock({ owner: giver, lease: 500_000 });
    server.took();
    await inner.unlock();
    await settle();
    expect(successor.outcome).toBe("pending");
    expect(server.took()).toEqual([expect.stringMatching(/\/release$/)]);
    await giver.unlock();
    await settle();
    expect(successor.state).toBe("resolved");
  });

  test("a successor that is aborted before the command is sent is passed over", async (place) => {
    const { giver, successor, next, controller, settle } = place;
    controller.abort("enough");
    await giver.unlock();
    await settle();
    expect(successor.outcome).toBe("enough");
    expect(next.value?.isHeld).toBe(true);
  });

  test.for([
    ["while the requests are on their way", "requests", true],
    ["while the replies are on their way", "replies", true],
    ["right behind the unlock", "requests", false],
  ] as const)("a successor that is aborted %s gets and keeps nothing", async ([, way, isOnItsWay], place) => {
    const { giver, successor, next, controller, settle, a, server } = place;
    a.keep(way);
    const back = watch(giver.unlock());
    if (isOnItsWay) await settle();
    controller.abort("enough");
    await settle();
    expect(successor.outcome).toBe("enough");
    await a.letGo();
    await settle();
    expect(back.outcome).toBeUndefined();
    expect(next.value?.isHeld).toBe(true);
    expect(server.hash()).toEqual(kind.fields(next.value?.ownerId as string, 1));
  });

  test("others who are asked first get it, and the successor stands back for them", async (place) => {
    const { giver, rival, successor, next, settle, advance, b } = place;
    const theirs = watch(rival.lock());
    await settle();
    b.keep("requests");
    await giver.unlock();
    await advance(3);
    expect(successor.outcome).toBe("pending");
    await expectOrder(place, theirs, successor, next);
  });

  testAlone(
    "a waiter whose try is on its way is handed nothing, and stands back for others",
    async (place) => {
      const { lock, rival, a, b, server, settle } = place;
      const giver = await lock.lock();
      a.keep("replies");
      const waiter = watch(lock.lock());
      await settle();
      const refused = a.letGo();
      a.keep("replies");
      await refused;
      const theirs = watch(rival.lock());
      await settle();
      b.keep("requests");
      server.took();
      const back = watch(giver.unlock());
      await settle();
      expect(server.took()).toEqual([expect.stringMatching(/\/release$/)]);
      await a.letGo();
      expect([back.outcome, waiter.outcome]).toEqual([undefined, "pending"]);
      await expectOrder(place, theirs, waiter);
    },
  );

  test.for(["requests", "replies"] as const)(
    "when the %s of the command are late the giver is told in time, and the successor waits on and gets it",
    async (way, place) => {
      const { giver, successor, a, advance, server } = place;
      a.keep(way);
      const back = watch(giver.unlock());
      await advance(COMMAND_TIMEOUT);
      expect(back.outcome).toBe("UNAVAILABLE");
      expect(successor.outcome).toBe("pending");
      await advance(500);
      await a.letGo();
      await advance(10);
      expect(await giver.unlock()).toBeUndefined();
      expect(successor.value?.isHeld).toBe(true);
      expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
    },
  );

  test("a command that is made anew after a refusal that passes hands over to nobody who has left", async (place) => {
    const { giver, successor, next, controller, server, settle, advance } = place;
    const refused: string[] = [];
    server.instead = ({ name }) => {
      if (!name.endsWith("/pass") || refused.length > 0) return undefined;
      refused.push(name);
      throw new ReplyError("LOADING Redis is loading the dataset in memory");
    };
    const back = watch(giver.unlock());
    await settle();
    expect(refused).toHaveLength(1);
    controller.abort("enough");
    await advance(200);
    expect(back.outcome).toBeUndefined();
    expect(successor.outcome).toBe("enough");
    expect(next.value?.isHeld).toBe(true);
    const verbs = server.took().map((name) => name.split("/")[1]);
    expect(verbs).toContain("release");
    expect(verbs).not.toContain("pass");
  });

  test("a command that is sent again, since its answer was lost, hands over once", async (place) => {
    const { giver, successor, next, a, settle, server } = place;
    a.keep("replies");
    const back = watch(giver.unlock());
    await settle();
    await a.reconnect();
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(successor.value?.isHeld).toBe(true);
    expect(next.outcome).toBe("pending");
    expect(server.hash()).toEqual(kind.fields(successor.value?.ownerId as string, 1));
  });

  test("a lock that the giver has no more goes to nobody by its command", async (place) => {
    const { giver, successor, server, settle } = place;
    server.delete();
    expect(await failure(giver.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
    await settle();
    expect(successor.value?.isHeld).toBe(true);
  });

  test.with({ lease: 200_000 }).for([
    ["the answer is late", false],
    ["the process stalls right behind the unlock", true],
  ])("its lease counts from when the command was sent, also if %s", async ([, stalls], place) => {
    const { giver, successor, a, server, advance } = place;
    a.keep("replies");
    const back = watch(giver.unlock());
    if (stalls) server.clock.moveTo(server.clock.mono() + 700);
    else await advance(700);
    await a.letGo();
    expect(back.outcome).toBeUndefined();
    expect(successor.value?.remaining).toBe(200_000 * 0.99 - 2 - 700);
  });

  test.with({ lease: 300 })(
    "a successor whose lease is over before the answer is here gives it on",
    async (place) => {
      const { giver, successor, next, a, settle, advance } = place;
      a.keep("replies");
      const back = watch(giver.unlock());
      await settle();
      await advance(400);
      await a.letGo();
      await advance(10);
      expect(back.outcome).toBeUndefined();
      expect(successor.error).toMatchObject({ code: "LOCK_LOST", reason: "expired" });
      expect(next.value?.isHeld).toBe(true);
    },
  );

  testAlone(
    "a lock that goes from hand to hand is offered to others after some hand-overs, and comes back",
    async (place) => {
      const { lock, rival, server, advance } = place;
      let [grants, isOver] = [0, false];
      const work = async () => {
        while (!isOver) {
          const hold = await lock.lock();
          grants++;
          await new Promise<void>((done) => void server.clock.after(1, done));
          await hold.unlock();
        }
      };
      const workers = [work(), work()];
      await advance(20);
      for (let visits = 0; visits < 3; visits++) {
        const before = grants;
        const theirs = watch(rival.lock());
        for (let ms = 0; ms < 100 && theirs.state === "pending"; ms++) await advance(1);
        expect(theirs.value?.isHeld).toBe(true);
        expect(grants - before).toBeLessThan(40);
        const left = grants;
        await advance(5);
        expect(grants).toBe(left);
        await theirs.value?.unlock();
        await advance(60);
        expect(grants).toBeGreaterThan(left + 20);
      }
      isOver = true;
      await advance(10);
      await Promise.all(workers);
    },
  );

  test("the release of a lock that nobody else waits for is told to nobody of this process by message", async (place) => {
    const { giver, successor, next, settle, server } = place;
    await giver.unlock();
    await settle();
    await successor.value?.unlock();
    await settle();
    await next.value?.unlock();
    await settle();
    expect(server.took().map((name) => name.split("/")[1])).toEqual(["pass", "pass", "release"]);
  });

  testAlone("a run is handed its hold likewise, when it is its turn", async ({ lock, a, settle }) => {
    const order: string[] = [];
    const giver = await lock.lock();
    const runs = ["a", "b"].map((name) => lock.run(() => order.push(name)));
    await a.client.scope(async () => {
      for (const name of ["c", "d"]) runs.push(lock.run(() => order.push(name)));
      await settle();
    });
    await giver.unlock();
    await Promise.all(runs);
    expect(order).toEqual(["a", "b", "c", "d"]);
  });

  test("a successor's owner that is being served otherwise is not handed anything", async (place) => {
    const { giver, successor, next, controller, lock, a, settle } = place;
    controller.abort("enough");
    await settle();
    const owner = a.client.newOwner();
    const first = watch(lock.lock({ owner }));
    const second = watch(lock.lock({ owner }));
    await settle();
    await giver.unlock();
    await settle();
    expect(successor.outcome).toBe("enough");
    await next.value?.unlock();
    await settle();
    expect(first.value?.ownerId).toBe(second.value?.ownerId);
    for (const call of [first, second]) {
      await settle();
      await call.value?.unlock();
    }
  });
});

const test = testIn((options) =>
  sceneOf(PLAIN, { pollCap: NEVER, commandTimeout: COMMAND_TIMEOUT, ...options }),
);

test.with({ replicas: 1 }).for([
  ["listens", true],
  ["does not listen yet", false],
])(
  "a lock with acknowledged grants is handed to nobody, and the next one is told: it %s",
  async ([, listens], { lock, server, settle }) => {
    server.instead = ({ name }) => (name === "WAIT" ? 1 : undefined);
    const giver = watch(lock.lock());
    if (listens) await settle();
    const next = watch(lock.lock());
    await settle();
    server.took();
    await giver.value?.unlock();
    await settle();
    expect(next.value?.isHeld).toBe(true);
    expect(server.took()).toEqual(["lock/release", "lock/acquire"]);
    await next.value?.unlock();
  },
);

test("calls that begin together and are brief hand it on by one command each, and nobody asks in between", async (place) => {
  const { lock, server, settle } = place;
  const calls = [1, 2, 3].map(() => watch(lock.lock()));
  for (const call of calls) {
    await settle();
    await call.value?.unlock();
  }
  await settle();
  expect(server.took()).toEqual(["lock/acquire", "lock/pass", "lock/pass", "lock/release"]);
});

testIn(() => sidesOf({ pollCap: NEVER }))(
  "where both sides of a read-write lock wait here nobody is handed it, and the first writer stands back",
  async (place) => {
    const { read, write, theirWrite, b, advance } = place;
    const giver = await write.lock();
    const calls = [write, read].map((lock) => watch(lock.lock()));
    const theirs = watch(theirWrite.lock());
    await advance(100);
    b.keep("requests");
    await giver.unlock();
    await advance(3);
    await expectOrder(place, theirs, ...calls);
  },
);

const FENCED = KINDS.find(({ name }) => name === "fenced lock") as Kind;

testIn(() => sceneOf(FENCED, { pollCap: NEVER }))(
  "an unlock for whose successor there is no token succeeds, and those who wait are told of it [B124]",
  async ({ lock, server, settle }) => {
    const counter = `redisson_lock_token:{${NAME}}`;
    const giver = await lock.lock();
    const calls = [lock, lock].map((each) => watch(each.lock()));
    await settle();
    server.delete(counter);
    server.execute(["SET", counter, "theirs"]);
    server.took();
    const given = watch(giver.unlock());
    await settle();
    expect(given.outcome).toBeUndefined();
    expect(calls.map(({ outcome }) => outcome)).toEqual(["WRONG_DATA", "WRONG_DATA"]);
    expect(server.took()[0]).toBe("fenced/pass");
  },
);

test("a release that is answered late, when nobody waits here any more, is done", async (place) => {
  const { lock, a, advance } = place;
  const giver = await lock.lock();
  void watch(lock.lock({ wait: 2_000 }));
  await advance(100);
  a.keep("replies");
  void watch(giver.unlock());
  await advance(2_000);
  await a.letGo();
  expect(await giver.unlock()).toBeUndefined();
});

test("owners that call twice at once keep nobody of another process out: nested grants begin no turn [B66]", async (place) => {
  const { a, lock, rival, server, advance } = place;
  let ended = false;
  const owner = async () => {
    while (!ended) {
      await a.client.scope(async () => {
        const holds = await Promise.all([lock.lock(), lock.lock()]);
        await new Promise<void>((resolve) => void server.clock.after(3, resolve));
        for (const hold of holds) await hold.unlock();
      });
    }
  };
  const owners = [1, 2, 3, 4].map(() => watch(owner()));
  await advance(200);
  const theirs = watch(rival.lock());
  await advance(100);
  expect(theirs.value?.isHeld).toBe(true);
  ended = true;
  await theirs.value?.unlock();
  await advance(1_000);
  expect(owners.map(({ state }) => state)).toEqual(owners.map(() => "resolved"));
});
