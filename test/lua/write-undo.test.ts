import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeUndo } from "../../src/scripts/generated.js";
import {
  type Bench,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  publishers,
  type States,
  scored,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import {
  announced,
  CHANNEL,
  ENDING_KEYS,
  holds,
  MY_WRITE,
  over,
  reading,
  THIRD,
  WRITERS,
  writing,
} from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const keys = { ...ENDING_KEYS, writers: WRITERS };
const marks = (...writers: [string, number][]): States => ({
  [WRITERS]: scored(Object.fromEntries(writers), 40_000),
});

describe.each(forms(writeUndo))("write/undo, %s", (form) => {
  const args = (count: number, left: number, more = {}) => ({
    owner: ME,
    field: MY_WRITE,
    count,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    ...more,
  });

  const undo = (count = 0, left = 0, more = {}) =>
    bench.runner(writeUndo, form)(keys, args(count, left, more));

  test.each(publishers)(
    "1: an acquire, announced by %s to all who wait; and 0 the next time",
    async (publish) => {
      await bench.put(writing(30_000));
      expect(await undo(0, 0, { publish })).toBe(1);
      await bench.expect(over);
      expect(await bench.heard()).toEqual(announced("1", publish));
      expect(await undo(0, 0, { publish, tombstoneTtl: 90_000 })).toBe(0);
      await bench.expect(over);
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: an acquire leaves the owner's read holds, and all who wait are told", async () => {
    await bench.put(writing(90_000, "12", [10_000, 30_000]));
    expect(await undo(0, 30_000)).toBe(1);
    await bench.expect({ ...reading({ [ME]: [10_000, 30_000] }), ...over });
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test("1: read holds that have lapsed do not keep the lock", async () => {
    await bench.put(writing(90_000, "1", [0, 0]));
    expect(await undo()).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: a nested acquire alone, the TTL set %s; and 0 the next time", async (_, left) => {
    await bench.put(writing(30_000, "3", [10_000]));
    expect(await undo(2, left)).toBe(1);
    await bench.expect({ ...writing(left, "2", [10_000]), ...over });
    await bench.redis.pexpire(LOCK, 90_000);
    expect(await undo(2, left)).toBe(0);
    await bench.expect({ ...writing(90_000, "2", [10_000]), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  describe("a writer that waits and gives up", () => {
    test.each(publishers)(
      "1: the last one; the readers are told by %s; and 0 the next time",
      async (publish) => {
        const lock = reading({ [OTHER]: [30_000] });
        await bench.put({ ...lock, ...marks([ME, 5_000]) });
        expect(await undo(0, 0, { publish })).toBe(1);
        await bench.expect({ ...lock, ...over });
        expect(await bench.heard()).toEqual(announced("1", publish));
        expect(await undo(0, 0, { publish })).toBe(0);
        expect(await bench.heard()).toEqual([]);
      },
    );

    test("1: not the last one, so nobody is told", async () => {
      const lock = reading({ [OTHER]: [30_000] });
      await bench.put({ ...lock, ...marks([ME, 5_000], [THIRD, 6_000]) });
      expect(await undo()).toBe(1);
      await bench.expect({ ...lock, ...marks([THIRD, 6_000]), ...over });
      expect(await bench.heard()).toEqual([]);
    });

    test("1: the last one that lives; the readers are told though a dead one is marked still", async () => {
      await bench.put({ ...reading({ [OTHER]: [30_000] }), ...marks([THIRD, -1], [ME, 5_000]) });
      expect(await undo()).toBe(1);
      expect(await bench.heard()).toEqual(announced("1"));
    });

    test("1: another writes meanwhile, and is not disturbed", async () => {
      const lock = writing(30_000, "1", [], OTHER);
      await bench.put({ ...lock, ...marks([ME, 5_000], [THIRD, 6_000]) });
      expect(await undo()).toBe(1);
      await bench.expect({ ...lock, ...marks([THIRD, 6_000]), ...over });
    });
  });

  test.each<[string, number, number, States]>([
    ["a free lock", 0, 0, {}],
    ["a free lock, for which other writers wait,", 0, 0, marks([THIRD, 6_000])],
    ["another's lock", 0, 0, writing(30_000, "1", [], OTHER)],
    ["a lock that the owner only reads", 0, 30_000, reading({ [ME]: [30_000] })],
    ["a count that is lower", 2, 60_000, writing(30_000)],
    ["a count that is the same", 1, 60_000, writing(30_000)],
  ])("0: %s has nothing to undo; the tombstone stands", async (_, count, left, before) => {
    await bench.put(before);
    expect(await undo(count, left)).toBe(0);
    await bench.expect({ ...before, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("0: an earlier run has undone it, and a later one changes nothing more", async () => {
    const states = { ...writing(30_000, "3"), ...marks([ME, 5_000]), ...over };
    await bench.put(states);
    expect(await undo(2, 60_000, { tombstoneTtl: 80_000 })).toBe(0);
    expect(await undo(0, 0, { tombstoneTtl: 80_000 })).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put(writing(30_000, String(MOST)));
    expect(await undo(MOST - 1, MOST, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ ...writing(MOST, String(MOST - 1)), [TOMBSTONE]: text("1", MOST) });
    await bench.put(writing(30_000, "1", [MOST]));
    expect(await undo()).toBe(1);
    await bench.expect({ ...reading({ [ME]: [MOST] }), ...over });
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      const mine = holds(ME, [30_000], base);
      await bench.put({ [name]: held({ mode: "write", [MY_WRITE]: "1", [ME]: "1" }, 90_000), ...mine });
      expect(await bench.runner(writeUndo, form)({ ...keys, lock: name }, args(0, 30_000))).toBe(1);
      await bench.expect({ [name]: held({ mode: "read", [ME]: "1" }, 30_000), ...mine, ...over });
    }
  });

  test.each<[string, States]>([
    ["the lock", { [LOCK]: text("theirs", 60_000) }],
    ["the waiting writers", { ...writing(30_000), [WRITERS]: text("theirs", 60_000) }],
  ])("other data in the key of %s stays as it is", async (_, states) => {
    await bench.put(states);
    await expect(undo()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ ...states, ...over });
  });

  test("who may not announce may undo", async () => {
    const mute = bench.runner(writeUndo, form, await bench.withoutChannels());
    for (const before of [writing(30_000), marks([ME, 5_000])]) {
      await bench.put(before);
      expect(await mute(keys, args(0, 0))).toBe(1);
      await bench.expect(over);
    }
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, number, number, States]>([
    ["a nested acquire", 1, 60_000, { ...writing(60_000, "1", [10_000]), ...over }],
    ["an acquire", 0, 10_000, { ...reading({ [ME]: [10_000] }), ...over }],
    ["nothing", 2, 60_000, { ...writing(30_000, "2", [10_000]), ...over }],
  ])("without memory %s is undone as ever", async (_, count, left, after) => {
    await bench.put(writing(30_000, "2", [10_000]));
    await bench.outOfMemory(async () => {
      expect(await undo(count, left)).toBe(count === 2 ? 0 : 1);
    });
    await bench.expect(after);
  });

  const both = writing(30_000, "2", [10_000]);
  test.each<[string, number, number, States]>([
    ["exists", 0, 0, both],
    ["del", 0, 0, both],
    ["set", 0, 0, both],
    ["zrem", 0, 0, both],
    ["zremrangebyscore", 0, 0, both],
    ["time", 0, 0, both],
    ["hget", 0, 0, both],
    ["pexpire", 1, 20_000, both],
    ["hset", 1, 20_000, both],
    ["pttl", 0, 0, both],
    ["hdel", 0, 0, both],
    ["hset", 0, 0, both],
    ["pexpire", 0, 0, both],
  ])("who may not %s is told so", async (command, count, left, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, writeUndo, form, keys, args(count, left));
  });
});
