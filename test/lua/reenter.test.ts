import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockReenter } from "../../src/scripts/generated.js";
import {
  type Bench,
  FORBIDDEN,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

const keys = { lock: LOCK, tombstone: TOMBSTONE };

describe.each(forms(lockReenter))("lock/reenter, %s", (form) => {
  const reenter = (count: number, lease: number) =>
    bench.runner(lockReenter, form)(keys, { owner: ME, count, lease });

  test("1: granted, once however often it is sent", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1", [OTHER]: "4" }, 30_000) });
    for (const _ of [1, 2]) {
      expect(await reenter(2, 60_000)).toBe(1);
      await bench.expect({ [LOCK]: held({ [ME]: "2", [OTHER]: "4" }, 60_000) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a shorter lease does not lower the TTL", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 60_000) });
    expect(await reenter(2, 30_000)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "2" }, 60_000) });
  });

  test("0: the lock is gone, and is not made again", async () => {
    await bench.put({});
    expect(await reenter(2, 30_000)).toBe(0);
    await bench.expect({});
  });

  test("-1: another holds it", async () => {
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await reenter(2, 60_000)).toBe(-1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
  });

  test.each([
    ["was given up", 2, { [TOMBSTONE]: text("1", 40_000) }],
    ["was given up, after an earlier run", 1, { [TOMBSTONE]: text("1", 40_000) }],
    ["comes two too early", 3, {}],
    ["comes one too late", 0, {}],
    ["comes far too late", 1, {}, "5"],
  ])("2: a call that %s changes nothing", async (_, count, more, current = "1") => {
    const states = { [LOCK]: held({ [ME]: current }, 30_000), ...more };
    await bench.put(states);
    expect(await reenter(count, 60_000)).toBe(2);
    await bench.expect(states);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put({ [LOCK]: held({ [ME]: String(MOST - 1) }, 30_000) });
    expect(await reenter(MOST, MOST)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: String(MOST) }, MOST) });
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(reenter(2, 90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test("without memory nothing is written, not even in part", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await bench.outOfMemory(() => expect(reenter(2, 60_000)).rejects.toThrow("OOM"));
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000) });
  });

  test.each(["exists", "hget", "hset", "pttl", "pexpire"])("who may not %s is told so", async (command) => {
    const limited = bench.runner(lockReenter, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await expect(limited(keys, { owner: ME, count: 2, lease: 60_000 })).rejects.toThrow(FORBIDDEN);
    expect((await bench.redis.pttl(LOCK)) > 0).toBe(true);
  });
});
