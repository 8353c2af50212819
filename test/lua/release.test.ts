import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockRelease } from "../../src/scripts/generated.js";
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

const keys = { lock: LOCK, channel: CHANNEL, tombstone: TOMBSTONE };

describe.each(forms(lockRelease))("lock/release, %s", (form) => {
  const release = (count: number, left: number, more: { publish?: string; tombstoneTtl?: number } = {}) =>
    bench.runner(lockRelease, form)(keys, {
      owner: ME,
      count,
      left,
      tombstoneTtl: 40_000,
      publish: "PUBLISH",
      ...more,
    });

  test.each(publishers)("1: the last hold, announced by %s", async (publish) => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    expect(await release(0, 0, { publish })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", 40_000) });
    expect(await bench.heard()).toEqual([{ command: publish, channel: CHANNEL, payload: "0" }]);
  });

  test("1: sent again, it finds its tombstone and does nothing more", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await release(0, 0);
    await bench.heard();
    expect(await release(0, 0, { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", 40_000) });
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000), [TOMBSTONE]: text("1", 40_000) });
    expect(await release(0, 0)).toBe(1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000), [TOMBSTONE]: text("1", 40_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["none left", 0, 5_000],
    ["none left that lasts", 2, 0],
  ])("1: %s, whatever the count was", async (_, count, left) => {
    await bench.put({ [LOCK]: held({ [ME]: "3", [OTHER]: "1" }, 30_000) });
    expect(await release(count, left)).toBe(1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000), [TOMBSTONE]: text("1", 40_000) });
    expect(await bench.heard()).toHaveLength(1);
  });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: with holds left, count and TTL are set to theirs, %s", async (_, left) => {
    await bench.put({ [LOCK]: held({ [ME]: "3" }, 30_000) });
    for (const _again of [1, 2]) {
      expect(await release(2, left)).toBe(1);
      await bench.expect({ [LOCK]: held({ [ME]: "2" }, left) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a nested release whose call is over changes nothing", async () => {
    const states = { [LOCK]: held({ [ME]: "3" }, 30_000), [TOMBSTONE]: text("1", 40_000) };
    await bench.put(states);
    expect(await release(2, 60_000)).toBe(1);
    await bench.expect(states);
  });

  test.each([
    ["the last hold", 0, 0],
    ["a nested hold", 1, 20_000],
  ])("0 and -1: %s that is not there", async (_, count, left) => {
    await bench.put({});
    expect(await release(count, left)).toBe(0);
    await bench.expect({});
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await release(count, left)).toBe(-1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    expect(await release(MOST, MOST)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: String(MOST) }, MOST) });
    expect(await release(0, 0, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", MOST) });
  });

  test.each([
    [0, 0],
    [1, 20_000],
  ])("a key with other data stays as it is (%i left)", async (count, left) => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(release(count, left)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory it works as ever", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "2" }, 30_000) });
    await bench.outOfMemory(async () => {
      expect(await release(1, 60_000)).toBe(1);
      await bench.expect({ [LOCK]: held({ [ME]: "1" }, 60_000) });
      expect(await release(0, 0)).toBe(1);
    });
    await bench.expect({ [TOMBSTONE]: text("1", 40_000) });
    expect(await bench.heard()).toHaveLength(1);
  });

  test("who may not announce may release", async () => {
    const mute = await bench.withoutChannels();
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    const args = { owner: ME, count: 0, left: 0, tombstoneTtl: 40_000, publish: "PUBLISH" };
    expect(await bench.runner(lockRelease, form, mute)(keys, args)).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", 40_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["hexists", 1, 20_000],
    ["pexpire", 1, 20_000],
    ["hset", 1, 20_000],
    ["hdel", 0, 0],
    ["set", 0, 0],
  ])("who may not %s is told so", async (command, count, left) => {
    const limited = bench.runner(lockRelease, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "2" }, 30_000) });
    const args = { owner: ME, count, left, tombstoneTtl: 40_000, publish: "PUBLISH" };
    await expect(limited(keys, args)).rejects.toThrow(FORBIDDEN);
    for (const { ttl } of (await allKeys(bench.redis)).values()) expect(ttl).toBeGreaterThan(0);
  });
});
