/** A MultiLock itself: which locks may be members, the names of the group and its holds, and its properties. */
import { describe, expect, test } from "vitest";
import { type FencedHold, MultiHold, MultiLock, RedLock } from "../../src/index.js";
import { failure } from "../contract/helpers.js";
import { KINDS } from "../contract/kinds.js";
import { Hall, useStages } from "./helpers.js";

const stages = await useStages();

describe("who may be a member", () => {
  const refused = async (members: (hall: Hall) => unknown[]): Promise<void> => {
    await using hall = await Hall.of(stages, {});
    const error = await failure(() => new MultiLock(...(members(hall) as never[])));
    expect(error).toBeInstanceOf(TypeError);
    expect(error.message).not.toBe("");
  };

  test.for<[string, (hall: Hall) => unknown[]]>([
    ["nothing at all", () => []],
    ["undefined", (hall) => [hall.lock(0, "a"), undefined]],
    ["null", () => [null]],
    ["a name", (hall) => [hall.name("a")]],
    ["what only looks like a lock", (hall) => [{ ...hall.lock(0, "a") }]],
    ["an object made from a lock's prototype", (hall) => [Object.create(hall.lock(0, "a"))]],
    ["an array of locks", (hall) => [[hall.lock(0, "a"), hall.lock(0, "b")]]],
    ["a read-write lock itself", (hall) => [hall.client(0).getReadWriteLock(hall.name("a"))]],
    ["a hold's owner", (hall) => [hall.client(0).newOwner()]],
    ["a client", (hall) => [hall.client(0)]],
    ["a MultiLock", (hall) => [hall.multi(0, "a"), hall.lock(0, "b")]],
    [
      "a RedLock",
      (hall) => [new RedLock(hall.lock(0, "a"), hall.lock(0, "b"), hall.lock(0, "c")), hall.lock(0, "d")],
    ],
    ["the same object twice", (hall) => [hall.lock(0, "a")].flatMap((lock) => [lock, lock])],
    ["the same lock twice, by two objects", (hall) => [hall.lock(0, "a"), hall.lock(0, "a")]],
    ["the same side of one lock twice", (hall) => [hall.read(0, "a"), hall.write(0, "a"), hall.read(0, "a")]],
  ])("not %s", ([_, members]) => refused(members));

  test("two sides of one lock may, and one name of two clients", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    await new MultiLock(hall.read(0, "a"), hall.write(0, "a")).run(() => {});
    await new MultiLock(hall.lock(0, "b"), hall.lock(1, "b")).run(() => {});
    await hall.expectNothingLeft();
  });

  test("one member is enough", async () => {
    await using hall = await Hall.of(stages, {});
    const multi = hall.multi(0, "a");
    expect(multi.name).toBe(hall.name("a"));
    const hold = await multi.lock();
    expect(hold.members).toHaveLength(1);
    expect(await hall.held()).toEqual(["a"]);
    await hold.unlock();
    await hall.expectNothingLeft();
  });
});

describe("names", () => {
  test("the lock has its members' names as they were given, and so have its holds", async () => {
    await using hall = await Hall.of(stages, { prefix: "app" });
    const multi = hall.multi(0, "c", "a", "b");
    expect(multi.name).toBe(["c", "a", "b"].map((word) => hall.name(word)).join(","));
    const hold = await multi.lock();
    expect(hold).toBeInstanceOf(MultiHold);
    expect(hold.lockName).toBe(multi.name);
    expect(hold.members.map(({ lockName }) => lockName)).toEqual(
      ["c", "a", "b"].map((word) => hall.name(word)),
    );
    expect(await hall.held()).toEqual(["app:a", "app:b", "app:c"]);
    await hold.unlock();
  });

  test("a hold has the owner id of its first member, and each member its own", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const before = Date.now();
    const hold = await new MultiLock(hall.lock(1, "b"), hall.lock(0, "a"), hall.lock(0, "c")).lock();
    const [b, a, c] = hold.members;
    expect(hold.ownerId).toBe(b?.ownerId);
    expect(b?.ownerId.split(":")[0]).not.toBe(a?.ownerId.split(":")[0]);
    expect(a?.ownerId.split(":")[0]).toBe(c?.ownerId.split(":")[0]);
    expect(await hall.hash(0, "a")).toEqual({ [a?.ownerId ?? ""]: "1" });
    expect(hold.acquiredAt).toBeGreaterThanOrEqual(before);
    await hold.unlock();
  });
});

describe("members of every kind, of clients on two servers", () => {
  const members = (hall: Hall) =>
    KINDS.flatMap((kind, i) => [0, 1].map((by) => hall.lock(by, `${i}${by}`, kind)));

  test("all are held, and all are given back", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const multi = new MultiLock(...members(hall));
    const hold = await multi.lock();
    const words = KINDS.flatMap((_, i) => [`${i}0`, `${i}1`]);
    expect(await hall.held()).toEqual(words);
    for (const [i, kind] of KINDS.entries()) {
      for (const by of [0, 1]) {
        const { lockName, ownerId } = hold.members[2 * i + by] ?? hold;
        expect(await hall.redis(by).hgetall(lockName)).toEqual(kind.fields(ownerId, 1));
      }
    }
    await hold.unlock();
    await hall.expectNothingLeft();
  });

  test("or none: with any one of them held by somebody, tryLock gives null and leaves nothing", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 }, {}, { server: 1 });
    const multi = new MultiLock(...members(hall));
    for (const [i, kind] of KINDS.entries()) {
      for (const by of [0, 1]) {
        const theirs = await hall.lock(2 + by, `${i}${by}`, kind.rival).lock();
        expect(await multi.tryLock()).toBeNull();
        expect(await hall.held()).toEqual([`${i}${by}`]);
        await theirs.unlock();
      }
    }
    await hall.expectNothingLeft();
    await (await multi.tryLock())?.unlock();
  });

  test("a fenced member's hold has its token, which rises", async () => {
    await using hall = await Hall.of(stages, {});
    const multi = new MultiLock(hall.lock(0, "a"), hall.client(0).getFencedLock(hall.name("b")));
    const tokens: bigint[] = [];
    for (let n = 0; n < 3; n++)
      await multi.run(({ members }) => void tokens.push((members[1] as FencedHold).token));
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => (a < b ? -1 : 1)));
    await multi.run(async (outer) => {
      const inner = await multi.lock();
      expect((inner.members[1] as FencedHold).token).toBe((outer.members[1] as FencedHold).token);
      await inner.unlock();
    });
  });
});

describe("what it says of itself", () => {
  test("it is locked when all members are, whoever has them, and its time is the least", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const [a, b] = [hall.lock(0, "a"), hall.lock(1, "b")];
    const multi = new MultiLock(a, b);
    expect(await multi.isLocked()).toBe(false);
    expect(await multi.remainTimeToLive()).toBe(-2);
    const one = await a.lock({ lease: 60_000 });
    expect(await multi.isLocked()).toBe(false);
    expect(await multi.remainTimeToLive()).toBe(-2);
    const two = await b.lock({ lease: 20_000 });
    expect(await multi.isLocked()).toBe(true);
    const ttl = await multi.remainTimeToLive();
    expect(ttl).toBeGreaterThan(5_000);
    expect(ttl).toBeLessThanOrEqual(20_000);
    expect(await multi.isHeldByCurrentOwner()).toBe(false);
    await one.unlock();
    await two.unlock();
  });

  test("an owner's count is the least of the members', and asks nothing for one that has none", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 });
    const [a, b] = [hall.lock(0, "a"), hall.lock(1, "b")];
    const multi = new MultiLock(a, b);
    expect(await multi.getHoldCount()).toBe(0);
    expect([...hall.scripts(0), ...hall.scripts(1)]).toEqual([]);
    await hall.client(0).scope(async () => {
      const says = async () => [await multi.getHoldCount(), await multi.isHeldByCurrentOwner()];
      await a.lock();
      expect(await says()).toEqual([0, false]);
      await b.lock();
      expect(await says()).toEqual([1, true]);
      await multi.lock();
      expect(await says()).toEqual([2, true]);
      await a.lock();
      expect(await says()).toEqual([2, true]);
      await b.unlock();
      expect(await says()).toEqual([1, true]);
      await multi.unlock();
      expect(await says()).toEqual([0, false]);
      for (const _ of [1, 2]) await a.unlock();
    });
    const hold = await multi.lock();
    expect(await multi.getHoldCount({ owner: hold })).toBe(1);
    expect(await multi.isHeldByCurrentOwner()).toBe(false);
    await hold.unlock();
    expect(await multi.isHeldByCurrentOwner({ owner: hold })).toBe(false);
  });

  test("forceUnlock gives all back, and tells whether anybody had any", async () => {
    await using hall = await Hall.of(stages, {}, { server: 1 }, {});
    const multi = new MultiLock(hall.lock(0, "a"), hall.lock(1, "b"));
    expect(await multi.forceUnlock()).toBe(false);
    const one = await hall.lock(2, "a").lock();
    expect(await multi.forceUnlock()).toBe(true);
    await expect(one.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    const hold = await multi.lock();
    expect(await multi.forceUnlock()).toBe(true);
    expect(hold.isHeld).toBe(false);
    expect(hold.signal.reason).toMatchObject({ code: "LOCK_LOST", lockName: multi.name, reason: "forced" });
    await expect(hold.unlock()).rejects.toMatchObject({ code: "LOCK_LOST", reason: "forced" });
    await hall.expectNothingLeft();
  });
});
