import { describe, expect, test } from "vitest";
import { latchCountDown } from "../../src/scripts/generated.js";
import { forms, publishers } from "./bench.js";
import {
  expectForbidden,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  useBench,
  wordOf,
} from "./counts.js";

const CHANNEL = "redisson_countdownlatch__channel__{job}";
const bench = useBench(CHANNEL);
const keys = { count: NUMBER, channel: CHANNEL, marker: MARKER };

describe.each(forms(latchCountDown))("latch/count-down, %s", (form) => {
  const countDown = (publish = "PUBLISH") =>
    wordOf(bench().runner(latchCountDown, form))(keys, { markerTtl: MARKER_TTL, latest: 0, publish });

  test.each([
    [3, 2],
    [2, 1],
    [9007199254740990, 9007199254740989],
  ])("%i becomes %i, once however often it runs, and nobody is told", async (before, after) => {
    await bench().put({ [NUMBER]: number(before) });
    expect(await countDown()).toBe(1);
    expect(await countDown()).toBe(1);
    await bench().expect({ [NUMBER]: number(after), [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each(publishers)("the last one deletes the key and announces it by %s, once", async (publish) => {
    await bench().put({ [NUMBER]: number(1) });
    expect(await countDown(publish)).toBe(1);
    expect(await bench().heard()).toEqual([{ command: publish, channel: CHANNEL, payload: "0" }]);
    await bench().redis.set(NUMBER, 1);
    expect(await countDown(publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(1), [MARKER]: marked(1) });
  });

  test("a latch that is missing stays so, and nobody is told", async () => {
    await bench().put({});
    expect(await countDown()).toBe(1);
    await bench().expect({ [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each([0, -1, -7])("%i is as good as missing", async (count) => {
    await bench().put({ [NUMBER]: number(count) });
    expect(await countDown()).toBe(1);
    await bench().expect({ [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test("a TTL is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect(await countDown()).toBe(1);
    await bench().expect({ [NUMBER]: number(4, 30_000), [MARKER]: marked(1) });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    await bench().put({ [NUMBER]: state });
    await expect(countDown()).rejects.toThrow(refusal);
    await bench().expect({ [NUMBER]: state });
    expect(await bench().heard()).toEqual([]);
  });

  test.each([0, 1, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value) });
    const limited = wordOf(bench().runner(latchCountDown, form, await bench().without("decrby")));
    expect(await limited(keys, { markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" })).toBe(1);
    await bench().expect({ [MARKER]: marked(1) });
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(await countDown()).toBe(1);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345677");
  });

  test.each([5, 1])("without memory it works as ever (%i)", async (count) => {
    await bench().put({ [NUMBER]: number(count) });
    await bench().outOfMemory(async () => {
      expect(await countDown()).toBe(1);
    });
    await bench().expect({ ...(count > 1 ? { [NUMBER]: number(count - 1) } : {}), [MARKER]: marked(1) });
  });

  test("who may not announce may count down", async () => {
    const mute = wordOf(bench().runner(latchCountDown, form, await bench().withoutChannels()));
    await bench().put({ [NUMBER]: number(1) });
    expect(await mute(keys, { markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" })).toBe(1);
    await bench().expect({ [MARKER]: marked(1) });
  });

  test.each([
    ["exists", 3],
    ["get", 3],
    ["decrby", 3],
    ["set", 3],
    ["del", 1],
    ["del", 3],
  ])("who may not %s is told so", async (command, count) => {
    await bench().put({ [NUMBER]: number(count) });
    const limited = wordOf(bench().runner(latchCountDown, form, await bench().without(command)));
    await expectForbidden(bench(), limited(keys, { markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" }));
    expect(await bench().heard()).toEqual([]);
  });
});
