import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeRelease } from "../../src/scripts/generated.js";
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
import { announced, CHANNEL, ENDING_KEYS, holds, MY_WRITE, over, reading, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(writeRelease))("write/release, %s", (form) => {
  const args = (count: number, left: number, more = {}) => ({
    owner: ME,
    field: MY_WRITE,
    count,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    ...more,
  });
  const release = (count: number, left: number, more = {}) =>
    bench.runner(writeRelease, form)(ENDING_KEYS, args(count, left, more));

  test.each(publishers)("1: the last hold, announced by %s to all who wait", async (publish) => {
    await bench.put(writing(30_000));
    expect(await release(0, 0, { publish })).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("1", publish));
  });

  test("1: sent again, it finds its tombstone and does nothing more", async () => {
    await bench.put(writing(30_000));
    await release(0, 0);
    await bench.heard();
    expect(await release(0, 0, { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect(over);
    for (const others of [writing(30_000, "1", [], OTHER), reading({ [OTHER]: [30_000] })]) {
      await bench.put({ ...others, ...over });
      expect(await release(0, 0)).toBe(1);
      await bench.expect({ ...others, ...over });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test.each(publishers)(
    "1: a downgrade leaves the read holds, and is announced by %s to all who wait",
    async (publish) => {
      await bench.put(writing(90_000, "1", [10_000, 30_000, 0]));
      expect(await release(0, 30_000, { publish })).toBe(1);
      await bench.expect({ ...reading({ [ME]: [10_000, 30_000, 0] }, 30_000), ...over });
      expect(await bench.heard()).toEqual(announced("1", publish));
      expect(await release(0, 30_000, { publish })).toBe(1);
      await bench.expect({ ...reading({ [ME]: [10_000, 30_000, 0] }, 30_000), ...over });
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: read holds that have lapsed do not keep the lock", async () => {
    await bench.put(writing(90_000, "1", [0, 0]));
    expect(await release(0, 0)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("1"));
    await bench.put(writing(90_000, "1", [0, 0]));
    expect(await release(0, 20_000)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test("1: no hold left that lasts, though a read hold's key is there yet", async () => {
    await bench.put(writing(90_000, "3", [10_000]));
    expect(await release(0, 0)).toBe(1);
    await bench.expect({ ...reading({ [ME]: [10_000] }), ...over });
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: with write holds left, count and TTL are set to theirs, %s", async (_, left) => {
    await bench.put(writing(30_000, "3", [10_000]));
    for (const _again of [1, 2]) {
      expect(await release(2, left)).toBe(1);
      await bench.expect(writing(left, "2", [10_000]));
    }
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["with write holds left", 2, 60_000],
    ["with read holds left", 0, 60_000],
  ])("1: a release %s whose call is over changes nothing", async (_, count, left) => {
    const states = { ...writing(30_000, "3", [10_000]), ...over };
    await bench.put(states);
    expect(await release(count, left)).toBe(1);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("1: the last hold is given back though the owner's reading has left a tombstone", async () => {
    await bench.put({ ...writing(30_000), ...over });
    expect(await release(0, 0, { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test.each([
    ["the last hold", 0, 0],
    ["the last write hold of one that reads", 0, 20_000],
    ["a nested hold", 1, 20_000],
  ])("0 and -1: %s that is not there", async (_, count, left) => {
    await bench.put({});
    expect(await release(count, left)).toBe(0);
    await bench.expect({});
    for (const others of [writing(30_000, "1", [], OTHER), reading({ [OTHER]: [30_000], [ME]: [30_000] })]) {
      await bench.put(others);
      expect(await release(count, left)).toBe(-1);
      await bench.expect(others);
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put(writing(30_000, "2"));
    expect(await release(MOST, MOST)).toBe(1);
    await bench.expect(writing(MOST, String(MOST)));
    expect(await release(0, 0, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", MOST) });
    await bench.put(writing(30_000, "1", [MOST]));
    expect(await release(0, MOST)).toBe(1);
    await bench.expect({ ...reading({ [ME]: [MOST] }), ...over });
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      const mine = holds(ME, [0, 30_000], base);
      await bench.put({ [name]: held({ mode: "write", [MY_WRITE]: "1", [ME]: "2" }, 90_000), ...mine });
      expect(await bench.runner(writeRelease, form)({ ...ENDING_KEYS, lock: name }, args(0, 30_000))).toBe(1);
      await bench.expect({ [name]: held({ mode: "read", [ME]: "2" }, 30_000), ...mine, ...over });
    }
  });

  test.each([
    [0, 0],
    [0, 20_000],
    [1, 20_000],
  ])("a key with other data stays as it is (%i left, %i ms)", async (count, left) => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(release(count, left)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory it works as ever", async () => {
    await bench.put(writing(30_000, "2"));
    await bench.outOfMemory(async () => {
      expect(await release(1, 60_000)).toBe(1);
      await bench.expect(writing(60_000));
      expect(await release(0, 0)).toBe(1);
    });
    await bench.expect(over);
    expect(await bench.heard()).toHaveLength(1);
  });

  test("without memory a downgrade works as ever", async () => {
    await bench.put(writing(90_000, "1", [30_000]));
    await bench.outOfMemory(async () => {
      expect(await release(0, 30_000)).toBe(1);
    });
    await bench.expect({ ...reading({ [ME]: [30_000] }), ...over });
  });

  test("who may not announce may release", async () => {
    const mute = await bench.withoutChannels();
    await bench.put(writing(30_000));
    expect(await bench.runner(writeRelease, form, mute)(ENDING_KEYS, args(0, 0))).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  const both = writing(30_000, "2", [10_000]);
  test.each<[string, number, number, States]>([
    ["exists", 1, 20_000, both],
    ["hexists", 1, 20_000, both],
    ["pexpire", 1, 20_000, both],
    ["hset", 1, 20_000, both],
    ["hexists", 0, 20_000, both],
    ["exists", 0, 20_000, both],
    ["hget", 0, 20_000, both],
    ["pttl", 0, 20_000, both],
    ["hdel", 0, 20_000, both],
    ["hset", 0, 20_000, both],
    ["pexpire", 0, 20_000, both],
    ["set", 0, 0, writing(30_000)],
    ["del", 0, 0, writing(30_000)],
    ["exists", 0, 0, {}],
  ])("who may not %s is told so (%i left, %i ms)", async (command, count, left, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, writeRelease, form, ENDING_KEYS, args(count, left));
  });
});
