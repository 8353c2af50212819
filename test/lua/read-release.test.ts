import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readRelease } from "../../src/scripts/generated.js";
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
import { announced, CHANNEL, ENDING_KEYS, holdKey, holds, over, reading, THIRD, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(readRelease))("read/release, %s", (form) => {
  const args = (left: number, terms: number[], more = {}) => ({
    owner: ME,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    terms,
    ...more,
  });
  const release = (left: number, terms: number[], more = {}) =>
    bench.runner(readRelease, form)(ENDING_KEYS, args(left, terms, more));

  test.each(publishers)("1: the last hold of the last reader, announced by %s", async (publish) => {
    await bench.put(reading({ [ME]: [30_000] }));
    expect(await release(0, [], { publish })).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0", publish));
  });

  test("1: sent again, it finds its tombstone and does nothing more", async () => {
    await bench.put(reading({ [ME]: [30_000] }));
    await release(0, []);
    await bench.heard();
    expect(await release(0, [], { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect(over);
    const others = { ...writing(30_000, "1", [], OTHER), ...over };
    await bench.put(others);
    expect(await release(0, [])).toBe(1);
    await bench.expect(others);
    expect(await bench.heard()).toEqual([]);
  });

  test("1: the last hold of one of several readers; the TTL is the longest of the others", async () => {
    await bench.put(reading({ [ME]: [60_000, 50_000], [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0] }));
    for (const _ of [1, 2]) {
      expect(await release(0, [])).toBe(1);
      await bench.expect({ ...reading({ [OTHER]: [10_000], [THIRD]: [20_000, 30_000, 0] }), ...over });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: when the other readers have lapsed, the last that lives takes them away and tells", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [0, 0], [THIRD]: [0] }));
    expect(await release(0, [])).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test("1: likewise, when the lock itself would have lasted longer than all their holds", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [0, 0], [THIRD]: [0] }, 90_000));
    expect(await release(0, [])).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test("1: one of several readers of a lock without end leaves it to the others", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [50_000] }, -1));
    expect(await release(0, [])).toBe(1);
    await bench.expect({ ...reading({ [OTHER]: [50_000] }), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a TTL that others may need is kept as long as somebody else is seen to read", async () => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [20_000] }, 90_000));
    expect(await release(0, [])).toBe(1);
    await bench.expect({ ...reading({ [OTHER]: [20_000] }, 90_000), ...over });
    await bench.put(reading({ [ME]: [30_000, 30_000], [OTHER]: [0] }, 90_000));
    expect(await release(15_000, [15_000])).toBe(1);
    await bench.expect(reading({ [ME]: [15_000], [OTHER]: [0] }, 15_000));
  });

  test("1: readers with more holds than are looked for keep the lock for its time", async () => {
    const countless = (ttl: number): States => ({
      [LOCK]: held({ mode: "read", [OTHER]: "99999" }, ttl),
    });
    for (const [ttl, left] of [
      [60_000, 60_000],
      [-1, 2 ** 52],
    ] as const) {
      const { [LOCK]: lock, ...keys } = reading({ [ME]: [60_000] });
      await bench.put({ [LOCK]: held({ ...(lock?.value as object), [OTHER]: "99999" }, ttl), ...keys });
      expect(await release(0, [])).toBe(1);
      await bench.expect({ ...countless(left), ...over });
    }
  });

  test("1: the search goes over all readers, and finds the last hold that it may look for", async () => {
    const last = { [holdKey(THIRD, 5_001)]: text("1", 30_000) };
    const others = { mode: "read", [OTHER]: "5002", [THIRD]: "5001" };
    await bench.put({ ...reading({ [ME]: [90_000] }), ...last });
    await bench.redis.hset(LOCK, others);
    expect(await release(0, [])).toBe(1);
    await bench.expect({ [LOCK]: held(others, 30_000), ...last, ...over });
  });

  test("1: no hold stays behind of an owner that has as many as are looked for", async () => {
    await bench.put({
      [LOCK]: held({ mode: "read", [ME]: "10002" }, 60_000),
      [holdKey(ME, 10_002)]: text("1", 30_000),
    });
    expect(await release(0, [])).toBe(1);
    await bench.expect(over);
  });

  test("1: a field that is no lock's is not deleted with the last reader", async () => {
    await bench.put(reading({ [ME]: [30_000] }));
    await bench.redis.hset(LOCK, "name", "theirs");
    expect(await release(0, [])).toBe(1);
    await bench.expect({ [LOCK]: held({ mode: "read", name: "theirs" }, 30_000), ...over });
  });

  test.each([
    ["up", [60_000, 20_000], 60_000],
    ["down", [15_000, 20_000], 20_000],
  ])("1: with holds left, each has its own term, and the lock the longest, %s", async (_, terms, left) => {
    await bench.put(reading({ [ME]: [30_000, 30_000, 30_000] }));
    for (const _again of [1, 2]) {
      expect(await release(left, terms)).toBe(1);
      await bench.expect(reading({ [ME]: terms }));
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: with holds left, the TTL is not below that of another reader", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000], [OTHER]: [60_000] }));
    expect(await release(15_000, [15_000])).toBe(1);
    await bench.expect(reading({ [ME]: [15_000], [OTHER]: [60_000] }));
  });

  test("1: a term that becomes the longest of all raises the TTL of the lock", async () => {
    await bench.put(reading({ [ME]: [10_000, 10_000], [OTHER]: [30_000] }));
    expect(await release(60_000, [60_000])).toBe(1);
    await bench.expect(reading({ [ME]: [60_000], [OTHER]: [30_000] }));
  });

  test("1: a hold left whose term is over keeps its number, without a key", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000, 30_000] }));
    expect(await release(20_000, [0, 20_000])).toBe(1);
    await bench.expect(reading({ [ME]: [0, 20_000] }));
    expect(await release(20_000, [20_000])).toBe(1);
    await bench.expect(reading({ [ME]: [20_000] }));
  });

  test("1: hundreds of holds, without limit of what Lua can unpack", async () => {
    const terms = Array<number>(9_000).fill(30_000);
    await bench.put({
      [LOCK]: held({ mode: "read", [ME]: "1" }, 30_000),
      [holdKey(ME, 1)]: text("1", 30_000),
    });
    expect(await release(30_000, terms)).toBe(1);
    expect(await bench.redis.hget(LOCK, ME)).toBe("9000");
    expect(await bench.redis.dbsize()).toBe(9_001);
    expect(await release(0, [])).toBe(1);
    await bench.expect(over);
  });

  describe("while the owner writes", () => {
    test("1: its last read hold; the write lease is not cut to the reads'; sent again, it finds its tombstone", async () => {
      await bench.put(writing(60_000, "2", [5_000, 90_000]));
      for (const _ of [1, 2]) {
        expect(await release(60_000, [])).toBe(1);
        await bench.expect({ ...writing(60_000, "2"), ...over });
      }
      expect(await bench.heard()).toEqual([]);
    });

    test("1: one of several; the TTL is that of the longest hold on either side", async () => {
      await bench.put(writing(90_000, "2", [90_000, 5_000]));
      expect(await release(60_000, [5_000])).toBe(1);
      await bench.expect(writing(60_000, "2", [5_000]));
      await bench.put(writing(30_000, "2", [5_000, 5_000]));
      expect(await release(60_000, [60_000])).toBe(1);
      await bench.expect(writing(60_000, "2", [60_000]));
    });

    test("1: when no hold lasts, the write side keeps what it has, and nobody is told", async () => {
      await bench.put(writing(60_000, "1", [5_000]));
      expect(await release(0, [])).toBe(1);
      await bench.expect({ ...writing(60_000), ...over });
      expect(await bench.heard()).toEqual([]);
    });

    test("0: it does not read, and nobody else holds the lock", async () => {
      await bench.put(writing(60_000));
      expect(await release(60_000, [])).toBe(0);
      await bench.expect(writing(60_000));
    });
  });

  test("1: a nested release whose call is over changes nothing", async () => {
    const states = { ...reading({ [ME]: [30_000, 30_000] }), ...over };
    await bench.put(states);
    expect(await release(60_000, [60_000])).toBe(1);
    await bench.expect(states);
  });

  test("1: the last hold is given back though the owner's writing has left a tombstone", async () => {
    await bench.put({ ...reading({ [ME]: [10_000] }), ...over });
    expect(await release(0, [], { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test.each([
    ["the last hold", 0, []],
    ["a nested hold", 20_000, [20_000]],
  ])("0 and -1: %s that is not there", async (_, left, terms) => {
    await bench.put({});
    expect(await release(left, terms)).toBe(0);
    await bench.expect({});
    for (const states of [reading({ [OTHER]: [30_000] }), writing(30_000, "1", [10_000], OTHER)]) {
      await bench.put(states);
      expect(await release(left, terms)).toBe(-1);
      await bench.expect(states);
    }
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, number, States]>([
    [
      "0: only lapsed readers are there; what is left of them goes",
      0,
      reading({ [OTHER]: [0], [THIRD]: [0, 0] }, 30_000),
    ],
    ["-1: a plain lock is there", -1, { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
  ])("%s", async (_, reply, states) => {
    await bench.put(states);
    expect(await release(0, [])).toBe(reply);
    await bench.expect(reply === 0 ? {} : states);
  });

  test("the largest terms survive as text", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000] }));
    expect(await release(MOST, [MOST])).toBe(1);
    await bench.expect(reading({ [ME]: [MOST] }));
    await bench.put(writing(30_000, "1", [30_000]));
    expect(await release(MOST, [])).toBe(1);
    await bench.expect({ ...writing(MOST), ...over });
    await bench.put(reading({ [ME]: [30_000] }));
    expect(await release(0, [], { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", MOST) });
  });

  test.each([
    ["größe:日本", "{größe:日本}"],
    ["{a}:c", "{a}:c"],
    ["a}b", "{a}b}"],
  ])("the hold keys of %s begin with %s", async (name, base) => {
    await bench.put({
      [name]: held({ mode: "read", [ME]: "2" }, 30_000),
      ...holds(ME, [30_000, 30_000], base),
    });
    const keys = { ...ENDING_KEYS, lock: name };
    expect(await bench.runner(readRelease, form)(keys, args(60_000, [60_000]))).toBe(1);
    await bench.expect({ [name]: held({ mode: "read", [ME]: "1" }, 60_000), ...holds(ME, [60_000], base) });
    expect(await bench.runner(readRelease, form)(keys, args(0, []))).toBe(1);
    await bench.expect(over);
  });

  test.each([
    [0, []],
    [20_000, [20_000]],
  ])("a key with other data stays as it is (%i ms left)", async (left, terms) => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(release(left, terms)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory it works as ever", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000] }));
    await bench.outOfMemory(async () => {
      expect(await release(60_000, [60_000])).toBe(1);
      await bench.expect(reading({ [ME]: [60_000] }));
      expect(await release(0, [])).toBe(1);
    });
    await bench.expect(over);
    expect(await bench.heard()).toHaveLength(1);
  });

  test("who may not announce may release", async () => {
    const mute = await bench.withoutChannels();
    await bench.put(reading({ [ME]: [30_000] }));
    expect(await bench.runner(readRelease, form, mute)(ENDING_KEYS, args(0, []))).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  const two = reading({ [ME]: [30_000, 30_000] });
  test.each<[string, number, number[], States]>([
    ["hexists", 20_000, [20_000], two],
    ["exists", 20_000, [20_000], two],
    ["hget", 20_000, [20_000], two],
    ["set", 20_000, [20_000], reading({ [ME]: [0, 30_000] })],
    ["del", 20_000, [20_000], two],
    ["hset", 20_000, [20_000], two],
    ["hgetall", 20_000, [20_000], two],
    ["pttl", 20_000, [20_000], two],
    ["pexpire", 20_000, [20_000], two],
    ["pexpire", 20_000, [], writing(30_000, "1", [30_000])],
    ["set", 0, [], two],
    ["hdel", 0, [], two],
    ["del", 0, [], two],
    ["exists", 0, [], {}],
    ["hexists", 0, [], writing(30_000)],
    ["hget", 0, [], {}],
    ["hgetall", 0, [], reading({ [OTHER]: [30_000] })],
  ])("who may not %s is told so (%i ms left)", async (command, left, terms, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, readRelease, form, ENDING_KEYS, args(left, terms));
  });
});
