import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readForce } from "../../src/scripts/generated.js";
import {
  type Bench,
  forms,
  held,
  LOCK,
  ME,
  OTHER,
  publishers,
  type States,
  startBench,
  text,
} from "./bench.js";
import { announced, CHANNEL, holdKey, holds, over, reading, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const CALL = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:7";
const done = { [CALL]: text("1", 20_000) };
const KEYS = { tombstone: CALL, lock: LOCK, channel: CHANNEL };

describe.each(forms(readForce))("read/force, %s", (form) => {
  const force = (publish = "PUBLISH") =>
    bench.runner(readForce, form)(KEYS, { tombstoneTtl: 20_000, publish });

  test.each(publishers)("1: all readers' holds and the lock go, announced by %s", async (publish) => {
    await bench.put({ ...reading({ [ME]: [30_000, 20_000], [OTHER]: [0, 10_000] }), ...over });
    expect(await force(publish)).toBe(1);
    await bench.expect({ ...over, ...done });
    expect(await bench.heard()).toEqual(announced("0", publish));
    expect(await force(publish)).toBe(1);
    await bench.expect({ ...over, ...done });
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, States]>([
    ["its next readers", reading({ [OTHER]: [30_000] })],
    ["a writer that reads", writing(60_000, "1", [30_000], OTHER)],
  ])("1: sent again, it leaves %s alone", async (_, next) => {
    await bench.put({ ...next, ...done });
    expect(await force()).toBe(1);
    await bench.expect({ ...next, ...done });
    expect(await bench.heard()).toEqual([]);
  });

  test("1: of a lock that somebody else left without end", async () => {
    await bench.put(reading({ [ME]: [30_000] }, -1));
    expect(await force()).toBe(1);
    await bench.expect(done);
    expect(await bench.heard()).toEqual(announced("0"));
  });

  test("1: of a writer that reads as well the write side stays, and nobody is told", async () => {
    await bench.put(writing(60_000, "2", [30_000, 50_000]));
    expect(await force()).toBe(1);
    await bench.expect({ ...writing(60_000, "2"), ...done });
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, States]>([
    ["a writer's read holds have lapsed", writing(60_000, "2", [0, 0])],
    ["a writer does not read", writing(60_000, "2")],
    ["readers that have all lapsed are no readers", reading({ [ME]: [0, 0], [OTHER]: [0] }, 30_000)],
  ])("0: %s; nothing is changed or announced", async (_, states) => {
    await bench.put(states);
    expect(await force()).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("0: it was free, and nothing is announced", async () => {
    await bench.put(over);
    expect(await force()).toBe(0);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test("0: a plain lock of that name stays as it is", async () => {
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await force()).toBe(0);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("a hash without mode stays as it is though a hold key fits it", async () => {
    const states = { [LOCK]: held({ [OTHER]: "1" }, 30_000), ...holds(OTHER, [10_000]) };
    await bench.put(states);
    expect(await force()).toBe(0);
    await bench.expect(states);
  });

  test("1: of readers with thousands of holds the last that is looked for goes, too", async () => {
    await bench.put({
      [LOCK]: held({ mode: "read", [ME]: "5002", [OTHER]: "5001" }, 60_000),
      [holdKey(OTHER, 5_001)]: text("1", 30_000),
    });
    expect(await force()).toBe(1);
    await bench.expect(done);
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      const owner = "6e3814a1-e847-452b-a982-45baf93a1df2:-1";
      await bench.put({
        [name]: held({ mode: "read", [owner]: "2" }, 30_000),
        ...holds(owner, [30_000, 10_000], base),
      });
      expect(
        await bench.runner(readForce, form)(
          { ...KEYS, lock: name },
          { tombstoneTtl: 20_000, publish: "PUBLISH" },
        ),
      ).toBe(1);
      await bench.expect(done);
    }
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", -1) });
    await expect(force()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", -1) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory, and by one who may not announce", async () => {
    await bench.put(reading({ [ME]: [30_000] }));
    await bench.outOfMemory(async () => {
      expect(await force()).toBe(1);
    });
    await bench.expect(done);
    await bench.put(reading({ [ME]: [30_000] }));
    const mute = await bench.withoutChannels();
    expect(
      await bench.runner(readForce, form, mute)(KEYS, { tombstoneTtl: 20_000, publish: "PUBLISH" }),
    ).toBe(1);
    await bench.expect(done);
    expect(await bench.heard()).toEqual([]);
  });

  test.each(["hget", "hgetall", "pttl", "del", "hdel", "set"])(
    "who may not %s is told so",
    async (command) => {
      await bench.put(reading({ [ME]: [30_000] }));
      await bench.expectRefusal(command, readForce, form, KEYS, { tombstoneTtl: 20_000, publish: "PUBLISH" });
      expect(await bench.heard()).toEqual([]);
    },
  );
});
