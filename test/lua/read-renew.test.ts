import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readRenew } from "../../src/scripts/generated.js";
import { type Bench, forms, held, LOCK, ME, MOST, OTHER, type States, startBench, text } from "./bench.js";
import { CHANNEL, holds, MY_WRITE, reading, THIRD, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(readRenew))("read/renew, %s", (form) => {
  const renew = (lease: number, ...pairs: [lock: string, owner: string][]) =>
    bench.runner(readRenew, form)(
      { locks: pairs.map(([lock]) => lock) },
      { lease, owners: pairs.map(([, owner]) => owner) },
    );
  const one = (lease: number) => renew(lease, [LOCK, ME]);

  test("1: holds and lock are raised, kept where they are higher; twice is as good as once", async () => {
    await bench.put(reading({ [ME]: [15_000, 60_000, 5_000] }));
    for (const _ of [1, 2]) {
      expect(await one(30_000)).toEqual([1]);
      await bench.expect(reading({ [ME]: [30_000, 60_000, 30_000] }));
    }
    await bench.put(reading({ [ME]: [15_000] }));
    expect(await one(30_000)).toEqual([1]);
    await bench.expect(reading({ [ME]: [30_000] }));
    expect(await bench.heard()).toEqual([]);
  });

  test("1: nobody else's holds are kept alive, and their lease on the lock is not cut", async () => {
    await bench.put(reading({ [ME]: [15_000], [OTHER]: [10_000, 90_000], [THIRD]: [0] }));
    expect(await one(30_000)).toEqual([1]);
    await bench.expect(reading({ [ME]: [30_000], [OTHER]: [10_000, 90_000], [THIRD]: [0] }));
  });

  test("1: a lapsed hold is not made anew while another of its owner lives", async () => {
    await bench.put(reading({ [ME]: [0, 15_000, 0] }));
    expect(await one(30_000)).toEqual([1]);
    await bench.expect(reading({ [ME]: [0, 30_000, 0] }));
  });

  test("1: while the owner writes, the write lease is not cut", async () => {
    await bench.put(writing(90_000, "1", [15_000]));
    expect(await one(30_000)).toEqual([1]);
    await bench.expect(writing(90_000, "1", [30_000]));
  });

  test("-1: others read, without end", async () => {
    await bench.put(reading({ [OTHER]: [15_000] }, -1));
    expect(await one(30_000)).toEqual([-1]);
    await bench.expect(reading({ [OTHER]: [15_000] }, -1));
  });

  test("-1: an owner whose holds have all lapsed is told so, and leaves no count behind", async () => {
    await bench.put(reading({ [ME]: [0, 0], [OTHER]: [15_000] }));
    for (const _ of [1, 2]) {
      expect(await one(30_000)).toEqual([-1]);
      await bench.expect(reading({ [OTHER]: [15_000] }));
    }
  });

  test("0 and -1: what is gone or another's stays so, and its neighbours are renewed", async () => {
    const theirs = {
      read: held({ mode: "read", [OTHER]: "1" }, 15_000),
      ...holds(OTHER, [15_000], "{read}"),
      lapsed: held({ mode: "read", [OTHER]: "1" }, 15_000),
      written: held({ mode: "write", [`${OTHER}:write`]: "1" }, 15_000),
      mine: held({ mode: "write", [MY_WRITE]: "1" }, 15_000),
      plain: held({ [OTHER]: "1" }, 15_000),
      data: text("theirs", 15_000),
      list: { value: ["theirs"], ttl: -1 },
    };
    const mine = (ttl: number): States => ({
      first: held({ mode: "read", [ME]: "1" }, ttl),
      ...holds(ME, [ttl], "{first}"),
      "{l}ast": held({ mode: "read", [ME]: "1" }, ttl),
      ...holds(ME, [ttl], "{l}ast"),
    });
    await bench.put({ ...theirs, ...mine(15_000) });
    const locks = ["first", "gone", "read", "lapsed", "written", "mine", "plain", "data", "list", "{l}ast"];
    expect(await renew(30_000, ...locks.map((lock): [string, string] => [lock, ME]))).toEqual([
      1, 0, -1, 0, -1, 0, -1, -1, -1, 1,
    ]);
    // What is left of dead readers goes.
    const { lapsed, ...living } = theirs;
    await bench.expect({ ...living, ...mine(30_000) });
  });

  test("each lock is renewed for its own owner", async () => {
    const two = (mine: number, theirs: number): States => ({
      a: held({ mode: "read", [ME]: "1", [OTHER]: "1" }, mine),
      ...holds(ME, [mine], "{a}"),
      ...holds(OTHER, [10_000], "{a}"),
      größe: held({ mode: "read", [ME]: "1", [OTHER]: "1" }, theirs),
      ...holds(ME, [10_000], "{größe}"),
      ...holds(OTHER, [theirs], "{größe}"),
    });
    await bench.put(two(20_000, 20_000));
    expect(await renew(30_000, ["a", ME], ["größe", OTHER])).toEqual([1, 1]);
    await bench.expect(two(30_000, 30_000));
  });

  test("the largest lease survives as text", async () => {
    await bench.put(reading({ [ME]: [15_000] }));
    expect(await one(MOST)).toEqual([1]);
    expect(await one(1)).toEqual([1]);
    await bench.expect(reading({ [ME]: [MOST] }));
  });

  test("many at once, and without memory", async () => {
    const names = Array.from({ length: 300 }, (_, i) => `n${i}`);
    const states = (ttl: number): States =>
      Object.assign(
        {},
        ...names.map((name) => ({
          [name]: held({ mode: "read", [ME]: "2" }, ttl),
          ...holds(ME, [ttl, ttl], `{${name}}`),
        })),
      );
    await bench.put(states(15_000));
    await bench.outOfMemory(async () => {
      const replies = await renew(30_000, ...names.map((name): [string, string] => [name, ME]));
      expect(replies).toEqual(names.map(() => 1));
    });
    await bench.expect(states(30_000));
  });

  test("a count of two digits", async () => {
    const terms = Array<number>(12).fill(15_000);
    await bench.put(reading({ [ME]: terms }));
    expect(await one(30_000)).toEqual([1]);
    await bench.expect(reading({ [ME]: terms.map(() => 30_000) }));
  });

  test.each<[string, States]>([
    ["pttl", reading({ [ME]: [15_000] })],
    ["pexpire", reading({ [ME]: [15_000] })],
    ["exists", {}],
    ["hget", reading({ [ME]: [0], [OTHER]: [15_000] })],
    ["del", reading({ [ME]: [0] }, 15_000)],
    ["hdel", reading({ [ME]: [0], [OTHER]: [15_000] })],
  ])("who may not %s is told so", async (command, before) => {
    await bench.put(before);
    const args = { lease: 30_000, owners: [ME] };
    if (command === "hget") {
      const limited = bench.runner(readRenew, form, await bench.without(command));
      // As of a key with other data: it cannot be told apart, and is not renewed.
      expect(await limited({ locks: [LOCK] }, args)).toEqual([-1]);
      await bench.expect(before);
    } else await bench.expectRefusal(command, readRenew, form, { locks: [LOCK] }, args);
  });
});
