import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockRenew } from "../../src/scripts/generated.js";
import { type Bench, FORBIDDEN, forms, held, ME, MOST, OTHER, startBench, text } from "./bench.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

describe.each(forms(lockRenew))("lock/renew, %s", (form) => {
  const renew = (lease: number, ...pairs: [lock: string, owner: string][]) =>
    bench.runner(lockRenew, form)(
      { locks: pairs.map(([lock]) => lock) },
      { lease, owners: pairs.map(([, owner]) => owner) },
    );

  test("1: raised, kept where it is higher; twice is as good as once", async () => {
    await bench.put({ a: held({ [ME]: "2" }, 15_000), b: held({ [OTHER]: "1" }, 60_000) });
    for (const _ of [1, 2]) {
      expect(await renew(30_000, ["a", ME], ["b", OTHER])).toEqual([1, 1]);
      await bench.expect({ a: held({ [ME]: "2" }, 30_000), b: held({ [OTHER]: "1" }, 60_000) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("0 and -1: what is gone or another's stays so, and its neighbours are renewed", async () => {
    const theirs = {
      taken: held({ [OTHER]: "1" }, 15_000),
      data: text("theirs", 15_000),
      list: { value: ["theirs"], ttl: -1 },
    };
    const mine = (ttl: number) => ({ first: held({ [ME]: "1" }, ttl), last: held({ [ME]: "1" }, ttl) });
    await bench.put({ ...theirs, ...mine(15_000) });
    const locks = ["first", "gone", "taken", "data", "list", "last"];
    expect(await renew(30_000, ...locks.map((lock): [string, string] => [lock, ME]))).toEqual([
      1, 0, -1, -1, -1, 1,
    ]);
    await bench.expect({ ...theirs, ...mine(30_000) });
  });

  test("the largest lease survives as text", async () => {
    await bench.put({ a: held({ [ME]: "1" }, 15_000) });
    expect(await renew(MOST, ["a", ME])).toEqual([1]);
    expect(await renew(1, ["a", ME])).toEqual([1]);
    await bench.expect({ a: held({ [ME]: "1" }, MOST) });
  });

  test("many at once, and without memory", async () => {
    const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
    await bench.put(Object.fromEntries(names.map((name) => [name, held({ [ME]: "1" }, 15_000)])));
    await bench.outOfMemory(async () => {
      const replies = await renew(30_000, ...names.map((name): [string, string] => [name, ME]));
      expect(replies).toEqual(names.map(() => 1));
    });
    await bench.expect(Object.fromEntries(names.map((name) => [name, held({ [ME]: "1" }, 30_000)])));
  });

  test("a count of many digits", async () => {
    await bench.put({ a: held({ [ME]: "12" }, 15_000) });
    expect(await renew(30_000, ["a", ME])).toEqual([1]);
    await bench.expect({ a: held({ [ME]: "12" }, 30_000) });
  });

  test.each([
    ["pttl", "a"],
    ["pexpire", "a"],
    ["exists", "gone"],
  ])("who may not %s is told so", async (command, lock) => {
    const limited = bench.runner(lockRenew, form, await bench.without(command));
    await bench.put({ a: held({ [ME]: "1" }, 15_000) });
    await expect(limited({ locks: [lock] }, { lease: 30_000, owners: [ME] })).rejects.toThrow(FORBIDDEN);
    await bench.expect({ a: held({ [ME]: "1" }, 15_000) });
  });
});
