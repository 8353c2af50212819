import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readExtend } from "../../src/scripts/generated.js";
import { type Bench, forms, held, LOCK, ME, MOST, OTHER, type States, startBench, text } from "./bench.js";
import { CHANNEL, holds, reading, THIRD, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const CALL = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:7";
const KEYS = { lock: LOCK, tombstone: CALL };

describe.each(forms(readExtend))("read/extend, %s", (form) => {
  const args = (left: number, terms: number[]) => ({ owner: ME, left, terms });
  const extend = (left: number, ...terms: number[]) =>
    bench.runner(readExtend, form)(KEYS, args(left, terms));

  test.each([
    ["up", [60_000, 10_000], 60_000],
    ["down", [15_000, 10_000], 15_000],
    ["to the most there is", [MOST, 10_000], MOST],
  ])(
    "1: the terms of all holds are set, and with them the TTL, %s, once however often",
    async (_, terms, left) => {
      await bench.put(reading({ [ME]: [30_000, 30_000] }));
      for (const _again of [1, 2]) {
        expect(await extend(left, ...terms)).toBe(1);
        await bench.expect(reading({ [ME]: terms }));
      }
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: a lock that outlives its only reader, by a pause of the server, gets that one's shorter term", async () => {
    await bench.put(reading({ [ME]: [30_000] }, 30_500));
    expect(await extend(10_000, 10_000)).toBe(1);
    await bench.expect(reading({ [ME]: [10_000] }));
  });

  test("1: a shorter term does not cut the lease of another reader", async () => {
    await bench.put(reading({ [ME]: [60_000], [OTHER]: [40_000] }));
    expect(await extend(10_000, 10_000)).toBe(1);
    await bench.expect(reading({ [ME]: [10_000], [OTHER]: [40_000] }));
  });

  test("1: a term that becomes the longest of all raises the TTL of the lock", async () => {
    await bench.put(reading({ [ME]: [10_000], [OTHER]: [30_000] }));
    expect(await extend(60_000, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [60_000], [OTHER]: [30_000] }));
  });

  test("1: a lock that somebody else left without end gets the longest term of all", async () => {
    await bench.put(reading({ [ME]: [30_000], [THIRD]: [40_000], [OTHER]: [50_000] }, -1));
    expect(await extend(20_000, 20_000)).toBe(1);
    await bench.expect(reading({ [ME]: [20_000], [THIRD]: [40_000], [OTHER]: [50_000] }));
  });

  test("1: while the owner writes, the TTL is that of its longest hold on either side", async () => {
    await bench.put(writing(90_000, "1", [30_000]));
    expect(await extend(60_000, 10_000)).toBe(1);
    await bench.expect(writing(60_000, "1", [10_000]));
  });

  test("1: a hold that has lapsed is extended as long as another of its owner lives", async () => {
    await bench.put(reading({ [ME]: [0, 30_000] }));
    expect(await extend(60_000, 60_000, 30_000)).toBe(1);
    await bench.expect(reading({ [ME]: [60_000, 30_000] }));
  });

  test("1: terms that are over, or missing, end their holds", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000, 30_000] }));
    expect(await extend(60_000, 0, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [0, 60_000] }));
    expect(await extend(60_000, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [60_000] }));
  });

  test.each<[string, States, States]>([
    ["those of the only reader", reading({ [ME]: [30_000] }), {}],
    [
      "those of one of several",
      reading({ [ME]: [30_000], [OTHER]: [40_000] }),
      reading({ [OTHER]: [40_000] }),
    ],
    ["those of a writer", writing(30_000, "1", [30_000]), writing(30_000)],
  ])("1: no terms at all end %s", async (_, before, after) => {
    await bench.put(before);
    expect(await extend(0)).toBe(1);
    await bench.expect(after);
  });

  test("1: no terms at all end a lock that would last longer than its only hold", async () => {
    await bench.put(reading({ [ME]: [10_000] }, 30_000));
    expect(await extend(0)).toBe(1);
    await bench.expect({});
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a call that is over changes nothing", async () => {
    const states = { ...reading({ [ME]: [30_000] }), [CALL]: text("1", 20_000) };
    await bench.put(states);
    expect(await extend(60_000, 60_000)).toBe(1);
    await bench.expect(states);
  });

  test.each<[string, number, States]>([
    ["0: the lock is gone, and is not made again", 0, {}],
    ["-1: others read", -1, reading({ [OTHER]: [30_000] })],
    ["0: the owner writes, and reads no more", 0, writing(30_000)],
    ["0: the owner writes, and its read holds have lapsed", 0, writing(30_000, "1", [0])],
    ["-1: a plain lock of that name is there", -1, { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
    ["-1: others read, without end", -1, reading({ [OTHER]: [30_000] }, -1)],
    ["-1: another writes", -1, writing(30_000, "1", [], OTHER)],
    ["-1: its holds have lapsed, and are not made again", -1, reading({ [ME]: [0, 0], [OTHER]: [30_000] })],
  ])("%s", async (_, reply, states) => {
    await bench.put(states);
    expect(await extend(60_000, 60_000, 60_000)).toBe(reply);
    await bench.expect(states);
  });

  test("0: all who read have lapsed; what is left of them goes", async () => {
    await bench.put(reading({ [OTHER]: [0], [ME]: [0] }, 30_000));
    expect(await extend(60_000, 60_000)).toBe(0);
    await bench.expect({});
  });

  test("hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      await bench.put({ [name]: held({ mode: "read", [ME]: "1" }, 30_000), ...holds(ME, [30_000], base) });
      expect(await bench.runner(readExtend, form)({ ...KEYS, lock: name }, args(60_000, [60_000]))).toBe(1);
      await bench.expect({ [name]: held({ mode: "read", [ME]: "1" }, 60_000), ...holds(ME, [60_000], base) });
    }
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(extend(90_000, 90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test("without memory it works as ever", async () => {
    await bench.put(reading({ [ME]: [30_000, 30_000] }));
    await bench.outOfMemory(async () => {
      expect(await extend(60_000, 10_000, 60_000)).toBe(1);
    });
    await bench.expect(reading({ [ME]: [10_000, 60_000] }));
  });

  const mine = reading({ [ME]: [30_000] });
  test.each<[string, States]>([
    ["exists", mine],
    ["hget", mine],
    ["pttl", mine],
    ["set", reading({ [ME]: [0, 30_000] })],
    ["hset", mine],
    ["pexpire", mine],
    ["pexpire", writing(30_000, "1", [30_000])],
    ["exists", {}],
    ["del", reading({ [ME]: [30_000, 30_000] })],
    ["hexists", writing(30_000)],
    ["hgetall", reading({ [OTHER]: [30_000] })],
  ])("who may not %s is told so", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, readExtend, form, KEYS, args(60_000, [60_000]));
  });
});
