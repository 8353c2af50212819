import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readReenter } from "../../src/scripts/generated.js";
import {
  type Bench,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  type States,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { CHANNEL, holds, MY_WRITE, reading, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const KEYS = { lock: LOCK, tombstone: TOMBSTONE };
const given = { [TOMBSTONE]: text("1", 40_000) };

describe.each(forms(readReenter))("read/reenter, %s", (form) => {
  const args = (count: number, lease: number) => ({ owner: ME, field: MY_WRITE, count, lease });
  const reenter = (count: number, lease: number) => bench.runner(readReenter, form)(KEYS, args(count, lease));

  test.each([
    ["longer", 60_000],
    ["shorter: the TTL of the lock is not lowered", 15_000],
  ])("1: granted, once however often it is sent, with a lease that is %s", async (_, lease) => {
    await bench.put(reading({ [ME]: [30_000], [OTHER]: [10_000, 10_000] }));
    for (const _again of [1, 2]) {
      expect(await reenter(2, lease)).toBe(1);
      await bench.expect(reading({ [ME]: [30_000, lease], [OTHER]: [10_000, 10_000] }));
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: sent again with the hold there, it only raises that hold", async () => {
    await bench.put(reading({ [ME]: [30_000, 90_000] }));
    expect(await reenter(2, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [30_000, 90_000] }));
    expect(await reenter(2, 120_000)).toBe(1);
    await bench.expect(reading({ [ME]: [30_000, 120_000] }));
  });

  test("1: the tenth hold has the number 10", async () => {
    const terms = Array<number>(9).fill(30_000);
    await bench.put(reading({ [ME]: terms }));
    expect(await reenter(10, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [...terms, 60_000] }));
  });

  test("1: while one of the owner's holds lives the lapsed others do not matter", async () => {
    await bench.put(reading({ [ME]: [0, 30_000] }));
    expect(await reenter(3, 60_000)).toBe(1);
    await bench.expect(reading({ [ME]: [0, 30_000, 60_000] }));
  });

  test.each([
    ["longer", 60_000, 60_000],
    ["shorter: the write lease is not cut", 5_000, 30_000],
  ])("1: the writer takes the read side, with a lease that is %s", async (_, lease, ttl) => {
    await bench.put(writing(30_000, "2"));
    for (const _again of [1, 2]) {
      expect(await reenter(1, lease)).toBe(1);
      await bench.expect(writing(ttl, "2", [lease]));
    }
    expect(await reenter(2, 90_000)).toBe(1);
    await bench.expect(writing(90_000, "2", [lease, 90_000]));
  });

  test.each([[[0]], [[0, 0, 0]]])(
    "1: the writer whose read holds have lapsed reads afresh (%j)",
    async (lapsed) => {
      await bench.put(writing(30_000, "1", lapsed));
      for (const _ of [1, 2]) {
        expect(await reenter(1, 60_000)).toBe(1);
        await bench.expect(writing(60_000, "1", [60_000]));
      }
    },
  );

  test("3: the writer that counts on read holds that have lapsed; no count is left behind", async () => {
    await bench.put(writing(30_000, "1", [0, 0]));
    for (const count of [2, 3]) {
      expect(await reenter(count, 60_000)).toBe(3);
      await bench.expect(writing(30_000));
    }
  });

  test.each<[string, number, States]>([
    ["0: the lock is gone, and is not made again", 0, {}],
    ["-1: others read", -1, reading({ [OTHER]: [30_000] })],
    ["-1: a plain lock of that name is there", -1, { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
    ["-1: others read, without end", -1, reading({ [OTHER]: [30_000] }, -1)],
    ["-1: another writes", -1, writing(30_000, "1", [], OTHER)],
    [
      "-1: its own holds have lapsed, and are not made again",
      -1,
      reading({ [ME]: [0, 0], [OTHER]: [30_000] }),
    ],
  ])("%s", async (_, reply, states) => {
    await bench.put(states);
    for (const count of [1, 2, 3]) expect(await reenter(count, 60_000)).toBe(reply);
    await bench.expect(states);
  });

  test("0: all who read have lapsed; what is left of them goes", async () => {
    await bench.put(reading({ [OTHER]: [0], [ME]: [0] }, 30_000));
    expect(await reenter(2, 60_000)).toBe(0);
    await bench.expect({});
  });

  test.each<[string, number, States]>([
    ["was given up", 2, { ...reading({ [ME]: [30_000] }), ...given }],
    ["was given up, after an earlier run", 1, { ...reading({ [ME]: [30_000] }), ...given }],
    ["was given up, and the lock is gone", 2, given],
    ["comes two too early", 3, reading({ [ME]: [30_000] })],
    ["comes one too late", 0, reading({ [ME]: [30_000] })],
    ["comes far too late", 1, reading({ [ME]: [30_000, 30_000, 30_000] })],
    ["comes one too early for a writer", 0, writing(30_000, "1", [30_000])],
  ])("2: a call that %s changes nothing", async (_, count, states) => {
    await bench.put(states);
    expect(await reenter(count, 60_000)).toBe(2);
    await bench.expect(states);
  });

  test("the largest lease survives as text", async () => {
    await bench.put(reading({ [ME]: [30_000] }));
    expect(await reenter(2, MOST)).toBe(1);
    await bench.expect(reading({ [ME]: [30_000, MOST] }));
  });

  test.each([
    ["größe:日本", "{größe:日本}"],
    ["a:b", "{a:b}"],
    ["a{b}:c", "a{b}:c"],
    ["{x", "{x"],
    ["a}b", "{a}b}"],
    ["a%w.c", "{a%w.c}"],
  ])("the hold key of %s begins with %s", async (name, base) => {
    const owner = "ключ %s:1";
    const before = { [name]: held({ mode: "read", [owner]: "1" }, 30_000), ...holds(owner, [30_000], base) };
    await bench.put(before);
    const keys = { lock: name, tombstone: "over" };
    expect(
      await bench.runner(readReenter, form)(keys, {
        owner,
        field: `${owner}:write`,
        count: 2,
        lease: 60_000,
      }),
    ).toBe(1);
    await bench.expect({
      [name]: held({ mode: "read", [owner]: "2" }, 60_000),
      ...holds(owner, [30_000, 60_000], base),
    });
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(reenter(2, 90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test("without memory nothing is written, not even in part", async () => {
    await bench.put(reading({ [ME]: [30_000] }));
    await bench.outOfMemory(() => expect(reenter(2, 60_000)).rejects.toThrow("OOM"));
    await bench.expect(reading({ [ME]: [30_000] }));
  });

  test.each<[string, States]>([
    ["exists", reading({ [ME]: [30_000] })],
    ["hget", reading({ [ME]: [30_000] })],
    ["pttl", reading({ [ME]: [30_000] })],
    ["set", reading({ [ME]: [30_000] })],
    ["hset", reading({ [ME]: [30_000] })],
    ["pexpire", reading({ [ME]: [30_000] })],
    ["hexists", writing(30_000)],
    ["exists", {}],
    ["hgetall", reading({ [OTHER]: [30_000] })],
  ])("who may not %s is told so, and leaves nothing without end", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, readReenter, form, KEYS, args(2, 60_000));
  });
});
