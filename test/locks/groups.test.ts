/** Groups of locks whose members have clients of their own. In virtual time. */
import { tracingChannel } from "node:diagnostics_channel";
import { describe, expect } from "vitest";
import type { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { ReplyError } from "../../src/entries/testing/reply.js";
import {
  type Hold,
  type HolderInfo,
  type Lock,
  type LockError,
  type LockInfo,
  type MultiHold,
  MultiLock,
  QuorumError,
  type WaiterInfo,
} from "../../src/index.js";
import { deferred, failure, Party, type Scene, Server, testIn, watch } from "./scene.js";

interface Place extends Scene {
  readonly first: Lock;
  readonly last: Lock;
  readonly multi: MultiLock;
}

/** `replicas`: how many must acknowledge what the client of the last member is granted. */
const open = ({ replicas = 0 } = {}): Place => {
  const server = new Server();
  const [a, b] = [new Party(server), new Party(server, { replicas, replicasTimeout: 2_000 })];
  const [first, last] = [a.client.getLock("first"), b.client.getLock("last")];
  const multi = new MultiLock(first, last);
  return {
    server,
    a,
    b,
    first,
    last,
    multi,
    advance: (ms) => server.advance(ms),
    settle: () => server.settle(),
  };
};

/** The group of the same locks by these clients. */
function groupOf(first: Party, last: Party = first): MultiLock {
  return new MultiLock(first.client.getLock("first"), last.client.getLock("last"));
}

describe("with a member whose grants replicas must acknowledge", () => {
  interface Replicated extends Place {
    /** The connection of that member for grants only. */
    readonly grants: MemoryConnection;
  }
  const test = testIn((): Replicated => {
    const place = open({ replicas: 1 });
    const [, grants] = place.b.connections as [MemoryConnection, MemoryConnection];
    return { ...place, grants };
  });

  test.for<[string, (multi: MultiLock) => Promise<unknown>]>([
    ["lock", (multi) => multi.lock({ wait: 200 })],
    ["tryLock", (multi) => multi.tryLock(200)],
    ["run", (multi) => multi.run(() => 1, { wait: 200 })],
  ])("a call waits for them no longer than its wait: %s [B233]", async ([, take], place) => {
    const { b, grants, multi, advance, first } = place;
    b.keep("replies", grants);
    const call = watch(take(multi));
    await advance(199);
    expect(call.outcome).toBe("pending");
    await advance(1);
    expect(call.outcome).toBe("UNAVAILABLE");
    expect(await first.isLocked()).toBe(false);
    await b.letGo();
  });

  test("nor for the undoing of a grant that too few have acknowledged", async (place) => {
    const { b, multi, advance, server } = place;
    server.instead = ({ name }) => (name === "WAIT" ? 0 : undefined);
    b.keep("replies");
    const call = watch(multi.lock({ wait: 200 }));
    await advance(200);
    expect(call.outcome).toBe("UNAVAILABLE");
    await b.letGo();
  });

  test("a call that has waited for its locks meets the end of its wait as one that others kept out", async (place) => {
    const { b, grants, first, multi, advance } = place;
    const theirs = await first.lock();
    const calls = [watch(multi.lock({ wait: 200 })), watch(multi.tryLock(200))];
    await advance(100);
    b.keep("replies", grants);
    await theirs.unlock();
    await advance(100);
    expect(calls.map(({ outcome }) => outcome)).toEqual(["WAIT_TIMEOUT", null]);
    await b.letGo();
  });
});

describe("with a write side as its last member, while a stranger holds the first", () => {
  interface Sides extends Place {
    readonly read: Lock;
    /** The first member, and the write side. */
    readonly both: MultiLock;
  }
  const test = testIn((): Sides => {
    const place = open();
    const sides = place.b.client.getReadWriteLock("sides");
    return { ...place, read: sides.readLock(), both: new MultiLock(place.first, sides.writeLock()) };
  });

  test.for<[string, (multi: MultiLock) => Promise<unknown>]>([
    ["lock", (multi) => multi.lock()],
    ["tryLock", (multi) => multi.tryLock()],
    ["run", (multi) => multi.run(() => 1)],
  ])("an owner that reads is refused at once: %s [B234]", async ([, take], place) => {
    const { first, read, both, b, settle } = place;
    const theirs = await first.lock();
    await b.client.scope(async () => {
      await read.lock();
      const call = watch(take(both));
      await settle();
      expect(call.error).toMatchObject({ code: "UPGRADE_REFUSED", lockName: "sides" });
      await read.unlock();
    });
    await read.run(async () => {
      const call = watch(take(both));
      await settle();
      expect(call.outcome).toBe("UPGRADE_REFUSED");
    });
    await theirs.unlock();
  });

  test("one that begins to read meanwhile is refused when it would try next", async (place) => {
    const { first, read, both, b, settle } = place;
    const theirs = await first.lock();
    await b.client.scope(async () => {
      const call = watch(both.lock());
      await settle();
      await read.lock();
      expect(call.outcome).toBe("pending");
      await theirs.unlock();
      await settle();
      expect(call.outcome).toBe("UPGRADE_REFUSED");
      await read.unlock();
    });
  });

  test("one whose sibling runs read is not refused, and waits for them", async (place) => {
    const { first, read, both, b, settle } = place;
    const theirs = await first.lock();
    await b.client.scope(async () => {
      const end = deferred();
      const sibling = read.run(() => end.promise);
      await settle();
      const call = watch(both.run(() => 1));
      await settle();
      await theirs.unlock();
      await settle();
      expect(call.outcome).toBe("pending");
      end.resolve();
      await sibling;
      await call.promise;
    });
  });
});

describe("events", () => {
  const test = testIn(open);

  test("a hold on both sides of one lock is nested only in another [B235]", async ({ a }) => {
    const sides = a.client.getReadWriteLock("sides");
    const both = new MultiLock(sides.readLock(), sides.writeLock());
    a.listen("acquired");
    const outer = await both.lock();
    const inner = await both.lock({ owner: outer });
    const told = a.heard("acquired").filter(({ kind }) => kind === "multi");
    expect(told.map(({ nested }) => nested)).toEqual([false, true]);
    await inner.unlock();
    await outer.unlock();
  });

  const GROUP = { lockName: "first,last", kind: "multi" };
  const ofGroup = <E extends { kind: string }>(events: readonly E[]) =>
    events.filter(({ kind }) => kind === "multi");

  test("waiting and gaveUp, on the client of each member, name the same owner of the first one", async (place) => {
    const { a, b, first, multi, advance } = place;
    for (const party of [a, b]) party.listen("waiting", "gaveUp");
    const theirs = await first.lock();
    const call = watch(multi.lock({ wait: 200 }));
    await advance(200);
    expect(call.outcome).toBe("WAIT_TIMEOUT");
    const ownerId = ofGroup(a.heard("waiting"))[0]?.ownerId;
    expect(ownerId).toMatch(new RegExp(`^${a.client.id}:\\d+$`));
    for (const party of [a, b]) {
      expect(ofGroup(party.heard("waiting"))).toEqual([{ ...GROUP, ownerId }]);
      expect(ofGroup(party.heard("gaveUp"))).toEqual([
        { ...GROUP, ownerId, reason: "timeout", waited: expect.any(Number) },
      ]);
    }
    await theirs.unlock();
  });

  test("rejected does, and that of a call by an owner of the first member names that owner's hold", async (place) => {
    const { a, b, first, last, multi } = place;
    for (const party of [a, b]) party.listen("rejected");
    const theirs = await last.lock();
    expect(await multi.tryLock()).toBeNull();
    const mine = await first.lock();
    expect(await multi.tryLock(0, undefined, { owner: mine })).toBeNull();
    for (const party of [a, b])
      expect(ofGroup(party.heard("rejected"))).toEqual([
        { ...GROUP, ownerId: expect.stringMatching(new RegExp(`^${a.client.id}:\\d+$`)) },
        { ...GROUP, ownerId: mine.ownerId },
      ]);
    await mine.unlock();
    await theirs.unlock();
  });

  test("acquired has the owner id of waiting if the call gave nothing back meanwhile", async (place) => {
    const { a, first, multi, settle } = place;
    a.listen("waiting", "acquired");
    const theirs = await first.lock();
    const call = watch(multi.lock({ owner: a.client.newOwner() }));
    await settle();
    await theirs.unlock();
    await settle();
    const ids = [...ofGroup(a.heard("waiting")), ...ofGroup(a.heard("acquired"))].map(
      ({ ownerId }) => ownerId,
    );
    expect(ids).toEqual(Array(2).fill(call.value?.ownerId));
    await call.value?.unlock();
  });

  test("longHold, on the client of each member that is to tell it, after the time of that client", async () => {
    const server = new Server();
    const parties = [300, 200, 0].map((warnAfter) =>
      new Party(server, warnAfter ? { warnAfter } : {}).listen(),
    );
    const multi = new MultiLock(...parties.map(({ client }, i) => client.getLock(`member ${i}`)));
    const hold = await multi.lock();
    const told = () => parties.map((party) => ofGroup(party.heard("longHold")));
    await server.advance(299);
    expect(told()).toEqual([[], [expect.objectContaining({ kind: "multi", ownerId: hold.ownerId })], []]);
    await server.advance(1);
    expect(told().map(({ length }) => length)).toEqual([1, 1, 0]);
    await hold.unlock();
    for (const { client } of parties) await client.close();
  });

  test("the end of a hold is published once, and ends the watch for longHold on each client", async () => {
    const server = new Server();
    const parties = [0, 1].map(() => new Party(server, { warnAfter: 300 }).listen());
    const seen: string[] = [];
    const hear = (message: unknown) => void seen.push((message as { lockName: string }).lockName);
    const multi = new MultiLock(...parties.map(({ client }, i) => client.getLock(`member ${i}`)));
    const ended = tracingChannel("holdfast:hold").end;
    ended.subscribe(hear);
    try {
      await (await multi.lock()).unlock();
    } finally {
      ended.unsubscribe(hear);
    }
    await server.advance(300);
    expect(seen.filter((name) => name === multi.name)).toHaveLength(1);
    expect(parties.flatMap((party) => party.heard("longHold"))).toEqual([]);
    for (const { client } of parties) await client.close();
  });

  test("a hold whose owner had some of the members is not nested", async ({ a, first, multi }) => {
    a.listen("acquired");
    const outer = await first.lock();
    const hold = await multi.lock({ owner: outer });
    expect(a.heard("acquired").at(-1)).toMatchObject({ kind: "multi", nested: false });
    await hold.unlock();
    await outer.unlock();
  });
});

describe("the current hold of a group", () => {
  const test = testIn(open);

  test.for<[string, (place: Place) => MultiLock]>([
    ["by the lock that took it", ({ multi }) => multi],
    ["by one with the members in another order", ({ first, last }) => new MultiLock(last, first)],
  ])("is that of a bare hold named as owner: %s [B236]", async ([, groupOf], place) => {
    const { a, multi } = place;
    const group = groupOf(place);
    const hold = await multi.lock();
    await a.client.getLock("other").run(
      async () => {
        const current = group.currentHold();
        expect(current).toMatchObject({ lockName: hold.lockName, ownerId: hold.ownerId, isHeld: true });
        expect(group.currentHold()).toBe(current);
        expect(current?.members.map(({ ownerId }) => ownerId)).toEqual(
          hold.members.map(({ ownerId }) => ownerId),
        );
        const inner = await multi.lock();
        expect(group.currentHold()).toBe(inner);
        await inner.unlock();
        expect(group.currentHold()).toBe(current);
        await current?.unlock();
        expect(group.currentHold()).toBeNull();
      },
      { owner: hold },
    );
    expect(hold.isHeld).toBe(false);
    await hold.unlock();
  });
});

describe("a member's current hold is the one among the group's members [B264]", () => {
  const test = testIn(open);

  /** Calls `act` where the group's hold is the current one. */
  type Inside = (place: Place, act: (hold: MultiHold) => unknown) => Promise<unknown>;
  const named = (ownerOf: (hold: MultiHold) => Hold): Inside => {
    return async ({ a, multi }, act) => {
      const hold = await multi.lock();
      await a.client.getLock("other").run(() => act(hold), { owner: ownerOf(hold) });
      await hold.unlock();
    };
  };
  const INSIDE: [string, Inside][] = [
    ["in its run", ({ multi }, act) => multi.run(act)],
    [
      "in a scope",
      ({ a, multi }, act) =>
        a.client.scope(async () => {
          await multi.lock();
          act(multi.currentHold() as MultiHold);
          await multi.unlock();
        }),
    ],
    [
      "in a run of the member",
      ({ first, last, multi }, act) =>
        first.run(() =>
          last.run(async () => {
            const hold = await multi.lock();
            act(hold);
            await hold.unlock();
          }),
        ),
    ],
    ["for a bare hold named as owner", named((hold) => hold)],
    ["for a member of a bare hold named as owner", named((hold) => hold.members[1] as Hold)],
  ];

  test.for(INSIDE)("%s", async ([, inside], place) => {
    const { first, last, multi } = place;
    const current = () => [first, last].map((lock) => lock.currentHold());
    const check = (members: readonly (Hold | null)[], others: readonly (Hold | null)[]) => {
      expect(members.map((member, i) => member === others[i])).toEqual([true, true]);
      const again = multi.currentHold()?.members ?? members;
      expect(again.map((member, i) => member === others[i])).toEqual([true, true]);
      expect(others.map((hold) => hold?.isHeld)).toEqual([true, true]);
    };
    await inside(place, (hold) => check(hold.members, current()));
    await inside(place, (hold) => {
      const others = current();
      check(hold.members, others);
    });
  });

  test("its unlock ends the group's, whoever made the object", async ({ multi, last }) => {
    const run = multi.run(async (hold) => {
      await last.currentHold()?.unlock();
      expect(hold.members.map(({ isHeld }) => isHeld)).toEqual([false, false]);
    });
    expect(await failure(run)).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
  });
});

describe("an error names the group, or the one member that failed", () => {
  const NO_ANSWER = 3_000;
  const test = testIn(open);
  const replicated = testIn(() => open({ replicas: 1 }));
  type Act = (place: Place) => Promise<unknown>;

  const OF_GROUP: [string, Act][] = [
    ["WAIT_TIMEOUT", ({ multi }) => multi.lock({ wait: 100 })],
    ["NOT_OWNER", ({ multi }) => multi.unlock()],
    ["CLIENT_CLOSED", async ({ b, multi }) => b.client.close({ timeout: 0 }).then(() => multi.lock())],
  ];
  test.for(OF_GROUP)("the group: %s", async ([code, act], place) => {
    const theirs = await place.last.lock({ lease: 1_000 });
    const call = watch(act(place));
    await place.advance(1_000);
    expect(call.error).toMatchObject({ code, lockName: "first,last" });
    expect(theirs.isHeld).toBe(false);
  });

  const OF_MEMBER: [string, Act][] = [
    [
      "WRONG_DATA",
      async ({ server, multi }) => {
        server.execute(["SET", "last", "paid", "PX", "60000"]);
        return multi.lock();
      },
    ],
    [
      "UNAVAILABLE",
      async ({ b, multi }) => {
        b.keep("requests");
        return multi.lock();
      },
    ],
    [
      "UNSUPPORTED",
      async ({ server, multi }) => {
        server.instead = ({ args }) => {
          if (args.includes("last")) throw new ReplyError("NOPERM this user has no permissions");
          return undefined;
        };
        return multi.isLocked();
      },
    ],
  ];
  test.for(OF_MEMBER)("the member: %s", async ([code, act], place) => {
    const call = watch(act(place));
    await place.advance(NO_ANSWER);
    expect(call.error).toMatchObject({ code, lockName: "last" });
    place.server.instead = () => undefined;
    await place.b.letGo();
  });

  replicated("the member: REPLICAS", async ({ multi, advance }) => {
    const call = watch(multi.lock());
    await advance(NO_ANSWER);
    expect(call.error).toMatchObject({ code: "REPLICAS", lockName: "last" });
  });

  test("the member whose loss unlock() is the first to learn of; the signal names the group", async (place) => {
    const { server, multi } = place;
    const hold = await multi.lock();
    server.delete("last");
    expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", lockName: "last" });
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", lockName: "first,last" });
  });
});

describe("forceUnlock of a group resolves when all members' holders are told [B266]", () => {
  const test = testIn(open);
  const FORCED = { code: "LOCK_LOST", reason: "forced" };

  test.for<[string, (place: Place) => [held: MultiLock, forced: MultiLock]]>([
    ["of one client", ({ a }) => [groupOf(a), groupOf(a)]],
    ["of a client each", ({ multi }) => [multi, multi]],
    ["by another client", ({ a, b }) => [groupOf(a), groupOf(b)]],
    ["by the clients in another order", ({ a, b }) => [groupOf(a, b), groupOf(b, a)]],
  ])("%s", async ([, groups], place) => {
    const { a, b, settle } = place;
    for (const party of [a, b]) party.listen("lost");
    const [held, forced] = groups(place);
    const hold = await held.lock();
    const { members } = hold;
    // One answer of the server after the other, until the call has what it needs.
    for (const party of [a, b]) party.keep("replies");
    const call = watch(forced.forceUnlock());
    await settle();
    while (call.state === "pending" && a.onTheirWay + b.onTheirWay > 0)
      for (const party of [a, b]) await party.letOneGo();
    expect(call.outcome).toBe(true);
    expect(members.map(({ signal }) => signal.reason)).toMatchObject([FORCED, FORCED]);
    const told = [...a.heard("lost"), ...b.heard("lost")].filter(({ kind }) => kind === "lock");
    expect(told.map(({ lockName, reason }) => `${lockName} ${reason}`).sort()).toEqual([
      "first forced",
      "last forced",
    ]);
    for (const party of [a, b]) await party.letGo();
    expect(await failure(hold.unlock())).toMatchObject(FORCED);
  });
});

describe("the lists that callers get are their own [B263]", () => {
  const test = testIn(open);

  test("members of a hold", async ({ multi }) => {
    const hold = await multi.lock();
    const members: Hold[] = hold.members;
    const [first, last] = members;
    members.reverse().pop();
    expect(hold.members).toEqual([first, last]);
    await hold.unlock();
    expect([first?.isHeld, last?.isHeld]).toEqual([false, false]);
  });

  test("errors of a group", async ({ multi, b, advance }) => {
    const hold = await multi.lock();
    b.keep("requests");
    const call = watch(hold.unlock());
    await advance(3_000);
    const errors: unknown[] | undefined = (call.error as LockError).errors;
    expect(errors?.splice(0)).toEqual([expect.objectContaining({ code: "UNAVAILABLE" })]);
    await b.letGo();
    await hold.unlock();
  });

  test("errors of which a QuorumError is made", () => {
    const errors = [1, 2];
    const error = new QuorumError("job", 1, 3, errors);
    error.errors.pop();
    expect([error.errors, errors]).toEqual([[1], [1, 2]]);
  });

  test("holders and waiters of a lock that was looked at", async ({ a }) => {
    const hold = await a.client.getLock("job").lock();
    const look = async () => (await a.client.inspect("job")) as LockInfo;
    const { holders, waiters, waiting }: { holders: HolderInfo[]; waiters: string[]; waiting: WaiterInfo[] } =
      await look();
    const [holder] = holders.splice(0);
    waiters.push("nobody");
    waiting.push({ client: null, since: null, holds: [] });
    expect(await look()).toMatchObject({ holders: [holder], waiters: [], waiting: [] });
    await hold.unlock();
  });
});

describe("the unlock of one of a hold's members", () => {
  const test = testIn(open);

  test.for<[string, (place: Place, hold: MultiHold) => Hold | null | undefined]>([
    ["by the hold of the group", (_, hold) => hold.members[1]],
    ["by the member's own lock", ({ last }) => last.currentHold()],
  ])(
    "ends the hold of the group, told as forced, and gives the others back: %s [B238]",
    async ([, memberOf], place) => {
      const { a, b, first, last, multi, settle } = place;
      for (const party of [a, b]) party.listen("lost", "released");
      await a.client.scope(async () => {
        const hold = await multi.lock();
        await memberOf(place, hold)?.unlock();
        expect(hold.signal.reason).toMatchObject({
          code: "LOCK_LOST",
          reason: "forced",
          lockName: multi.name,
        });
        expect([hold.isHeld, multi.currentHold()]).toEqual([false, null]);
        await settle();
        expect([await first.isLocked(), await last.isLocked()]).toEqual([false, false]);
        expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
        for (const party of [a, b]) {
          expect(party.heard("lost")).toMatchObject([
            { kind: "multi", ownerId: hold.ownerId, reason: "forced" },
          ]);
          expect(party.heard("released")).toMatchObject([{ kind: "lock" }]);
        }
        for (const member of hold.members) await member.unlock();
      });
    },
  );

  test("has its run reject, unless the function throws", async ({ multi }) => {
    const unlockOne = async (hold: MultiHold) => {
      await hold.members[0]?.unlock();
      return 7;
    };
    expect(await failure(multi.run(unlockOne))).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    const error = new Error("its own");
    const thrown = multi.run(async (hold) => {
      await unlockOne(hold);
      throw error;
    });
    expect(await failure(thrown)).toBe(error);
  });

  test("ends a nested hold alone", async ({ multi, first, last, settle }) => {
    const outer = await multi.lock();
    const inner = await multi.lock({ owner: outer });
    await inner.members[0]?.unlock();
    await settle();
    expect([outer.isHeld, inner.isHeld]).toEqual([true, false]);
    expect(await first.getHoldCount({ owner: outer })).toBe(1);
    expect(await last.getHoldCount({ owner: outer })).toBe(1);
    await outer.unlock();
  });

  test("is told to nobody else after the unlock of the group", async ({ a, multi }) => {
    a.listen("lost");
    const hold = await multi.lock();
    const released = hold.unlock();
    await hold.members[0]?.unlock();
    await released;
    expect([hold.signal.aborted, a.heard("lost")]).toEqual([false, []]);
  });

  test("has listeners run outside every scope", async ({ a, multi }) => {
    const holds: unknown[] = [];
    await a.client.scope(async () => {
      await a.client.getLock("other").lock();
      const hold = await multi.lock();
      a.client.on("lost", () => void holds.push(a.client.getLock("other").currentHold()));
      hold.signal.addEventListener("abort", () => void holds.push(a.client.getLock("other").currentHold()));
      await hold.members[0]?.unlock();
      await a.client.getLock("other").unlock();
    });
    expect(holds).toEqual([null, null]);
  });
});
