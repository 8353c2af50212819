import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeForce } from "../../src/scripts/generated.js";
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
import { announced, CHANNEL, holds, MY_WRITE, over, reading, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const CALL = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:7";
const done = { [CALL]: text("1", 20_000) };
const KEYS = { tombstone: CALL, lock: LOCK, channel: CHANNEL };

describe.each(forms(writeForce))("write/force, %s", (form) => {
  const force = (publish = "PUBLISH") =>
    bench.runner(writeForce, form)(KEYS, { tombstoneTtl: 20_000, publish });

  test.each(publishers)("1: whoever wrote, announced by %s to all who wait", async (publish) => {
    await bench.put({ ...writing(30_000, "2", [], OTHER), ...over });
    expect(await force(publish)).toBe(1);
    await bench.expect({ ...over, ...done });
    expect(await bench.heard()).toEqual(announced("1", publish));
    expect(await force(publish)).toBe(1);
    await bench.expect({ ...over, ...done });
    expect(await bench.heard()).toEqual([]);
  });

  test("1: sent again, it leaves the next writer alone", async () => {
    await bench.put({ ...writing(30_000, "1", [10_000], OTHER), ...done });
    expect(await force()).toBe(1);
    await bench.expect({ ...writing(30_000, "1", [10_000], OTHER), ...done });
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a writer that reads as well goes on as a reader, and all who wait are told", async () => {
    await bench.put(writing(90_000, "2", [10_000, 30_000, 0]));
    expect(await force()).toBe(1);
    await bench.expect({ ...reading({ [ME]: [10_000, 30_000, 0] }, 30_000), ...done });
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test("1: of a lock that somebody else left without end", async () => {
    await bench.put(writing(-1, "2", [10_000, 30_000]));
    expect(await force()).toBe(1);
    await bench.expect({ ...reading({ [ME]: [10_000, 30_000] }), ...done });
  });

  test("1: all read holds are looked at, however often it wrote", async () => {
    await bench.put(writing(90_000, "1", [0, 0, 30_000]));
    expect(await force()).toBe(1);
    await bench.expect({ ...reading({ [ME]: [0, 0, 30_000] }), ...done });
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      const mine = holds(ME, [30_000], base);
      await bench.put({ [name]: held({ mode: "write", [MY_WRITE]: "1", [ME]: "1" }, 90_000), ...mine });
      expect(
        await bench.runner(writeForce, form)(
          { ...KEYS, lock: name },
          { tombstoneTtl: 20_000, publish: "PUBLISH" },
        ),
      ).toBe(1);
      await bench.expect({ [name]: held({ mode: "read", [ME]: "1" }, 30_000), ...mine, ...done });
    }
  });

  test("1: a writer whose read holds have lapsed keeps nothing", async () => {
    await bench.put(writing(90_000, "2", [0, 0]));
    expect(await force()).toBe(1);
    await bench.expect(done);
    expect(await bench.heard()).toEqual(announced("1"));
  });

  test.each<[string, States]>([
    ["it was free", {}],
    ["others read", reading({ [ME]: [30_000] })],
    ["a plain lock of that name", { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
  ])("0: %s, and nothing is announced or changed", async (_, states) => {
    await bench.put({ ...states, ...over });
    expect(await force()).toBe(0);
    await bench.expect({ ...states, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("only a field that ends with :write is a writer's", async () => {
    await bench.put({
      [LOCK]: held({ mode: "write", [MY_WRITE]: "1", "6e3814a1-e847-452b-a982-45baf93a1df2:2": "1" }, 90_000),
      ...holds("6e3814a1-e847-452b-a982-45baf93a1df2:2", [30_000]),
    });
    expect(await force()).toBe(1);
    await bench.expect({
      [LOCK]: held({ mode: "read", "6e3814a1-e847-452b-a982-45baf93a1df2:2": "1" }, 30_000),
      ...holds("6e3814a1-e847-452b-a982-45baf93a1df2:2", [30_000]),
      ...done,
    });
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", -1) });
    await expect(force()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", -1) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory, and by one who may not announce", async () => {
    await bench.put(writing(90_000, "1", [30_000]));
    await bench.outOfMemory(async () => {
      expect(await force()).toBe(1);
    });
    await bench.expect({ ...reading({ [ME]: [30_000] }), ...done });
    await bench.put(writing(90_000));
    const mute = await bench.withoutChannels();
    expect(
      await bench.runner(writeForce, form, mute)(KEYS, { tombstoneTtl: 20_000, publish: "PUBLISH" }),
    ).toBe(1);
    await bench.expect(done);
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, States]>([
    ["hget", writing(30_000)],
    ["hkeys", writing(30_000)],
    ["set", writing(30_000)],
    ["hgetall", writing(30_000)],
    ["pttl", writing(30_000, "1", [30_000])],
    ["del", writing(30_000)],
    ["hdel", writing(30_000, "1", [30_000])],
    ["hset", writing(30_000, "1", [30_000])],
    ["pexpire", writing(30_000, "1", [30_000])],
  ])("who may not %s is told so", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, writeForce, form, KEYS, { tombstoneTtl: 20_000, publish: "PUBLISH" });
    expect(await bench.heard()).toEqual([]);
  });
});
