/** Contract section 4: a group has the face of a lock: who may be a member, names, questions, owners, and its current hold. */
import { expect, test } from "vitest";
import {
  type FencedHold,
  type Hold,
  type Lock,
  LockClient,
  type LockInfo,
  MultiHold,
  MultiLock,
  QuorumError,
  RedLock,
} from "../../../src/index.js";
import { forTest } from "../../support/index.js";
import { FENCED, failure, MULTI, READ, RED, row, SINGLE, WRITE, watch } from "../../support/place/index.js";
import { type Apart, multiRow } from "./apart.js";

const TEXT = "a member must be a lock of a LockClient; of a read-write lock, one of its sides";

/** What is no member, or no list of members. */
const REFUSED: readonly [string, (place: Apart) => unknown[]][] = [
  ["nothing at all", () => []],
  ["undefined", ({ lock }) => [lock, undefined]],
  ["null", () => [null]],
  ["a name", () => ["job"]],
  ["what only looks like a lock", ({ lock }) => [{ ...lock }]],
  ["an object made from a lock's prototype", ({ lock }) => [Object.create(lock)]],
  ["an array of locks", ({ lock, other }) => [[lock, other]]],
  ["a read-write lock itself", ({ client }) => [client.getReadWriteLock("job")]],
  ["an owner", ({ client }) => [client.newOwner()]],
  ["a client", ({ client }) => [client]],
  ["a MultiLock", ({ lock, other }) => [new MultiLock(lock), other]],
  ["the same object twice", ({ lock }) => [lock, lock]],
  ["the same lock by two objects", ({ lock, client }) => [lock, client.getLock("job")]],
  ["one side twice", ({ a, of }) => [of(a, "s0", READ), of(a, "s0", WRITE), of(a, "s0", READ)]],
];

multiRow(
  "a MultiLock is of one or more different locks, and of nothing else [§4 group-arguments]",
  async (place) => {
    for (const [what, members] of REFUSED) {
      const error = await failure(() => new MultiLock(...(members(place) as never[])));
      expect(error, what).toBeInstanceOf(TypeError);
      expect(error.message, what).not.toBe("");
    }
    for (const member of [undefined, null, "job", {}])
      expect(() => new MultiLock(member as never)).toThrow(new TypeError(TEXT));
    const { a, of, group } = place;
    await new MultiLock(of(a, "s0", READ), of(a, "s0", WRITE)).run(() => {});
    await group("a0", "a1").run(({ members }) => expect(members).toHaveLength(2));
    await group("a0").run(({ lockName }) => expect(lockName).toBe("a"));
  },
);

row(
  "a RedLock is of three or more different locks, and of no group [§4 group-arguments]",
  { kinds: [RED] },
  async ({ a, lock }) => {
    const [first, second, third] = a.clients.map((client) => client.getLock("job")) as [Lock, Lock, Lock];
    const wrong: unknown[][] = [
      [],
      [first],
      [first, second],
      [first, second, a.client.getLock("job")],
      [first, second, new MultiLock(third)],
      [first, second, lock],
      ...[null, undefined, {}, "job", a.client].map((each) => [first, second, each]),
    ];
    for (const members of wrong)
      expect(await failure(() => new RedLock(...(members as never[])))).toBeInstanceOf(TypeError);
    expect(new RedLock(first, second, third)).toBeInstanceOf(MultiLock);
  },
);

row(
  "two members of a RedLock at one address are refused by the constructor [§4 group-arguments]",
  { kinds: [RED] },
  async ({ a, b }) => {
    const members = [
      a.client.getLock("job"),
      b.client.getLock("job"),
      a.clients[1]?.getLock("job"),
    ] as Lock[];
    expect(await failure(() => new RedLock(...members))).toBeInstanceOf(TypeError);
    const ofOne = ["1", "2", "3"].map((name) => a.client.getLock(name));
    expect(await failure(() => new RedLock(...ofOne))).toBeInstanceOf(TypeError);
  },
);

test("masters of sentinels are told apart by sentinels and name [§4 group-arguments] [B296]", async () => {
  const redlock = (...names: string[]) => {
    const masters = names.map((name) =>
      forTest(LockClient.connect({ sentinels: [{ host: "127.0.0.1", port: 1 }], name })),
    );
    for (const master of masters) master.on("error", () => {});
    return new RedLock(...masters.map((master) => master.getLock("job")));
  };
  expect(redlock("a", "b", "c").name).toBe("job,job,job");
  expect(() => redlock("a", "b", "a")).toThrow(/two members of a RedLock are at one address \(a of/);
});

multiRow(
  "the name is the members' as they were given, and the hold has them in that order [§4 group-face]",
  async ({ party, held }) => {
    const { client } = party({ prefix: "app" });
    const multi = new MultiLock(...["c", "a", "b"].map((name) => client.getLock(name)));
    expect(multi.name).toBe("c,a,b");
    const hold = await multi.lock();
    expect(hold).toBeInstanceOf(MultiHold);
    expect([hold.lockName, hold.members.map(({ lockName }) => lockName)]).toEqual(["c,a,b", ["c", "a", "b"]]);
    expect(hold.ownerId).toBe(hold.members[0]?.ownerId);
    expect(held()).toEqual([]); // on the server the names have the prefix
    await hold.unlock();
    await client.close();
  },
);

multiRow(
  "two locks of each kind, on two servers, are all held, or none [§4 multi]",
  async ({ a, b, of, held, servers }) => {
    const members = SINGLE.flatMap((kind, i) => [of(a, `${i}0`, kind), of(a, `${i}1`, kind)]);
    const multi = new MultiLock(...members);
    const words = SINGLE.flatMap((_, i) => [`${i}0`, `${i}1`]);
    const hold = await multi.lock();
    expect(held()).toEqual(words);
    for (const [i, kind] of SINGLE.entries())
      for (const on of [0, 1]) {
        const { lockName, ownerId } = hold.members[2 * i + on] as Hold;
        expect(servers[on]?.hash(lockName)).toEqual(kind.fields(ownerId, 1));
      }
    await hold.unlock();
    for (const [i, kind] of SINGLE.entries())
      for (const on of [0, 1]) {
        const theirs = await of(b, `${i}${on}`, kind.rival).lock();
        expect(await multi.tryLock()).toBeNull();
        expect(held()).toEqual([`${i}${on}`]);
        await theirs.unlock();
      }
  },
);

for (const kind of [MULTI, RED])
  row(
    "tokens of fenced members are in hold.members, rise on each server, and nested holds have the same [§4 fenced]",
    { kinds: [kind] },
    async ({ a, settle }) => {
      const Group = kind === RED ? RedLock : MultiLock;
      const locks = (kind === RED ? a.clients : [a.client, a.client]).map((client, i) =>
        FENCED.make([client], `token ${kind === RED ? "" : i}`),
      );
      const group = new Group(...locks);
      const tokensOf = ({ members }: MultiHold) => members.map((member) => (member as FencedHold).token);
      let before: bigint[] = [];
      for (let n = 0; n < 3; n++) {
        const hold = await group.lock();
        await settle();
        const tokens = tokensOf(hold);
        for (const [i, token] of before.entries()) expect(tokens[i]).toBeGreaterThan(token);
        before = tokens;
        const inner = await group.lock({ owner: hold });
        await settle();
        expect(tokensOf(inner)).toEqual(tokens);
        await inner.unlock();
        await hold.unlock();
        await settle();
      }
    },
  );

multiRow(
  "it is locked when all members are, its time is the least, and an owner's count too [§4 group-face]",
  async ({ a, of, group, client }) => {
    const [one, two] = [of(a, "a0"), of(a, "b1")];
    const multi = group("a0", "b1");
    const looks = async () => [await multi.isLocked(), await multi.remainTimeToLive()];
    expect(await looks()).toEqual([false, -2]);
    const first = await one.lock({ lease: 60_000 });
    expect(await looks()).toEqual([false, -2]);
    const second = await two.lock({ lease: 20_000 });
    expect(await looks()).toEqual([true, 20_000]);
    for (const hold of [first, second]) await hold.unlock();
    const counts = async () => [await multi.getHoldCount(), await multi.isHeldByCurrentOwner()];
    await client.scope(async () => {
      const steps: [() => Promise<unknown>, number][] = [
        [() => one.lock(), 0],
        [() => two.lock(), 1],
        [() => multi.lock(), 2],
        [() => one.lock(), 2],
        [() => two.unlock(), 1],
        [() => multi.unlock(), 0],
      ];
      for (const [step, count] of steps) {
        await step();
        expect(await counts()).toEqual([count, count > 0]);
      }
      for (let i = 0; i < 2; i++) await one.unlock();
    });
  },
);

multiRow(
  "forceUnlock() resolves when the holds of all members in this process have ended as forced [§2 force-unlock] [B266]",
  async ({ a, group, settle }) => {
    const hold = await group("a0", "b1").lock();
    const lost: string[] = [];
    for (const client of a.clients)
      client.on(
        "lost",
        ({ kind, lockName, reason }) => void (kind === "lock" && lost.push(`${lockName} ${reason}`)),
      );
    a.keep("replies");
    const call = watch(group("b1", "a0").forceUnlock());
    await settle();
    // One answer after the other, until the call has what it needs.
    while (call.state === "pending" && a.onTheirWay > 0) await a.letOneGo();
    expect(call.outcome).toBe(true);
    const forced = { code: "LOCK_LOST", reason: "forced" };
    expect(hold.members.map(({ signal }) => signal.reason)).toMatchObject([forced, forced]);
    expect(lost.sort()).toEqual(["a forced", "b forced"]);
    await a.letGo();
    expect(await failure(hold.unlock())).toMatchObject(forced);
  },
);

multiRow(
  "bare calls of a scope re-enter each member, in any order of members, and single ones between [§3 scope]",
  async ({ a, of, client }) => {
    const [one, two] = [of(a, "a0"), of(a, "b1")];
    const multi = new MultiLock(one, two);
    await client.scope(async () => {
      const counts = async () => [await one.getHoldCount(), await two.getHoldCount()];
      await multi.lock();
      await one.lock();
      await new MultiLock(two, one).lock();
      expect(await counts()).toEqual([3, 2]);
      await multi.unlock(); // the members decide, not the object or its order
      expect(await counts()).toEqual([2, 1]);
      await one.unlock();
      for (const member of [one, two])
        expect(await failure(member.unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(await counts()).toEqual([1, 1]);
      await multi.unlock();
      expect(await failure(multi.unlock())).toMatchObject({ code: "NOT_OWNER" });
    });
  },
);

multiRow(
  "inside the run of one member the call re-enters that member, and takes the others for the same owner [§3 run-tree]",
  async ({ a, of, group }) => {
    const [one, two] = [of(a, "a0"), of(a, "b1")];
    const multi = group("a0", "b1");
    await one.run(async (enclosing) => {
      const hold = await multi.lock();
      expect(hold.members[0]?.ownerId).toBe(enclosing.ownerId);
      expect(await multi.getHoldCount({ owner: hold })).toBe(1);
      const again = await multi.lock({ owner: hold });
      await two.run(async () => expect(await two.getHoldCount({ owner: hold })).toBe(3), { owner: hold });
      await again.unlock();
      await hold.unlock();
      expect(await one.getHoldCount()).toBe(1);
      expect(await two.isLocked()).toBe(false);
    });
  },
);

multiRow(
  "a run of a group that waits for a member holds up no turn of its owner's other runs [§3 parallel-runs]",
  async ({ a, b, of, client, group, pass, settle }) => {
    const theirs = await of(b, "b1").lock();
    await client.scope(async () => {
      const waiting = watch(group("a0", "b1").run(() => 1));
      await pass(1_000);
      const others = [watch(of(a, "a0").run(() => 2)), watch(group("a0").run(() => 3))];
      await settle();
      expect([waiting, ...others].map(({ outcome }) => outcome)).toEqual(["pending", 2, 3]);
      await theirs.unlock();
      await pass(1_000);
      expect(waiting.outcome).toBe(1);
    });
  },
);

multiRow(
  "what a scope holds of two members is nothing that it holds of one with an odd name [§4 group-face] [B134]",
  async ({ client }) => {
    const multi = new MultiLock(client.getLock("a"), client.getLock("b"));
    // As if both members' keys were joined.
    const odd = new MultiLock(client.getLock(`a/only,${client.id}/b`));
    await client.scope(async () => {
      const hold = await multi.lock();
      expect(odd.currentHold()).toBeNull();
      expect(await failure(odd.unlock())).toMatchObject({ code: "NOT_OWNER" });
      expect(hold.isHeld).toBe(true);
      await multi.unlock();
    });
  },
);

multiRow(
  "a write side among the members is refused at once to an owner that reads, and waits for its sibling runs [§4 upgrade-refused] [B234]",
  async ({ a, b, of, client, settle }) => {
    const [read, write] = [of(a, "s0", READ), of(a, "s0", WRITE)];
    const both = new MultiLock(of(a, "a0"), write);
    const refused = { code: "UPGRADE_REFUSED", lockName: "s" };
    const theirs = await of(b, "a0").lock();
    const calls = () => [
      watch<unknown>(both.lock()),
      watch<unknown>(both.tryLock()),
      watch<unknown>(both.run(() => 1)),
      watch<unknown>(new MultiLock(read, write).lock()),
    ];
    const areRefused = async () => {
      const made = calls();
      await settle();
      expect(made.map(({ error }) => error)).toMatchObject([refused, refused, refused, refused]);
    };
    await client.scope(async () => {
      await read.lock();
      await areRefused();
      await read.unlock();
    });
    await read.run(areRefused);
    await client.scope(async () => {
      // One that begins to read meanwhile is refused when it would try next.
      const late = watch(both.lock());
      await settle();
      await read.lock();
      await theirs.unlock();
      await settle();
      expect(late.outcome).toBe("UPGRADE_REFUSED");
      await read.unlock();
    });
  },
);

for (const order of ["as it was taken", "in another order"])
  multiRow(
    `the current hold of a group, its members given ${order}, is that of a bare hold named as owner [§8 current-hold] [B236]`,
    async ({ client, group }) => {
      const multi = group("a0", "b1");
      const asked = order === "as it was taken" ? multi : group("b1", "a0");
      const hold = await multi.lock();
      await client.getLock("other").run(
        async () => {
          const current = asked.currentHold();
          expect(current).toMatchObject({ lockName: hold.lockName, ownerId: hold.ownerId, isHeld: true });
          expect(asked.currentHold()).toBe(current);
          const inner = await multi.lock();
          expect(asked.currentHold()).toBe(inner);
          await inner.unlock();
          await current?.unlock();
          expect(asked.currentHold()).toBeNull();
        },
        { owner: hold },
      );
      expect(hold.isHeld).toBe(false);
      await hold.unlock();
    },
  );

/** Ways by which a group's hold is the current one. */
const INSIDE: readonly [string, (place: Apart, act: (hold: MultiHold) => unknown) => Promise<unknown>][] = [
  ["its run", ({ group }, act) => group("a0", "b1").run(act)],
  [
    "a scope",
    ({ client, group }, act) =>
      client.scope(async () => {
        act(await group("a0", "b1").lock());
        await group("a0", "b1").unlock();
      }),
  ],
  [
    "runs of its members",
    ({ a, of, group }, act) =>
      of(a, "a0").run(() =>
        of(a, "b1").run(async () => {
          const hold = await group("a0", "b1").lock();
          act(hold);
          await hold.unlock();
        }),
      ),
  ],
  ...[0, 1].map((named): (typeof INSIDE)[number] => [
    named === 0 ? "a run that names it as owner" : "a run that names its member as owner",
    async ({ client, group }, act) => {
      const hold = await group("a0", "b1").lock();
      await client
        .getLock("other")
        .run(() => act(hold), { owner: named === 0 ? hold : (hold.members[1] as Hold) });
      await hold.unlock();
    },
  ]),
];

for (const [where, inside] of INSIDE)
  multiRow(
    `a member's current hold in ${where} is the one among the group's members [§8 current-hold] [B264]`,
    async (place) => {
      const { a, of } = place;
      await inside(place, (hold) => {
        const current = ["a0", "b1"].map((word) => of(a, word).currentHold());
        expect(current.map((each, i) => each === hold.members[i])).toEqual([true, true]);
      });
    },
  );

for (const [what, memberOf] of [
  ["by the hold of the group", (hold: MultiHold) => hold.members[1]],
  ["by the member's own lock", (_: MultiHold, member: Lock) => member.currentHold()],
] as const)
  multiRow(
    `the unlock of a member, ${what}, ends the group's hold as forced, and gives the rest back [§4 group-face] [B238]`,
    async ({ a, of, client, group, held, settle }) => {
      const multi = group("a0", "b1");
      await client.scope(async () => {
        const hold = await multi.lock();
        await memberOf(hold, of(a, "b1"))?.unlock();
        const lost = { code: "LOCK_LOST", reason: "forced", lockName: "a,b" };
        expect(hold.signal.reason).toMatchObject(lost);
        expect([hold.isHeld, multi.currentHold()]).toEqual([false, null]);
        await settle();
        expect(held()).toEqual([]);
        expect(await failure(hold.unlock())).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      });
      const unlockOne = async ({ members }: MultiHold) => void (await members[0]?.unlock());
      expect(await failure(multi.run(unlockOne))).toMatchObject({ code: "LOCK_LOST", reason: "forced" });
      const outer = await multi.lock();
      const inner = await multi.lock({ owner: outer });
      await unlockOne(inner);
      await settle();
      expect([outer.isHeld, inner.isHeld]).toEqual([true, false]);
      expect(await multi.getHoldCount({ owner: outer })).toBe(1);
      const released = outer.unlock();
      await outer.members[0]?.unlock();
      await released;
      expect(outer.signal.aborted).toBe(false);
    },
  );

multiRow(
  "the lists that callers get are their own [§4 group-face] [B263]",
  async ({ a, client, group, pass }) => {
    const hold = await group("a0", "b1").lock();
    const members: Hold[] = hold.members;
    const [first, last] = members;
    members.reverse().pop();
    expect(hold.members).toEqual([first, last]);
    a.at(1).keep("requests");
    const call = watch(hold.unlock());
    await pass(3_000);
    const errors: unknown[] = (call.error as { errors: unknown[] }).errors;
    expect(errors.splice(0)).toMatchObject([{ code: "UNAVAILABLE" }]);
    await a.letGo();
    await hold.unlock();
    const given = [1, 2];
    const quorum = new QuorumError("job", 1, 3, given);
    quorum.errors.pop();
    expect([quorum.errors, given]).toEqual([[1], [1, 2]]);
    const job = await client.getLock("job").lock();
    const look = async () => (await client.inspect("job")) as LockInfo;
    const { holders, waiters, waiting } = await look();
    const [holder] = holders.splice(0);
    waiters.push("nobody");
    waiting.push({ client: null, since: null, holds: [] });
    expect(await look()).toMatchObject({ holders: [holder], waiters: [], waiting: [] });
    await job.unlock();
  },
);
