/**
 * The owner of a hold on a MultiLock: the group re-enters like a lock, each member by itself, in scopes and in runs,
 * which take turns.
 */
import { describe, expect, test } from "vitest";
import { type Hold, type Lock, MultiLock } from "../../src/index.js";
import { soon, watch } from "../faults/harness.js";
import { until } from "../support/index.js";
import { Hall, useStages } from "./helpers.js";

const stages = await useStages();

/** Members on two servers, and a rival's clients of both. */
async function open(): Promise<{ hall: Hall; a: Lock; b: Lock; multi: MultiLock } & AsyncDisposable> {
  const hall = await Hall.of(stages, {}, { server: 1 }, {}, { server: 1 });
  const [a, b] = [hall.lock(0, "a"), hall.lock(1, "b")];
  return { hall, a, b, multi: new MultiLock(a, b), [Symbol.asyncDispose]: () => hall[Symbol.asyncDispose]() };
}

/** How often each of the two members is held, according to its server. */
async function counts(hall: Hall): Promise<number[]> {
  const hashes = await Promise.all([hall.hash(0, "a"), hall.hash(1, "b")]);
  return hashes.map((hash) => Object.values(hash).reduce((sum, count) => sum + Number(count), 0));
}

describe("runs", () => {
  test("inside: the lock itself, its members, and groups of them re-enter", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    await multi.run(async (outer) => {
      await multi.run(async (inner) => {
        expect(inner.members.map(({ ownerId }) => ownerId)).toEqual(
          outer.members.map(({ ownerId }) => ownerId),
        );
        expect(await counts(hall)).toEqual([2, 2]);
        expect(await multi.getHoldCount()).toBe(2);
      });
      await a.run(() => b.run(async () => expect(await counts(hall)).toEqual([2, 2])));
      await new MultiLock(b).run(async () => expect(await counts(hall)).toEqual([1, 2]));
      const bare = await a.lock();
      await bare.unlock();
      expect(await multi.isHeldByCurrentOwner()).toBe(true);
    });
    await hall.expectNothingLeft();
  });

  test("inside a run of one member the others are another owner's", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    await a.run(async (enclosing) => {
      const hold = await multi.lock();
      expect(hold.members[0]?.ownerId).toBe(enclosing.ownerId);
      expect(await counts(hall)).toEqual([2, 1]);
      // The owner is named by the group's hold.
      expect(await multi.getHoldCount({ owner: hold })).toBe(1);
      const again = await multi.lock({ owner: hold });
      expect(await counts(hall)).toEqual([3, 2]);
      await b.run(async () => expect(await counts(hall)).toEqual([3, 3]), { owner: hold });
      await again.unlock();
      await hold.unlock();
      await multi.run(async () => {
        await multi.run(() => a.run(() => b.run(() => {})));
        expect(await multi.getHoldCount()).toBe(1);
      });
      expect(await counts(hall)).toEqual([1, 0]);
    });
    await hall.expectNothingLeft();
  });

  test("members by runs of two owners, one inside the other", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    await a.run((one) =>
      b.run(async (two) => {
        const hold = await multi.lock();
        expect(hold.members.map(({ ownerId }) => ownerId)).toEqual([one.ownerId, two.ownerId]);
        expect(await counts(hall)).toEqual([2, 2]);
        await multi.run(() => multi.run(async () => expect(await counts(hall)).toEqual([4, 4])), {
          owner: hold,
        });
        await hold.unlock();
        expect(await counts(hall)).toEqual([1, 1]);
      }),
    );
    await hall.expectNothingLeft();
  });

  test("an owner that is named for a run has nothing of the run around it", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    const owner = hall.client(0).newOwner();
    await a.run(() => b.run(async () => expect(await multi.tryLock(2_500)).toBeNull(), { owner }));
    await hall.expectNothingLeft();
  });

  test("parallel ones of one owner take turns, with groups in other orders and single members too", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    let inside = 0;
    let most = 0;
    const visit = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
      inside--;
    };
    const all = () =>
      Promise.all([multi.run(visit), new MultiLock(b, a).run(visit), a.run(visit), multi.run(visit)]);
    await hall.client(0).scope(all);
    expect(most).toBe(1);
    await multi.run(all);
    expect(most).toBe(1);
    await hall.expectNothingLeft();
  });

  test("a call that waits for a member holds up no turn of other calls", async () => {
    await using it = await open();
    const { hall, a, multi } = it;
    const theirs = await hall.lock(3, "b").lock();
    await hall.client(0).scope(async () => {
      const waiting = await hall.parked("b", () => multi.run(() => {}));
      await soon(watch(a.run(() => {})));
      await soon(watch(hall.multi(0, "a").run(() => {})));
      expect(waiting.state).toBe("pending");
      await theirs.unlock();
      await soon(waiting);
    });
    await hall.expectNothingLeft();
  });
});

const notOwner = { code: "NOT_OWNER" };

describe("bare calls", () => {
  test("in a scope they re-enter, in any order and with single members between", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    await hall.client(0).scope(async () => {
      await multi.lock();
      await a.lock();
      await new MultiLock(b, a).lock();
      expect(await counts(hall)).toEqual([3, 2]);
      await multi.unlock(); // the members decide, not the MultiLock object or their order in it
      expect(await counts(hall)).toEqual([2, 1]);
      await a.unlock();
      await expect(a.unlock()).rejects.toMatchObject(notOwner);
      await expect(b.unlock()).rejects.toMatchObject(notOwner);
      expect(await counts(hall)).toEqual([1, 1]);
      await multi.unlock();
      await expect(multi.unlock()).rejects.toMatchObject(notOwner);
    });
    await hall.expectNothingLeft();
  });

  test("with { owner }: an Owner, a MultiHold, or the Hold of a member", async () => {
    await using it = await open();
    const { hall, a, b, multi } = it;
    const owner = hall.client(0).newOwner();
    const hold = await multi.lock({ owner });
    const [first] = hold.members;
    for (const named of [owner, hold, first as Hold]) {
      const again = await multi.lock({ owner: named });
      const single = await b.lock({ owner: named });
      expect(await counts(hall)).toEqual([2, 3]);
      expect(await multi.getHoldCount({ owner: named })).toBe(2);
      await again.unlock();
      await single.unlock();
    }
    await a.lock({ owner: hold });
    await a.unlock({ owner: hold });
    await multi.unlock({ owner: hold });
    await expect(multi.unlock({ owner })).rejects.toMatchObject(notOwner);
    await hall.expectNothingLeft();
    await (await multi.lock({ owner: hold })).unlock(); // a hold still names its owner after its unlock
  });
});

describe("read-write members", () => {
  test("UPGRADE_REFUSED at once, and what was taken is given back", async () => {
    await using hall = await Hall.of(stages, {});
    const [read, write] = [hall.read(0, "b"), hall.write(0, "b")];
    const refused = { code: "UPGRADE_REFUSED", lockName: hall.name("b") };
    await hall.client(0).scope(async () => {
      await read.lock();
      const multi = new MultiLock(hall.lock(0, "a"), write);
      await expect(multi.lock()).rejects.toMatchObject(refused);
      await expect(multi.tryLock()).rejects.toMatchObject(refused);
      await expect(new MultiLock(read, write).lock()).rejects.toMatchObject(refused);
      expect(await hall.held()).toEqual(["b"]);
      await read.unlock();
    });
    for (const reader of [read, new MultiLock(hall.lock(0, "c"), read)]) {
      await reader.run(async () => {
        await expect(write.lock()).rejects.toMatchObject(refused);
        await expect(new MultiLock(hall.lock(0, "a"), write).run(() => {})).rejects.toMatchObject(refused);
      });
    }
    await hall.expectNothingLeft();
  });

  test("the holder of the write side takes a group with the read side", async () => {
    await using hall = await Hall.of(stages, {}, {});
    const [read, write] = [hall.read(0, "b"), hall.write(0, "b")];
    await write.run(async (hold) => {
      const multi = new MultiLock(read, hall.lock(0, "c"));
      const shared = await multi.lock();
      await hold.unlock(); // the owner keeps the read side: a downgrade
      const theirs = await hall.read(1, "b").tryLock(2_000);
      expect(theirs).not.toBeNull();
      await theirs?.unlock();
      await shared.unlock();
    });
    await hall.expectNothingLeft();
  });

  test("sibling runs that read share", async () => {
    await using hall = await Hall.of(stages, {});
    const multi = new MultiLock(hall.read(0, "a"), hall.read(0, "b"));
    let inside = 0;
    const both = () =>
      Promise.all(
        [1, 2].map(() =>
          multi.run(async () => {
            inside++;
            await until("both are inside", () => inside === 2);
          }),
        ),
      );
    await soon(watch(hall.client(0).scope(both)));
    await hall.expectNothingLeft();
  });
});

test("what a scope holds of two members is nothing that it holds of one with an odd name [B134]", async () => {
  await using hall = await Hall.of(stages, {});
  const client = hall.client(0);
  const multi = hall.multi(0, "a", "b");
  // As if both members' keys were joined.
  const odd = new MultiLock(client.getLock(`${hall.name("a")}/only,${client.id}/${hall.name("b")}`));
  await client.scope(async () => {
    const hold = await multi.lock();
    expect(odd.currentHold()).toBeNull();
    await expect(odd.unlock()).rejects.toMatchObject({ code: "NOT_OWNER" });
    expect(hold.isHeld).toBe(true);
    await multi.unlock();
  });
  await hall.expectNothingLeft();
});
