import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readUndo } from "../../src/scripts/generated.js";
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
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { announced, CHANNEL, ENDING_KEYS, holds, over, reading, THIRD, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(readUndo))("read/undo, %s", (form) => {
  const args = (left: number, terms: number[], more = {}) => ({
    owner: ME,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    terms,
    ...more,
  });
  const undo = (left = 0, terms: number[] = [], more = {}) =>
    bench.runner(readUndo, form)(ENDING_KEYS, args(left, terms, more));

  test.each(publishers)(
    "1: an acquire of the only reader, announced by %s; and 0 the next time",
    async (publish) => {
      await bench.put(reading({ [ME]: [30_000] }));
      expect(await undo(0, [], { publish })).toBe(1);
      await bench.expect(over);
      expect(await bench.heard()).toEqual(announced("0", publish));
      expect(await undo(0, [], { publish, tombstoneTtl: 90_000 })).toBe(0);
      await bench.expect(over);
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: an acquire beside other readers, who keep the lock as long as they last", async () => {
    await bench.put(reading({ [ME]: [60_000], [OTHER]: [10_000], [THIRD]: [20_000, 30_000] }));
    for (const reply of [1, 0]) {
      expect(await undo()).toBe(reply);
      await bench.expect({ ...reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000] }), ...over });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: an acquire beside readers that have all lapsed takes the lock away and tells", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [0, 0] }));
    expect(await undo()).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test.each([
    ["up", [60_000, 20_000], 60_000],
    ["down", [15_000, 20_000], 20_000],
  ])("1: a nested acquire alone, the TTL set %s; and 0 the next time", async (_, terms, left) => {
    await bench.put(reading({ [ME]: [30_000, 30_000, 30_000] }));
    expect(await undo(left, terms)).toBe(1);
    await bench.expect({ ...reading({ [ME]: terms }), ...over });
    await bench.redis.pexpire(LOCK, 90_000);
    expect(await undo(left, terms)).toBe(0);
    await bench.expect({ ...reading({ [ME]: terms }, 90_000), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["its first read hold, so that only its write holds stay", [], 60_000, 60_000],
    ["a further read hold", [5_000], 60_000, 60_000],
    ["a read hold when nothing else lasts: the write side keeps what it has", [], 0, 90_000],
  ])("1: while the owner writes, %s", async (_, terms, left, ttl) => {
    await bench.put(writing(90_000, "2", [...terms, 90_000]));
    expect(await undo(left, terms)).toBe(1);
    await bench.expect({ ...writing(ttl, "2", terms), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, number[], States]>([
    ["a free lock", [], {}],
    ["a lock that others read", [], reading({ [OTHER]: [30_000] })],
    ["a lock that another writes", [], writing(30_000, "1", [], OTHER)],
    ["a lock that the owner only writes", [], writing(30_000)],
    ["a count that is lower", [60_000, 60_000], reading({ [ME]: [30_000] })],
    ["a count that is the same", [60_000], reading({ [ME]: [30_000] })],
  ])("0: %s has nothing to undo; the tombstone stands", async (_, terms, before) => {
    await bench.put(before);
    expect(await undo(60_000, terms)).toBe(0);
    await bench.expect({ ...before, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("0: an earlier run has undone it, and a later one changes nothing more", async () => {
    const states = { ...reading({ [ME]: [30_000, 30_000] }), ...over };
    await bench.put(states);
    expect(await undo(60_000, [60_000], { tombstoneTtl: 80_000 })).toBe(0);
    expect(await undo(0, [], { tombstoneTtl: 80_000 })).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("1: the only reader's, of a lock that would last longer than its hold", async () => {
    await bench.put(reading({ [ME]: [10_000] }, 30_000));
    expect(await undo()).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test("1: the terms of the holds left are set, also of those that have lapsed on either side", async () => {
    await bench.put(reading({ [ME]: [0, 30_000, 30_000, 30_000] }));
    expect(await undo(30_000, [20_000, 0, 30_000])).toBe(1);
    await bench.expect({ ...reading({ [ME]: [20_000, 0, 30_000] }), ...over });
    await bench.put(reading({ [ME]: [0, 30_000, 30_000] }));
    expect(await undo(30_000, [0, 30_000])).toBe(1);
    await bench.expect({ ...reading({ [ME]: [0, 30_000] }), ...over });
  });

  test("1: a term that becomes the longest of all raises the TTL of the lock", async () => {
    await bench.put(reading({ [ME]: [10_000, 10_000], [OTHER]: [30_000] }));
    expect(await undo(60_000, [60_000])).toBe(1);
    await bench.expect({ ...reading({ [ME]: [60_000], [OTHER]: [30_000] }), ...over });
  });

  test("1: a lock that somebody else left without end stays with its other readers", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [20_000], [THIRD]: [50_000] }, -1));
    expect(await undo()).toBe(1);
    await bench.expect({ ...reading({ [OTHER]: [20_000], [THIRD]: [50_000] }), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("counts of two digits are numbers, not text", async () => {
    const nine = Array<number>(9).fill(30_000);
    await bench.put(reading({ [ME]: [...nine, 30_000] }));
    expect(await undo(30_000, nine)).toBe(1);
    await bench.expect({ ...reading({ [ME]: nine }), ...over });
  });

  test("the largest numbers survive as text", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000] }));
    expect(await undo(MOST, [MOST], { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ ...reading({ [ME]: [MOST] }), [TOMBSTONE]: text("1", MOST) });
    await bench.put(writing(30_000, "1", [30_000]));
    expect(await undo(MOST, [])).toBe(1);
    await bench.expect({ ...writing(MOST), ...over });
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      await bench.put({
        [name]: held({ mode: "read", [ME]: "2" }, 30_000),
        ...holds(ME, [30_000, 30_000], base),
      });
      expect(await bench.runner(readUndo, form)({ ...ENDING_KEYS, lock: name }, args(30_000, [30_000]))).toBe(
        1,
      );
      await bench.expect({
        [name]: held({ mode: "read", [ME]: "1" }, 30_000),
        ...holds(ME, [30_000], base),
        ...over,
      });
    }
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(undo()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000), ...over });
  });

  test("who may not announce may undo", async () => {
    const mute = await bench.withoutChannels();
    await bench.put(reading({ [ME]: [30_000] }));
    expect(await bench.runner(readUndo, form, mute)(ENDING_KEYS, args(0, []))).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, number, number[], States]>([
    ["a nested acquire", 60_000, [60_000], { ...reading({ [ME]: [60_000] }), ...over }],
    ["an acquire", 0, [], over],
    ["nothing", 60_000, [1, 2], { ...reading({ [ME]: [30_000, 30_000] }), ...over }],
  ])("without memory %s is undone as ever", async (_, left, terms, after) => {
    await bench.put(reading({ [ME]: [30_000, 30_000] }));
    await bench.outOfMemory(async () => {
      expect(await undo(left, terms)).toBe(terms.length === 2 ? 0 : 1);
    });
    await bench.expect(after);
  });

  const two = reading({ [ME]: [30_000, 30_000] });
  test.each<[string, number, number[], States]>([
    ["exists", 0, [], two],
    ["del", 0, [], two],
    ["set", 0, [], two],
    ["hget", 0, [], two],
    ["hdel", 0, [], two],
    ["hset", 20_000, [20_000], two],
    ["hgetall", 20_000, [20_000], two],
    ["pttl", 20_000, [20_000], two],
    ["pexpire", 20_000, [20_000], two],
    ["pexpire", 20_000, [], writing(30_000, "1", [30_000])],
  ])("who may not %s is told so", async (command, left, terms, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, readUndo, form, ENDING_KEYS, args(left, terms));
  });
});
