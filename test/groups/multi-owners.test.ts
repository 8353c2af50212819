/** Whose the holds on a MultiLock are: it re-enters like a lock, and each member is re-entered by itself. */
import { describe, expect, test } from "vitest";
import { type Hold, type Lock, MultiLock } from "../../src/index.js";
import { Hall, useStages } from "./helpers.js";

const stages = await useStages();

/** Members on two servers, and the same by another client of the first. */
async function open(): Promise<{ hall: Hall; a: Lock; b: Lock; multi: MultiLock } & AsyncDisposable> {
  const hall = await Hall.of(stages, {}, { server: 1 }, {});
  const [a, b] = [hall.lock(0, "a"), hall.lock(1, "b")];
  return { hall, a, b, multi: new MultiLock(a, b), [Symbol.asyncDispose]: () => hall[Symbol.asyncDispose]() };
}

/** How often each of the two members is held, by the word of its server. */
async function counts(hall: Hall): Promise<number[]> {
  const hashes = await Promise.all([hall.hash(0, "a"), hall.hash(1, "b")]);
  return hashes.map((hash) => Object.values(hash).reduce((sum, count) => sum + Number(count), 0));
}

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
      await multi.unlock(); // the lock is its members, not the object or their order
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
    await (await multi.lock({ owner: hold })).unlock(); // the same owner, also after its unlock
  });
});
