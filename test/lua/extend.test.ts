import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockExtend } from "../../src/scripts/generated.js";
import { type Bench, FORBIDDEN, forms, held, LOCK, ME, MOST, OTHER, startBench, text } from "./bench.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

const OVER = "holdfast_over:{job}:call";
const KEYS = { lock: LOCK, tombstone: OVER };

describe.each(forms(lockExtend))("lock/extend, %s", (form) => {
  const extend = (lease: number) => bench.runner(lockExtend, form)(KEYS, { owner: ME, lease });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
    ["to the most there is", MOST],
  ])("1: the TTL is set %s, once however often it is sent", async (_, lease) => {
    await bench.put({ [LOCK]: held({ [ME]: "2", [OTHER]: "1" }, 30_000) });
    for (const _again of [1, 2]) {
      expect(await extend(lease)).toBe(1);
      await bench.expect({ [LOCK]: held({ [ME]: "2", [OTHER]: "1" }, lease) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("0: the lock is gone, and is not made again", async () => {
    await bench.put({});
    expect(await extend(60_000)).toBe(0);
    await bench.expect({});
  });

  test("-1: another holds it", async () => {
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
    expect(await extend(60_000)).toBe(-1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000) });
  });

  test("1: a call that is over changes nothing", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000), [OVER]: text("1", 20_000) });
    expect(await extend(60_000)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000), [OVER]: text("1", 20_000) });
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(extend(90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test("without memory it works as ever", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await bench.outOfMemory(async () => {
      expect(await extend(60_000)).toBe(1);
    });
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 60_000) });
  });

  test.each(["hexists", "pexpire"])("who may not %s is told so", async (command) => {
    const limited = bench.runner(lockExtend, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await expect(limited(KEYS, { owner: ME, lease: 60_000 })).rejects.toThrow(FORBIDDEN);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000) });
  });

  test("who may not ask why it is gone is told so", async () => {
    const limited = bench.runner(lockExtend, form, await bench.without("exists"));
    await bench.put({});
    await expect(limited(KEYS, { owner: ME, lease: 60_000 })).rejects.toThrow(FORBIDDEN);
  });
});
