import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockUndo } from "../../src/scripts/generated.js";
import { allKeys } from "../support/index.js";
import {
  type Bench,
  CHANNEL,
  FORBIDDEN,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  publishers,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

const keys = { lock: LOCK, channel: CHANNEL, tombstones: [TOMBSTONE] };
const over = { [TOMBSTONE]: text("1", 40_000) };

describe.each(forms(lockUndo))("lock/undo, %s", (form) => {
  const undo = (count: number, left: number, more: { publish?: string; tombstoneTtl?: number } = {}) =>
    bench.runner(lockUndo, form)(keys, {
      owners: [ME],
      count,
      left,
      tombstoneTtl: 40_000,
      publish: "PUBLISH",
      ...more,
    });

  test.each(publishers)("1: an acquire, announced by %s; and 0 the next time", async (publish) => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    expect(await undo(0, 0, { publish })).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([{ command: publish, channel: CHANNEL, payload: "0" }]);
    expect(await undo(0, 0, { publish })).toBe(0);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: a nested acquire alone, the TTL set %s; and 0 the next time", async (_, left) => {
    await bench.put({ [LOCK]: held({ [ME]: "3", [OTHER]: "1" }, 30_000) });
    expect(await undo(2, left)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "2", [OTHER]: "1" }, left), ...over });
    await bench.redis.pexpire(LOCK, 90_000);
    expect(await undo(2, left)).toBe(0);
    await bench.expect({ [LOCK]: held({ [ME]: "2", [OTHER]: "1" }, 90_000), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["none left", 0, 5_000],
    ["none left that lasts", 1, 0],
  ])("1: %s, so the lock is given back", async (_, count, left) => {
    await bench.put({ [LOCK]: held({ [ME]: "2", [OTHER]: "1" }, 30_000) });
    expect(await undo(count, left)).toBe(1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000), ...over });
    expect(await bench.heard()).toEqual([{ command: "PUBLISH", channel: CHANNEL, payload: "0" }]);
  });

  test.each([
    ["a free lock", 0, 0, {}],
    ["another's lock", 0, 0, { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
    ["a count that is lower", 2, 60_000, { [LOCK]: held({ [ME]: "1" }, 30_000) }],
    ["a count that is the same", 1, 60_000, { [LOCK]: held({ [ME]: "1" }, 30_000) }],
    ["a count that is the same, and none lasts", 1, 0, { [LOCK]: held({ [ME]: "1" }, 30_000) }],
  ])("0: %s has nothing to undo; the tombstone stands", async (_, count, left, before) => {
    await bench.put(before);
    expect(await undo(count, left)).toBe(0);
    await bench.expect({ ...before, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("0: an earlier run has undone it, and a later one changes nothing more", async () => {
    const states = { [LOCK]: held({ [ME]: "3" }, 30_000), ...over };
    await bench.put(states);
    expect(await undo(2, 60_000, { tombstoneTtl: 80_000 })).toBe(0);
    expect(await undo(0, 0, { tombstoneTtl: 80_000 })).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put({ [LOCK]: held({ [ME]: String(MOST) }, 30_000) });
    expect(await undo(MOST - 1, MOST, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: String(MOST - 1) }, MOST), [TOMBSTONE]: text("1", MOST) });
  });

  test("many at once: what each had is gone, and each has its tombstone", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1", [OTHER]: "1", "client:9": "2" }, 30_000) });
    const tombstones = ["over:1", "over:2", "over:3"];
    const many = {
      owners: [ME, "client:4", OTHER],
      count: 0,
      left: 0,
      tombstoneTtl: 40_000,
      publish: "PUBLISH",
    };
    for (const reply of [1, 0]) {
      expect(await bench.runner(lockUndo, form)({ ...keys, tombstones }, many)).toBe(reply);
      await bench.expect({
        [LOCK]: held({ "client:9": "2" }, 30_000),
        ...Object.fromEntries(tombstones.map((key) => [key, text("1", 40_000)])),
      });
    }
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(undo(0, 0)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000), ...over });
  });

  test("who may not announce may undo", async () => {
    const mute = await bench.withoutChannels();
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    const args = { owners: [ME], count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" };
    expect(await bench.runner(lockUndo, form, mute)(keys, args)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["a nested acquire", 1, 60_000, { [LOCK]: held({ [ME]: "1" }, 60_000), ...over }],
    ["an acquire", 0, 0, over],
    ["nothing", 2, 60_000, { [LOCK]: held({ [ME]: "2" }, 30_000), ...over }],
  ])("without memory %s is undone as ever", async (_, count, left, after) => {
    await bench.put({ [LOCK]: held({ [ME]: "2" }, 30_000) });
    await bench.outOfMemory(async () => {
      expect(await undo(count, left)).toBe(count === 2 ? 0 : 1);
    });
    await bench.expect(after);
  });

  test.each([
    ["exists", 0, 0],
    ["del", 0, 0],
    ["set", 0, 0],
    ["hget", 0, 0],
    ["hdel", 0, 0],
    ["pexpire", 1, 20_000],
    ["hset", 1, 20_000],
  ])("who may not %s is told so", async (command, count, left) => {
    const limited = bench.runner(lockUndo, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "2" }, 30_000) });
    const args = { owners: [ME], count, left, tombstoneTtl: 40_000, publish: "PUBLISH" };
    await expect(limited(keys, args)).rejects.toThrow(FORBIDDEN);
    for (const { ttl } of (await allKeys(bench.redis)).values()) expect(ttl).toBeGreaterThan(0);
  });
});
