import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockAcquire } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
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

describe.each(forms(lockAcquire))("lock/acquire, %s", (form) => {
  const acquire = (lease: number) => bench.runner(lockAcquire, form)(keys, { owner: ME, lease });

  test("1: a free lock is granted, once however often it is sent", async () => {
    await bench.put({});
    for (const _ of [1, 2]) {
      expect(await acquire(30_000)).toBe(1);
      await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: sent again, it keeps the count and only raises the TTL", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "3" }, 30_000) });
    expect(await acquire(10_000)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "3" }, 30_000) });
    expect(await acquire(60_000)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "3" }, 60_000) });
  });

  test("{0, pttl}: held by another", async () => {
    await bench.put({ [LOCK]: held({ [OTHER]: "2" }, 50_000) });
    const reply = (await acquire(90_000)) as number[];
    expect(reply).toHaveLength(2);
    expect(reply[0]).toBe(0);
    expectTtl(reply[1], 50_000);
    await bench.expect({ [LOCK]: held({ [OTHER]: "2" }, 50_000) });
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, -1) });
    expect(await acquire(90_000)).toEqual([0, -1]);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, -1) });
  });

  test.each([
    ["a free lock", {}],
    ["its own lock", { [LOCK]: held({ [ME]: "1" }, 20_000) }],
    ["another's lock", { [LOCK]: held({ [OTHER]: "1" }, 20_000) }],
  ])("{2, 0}: a wire id that is over does not get %s", async (_, before) => {
    const states = { ...before, [TOMBSTONE]: text("1", 40_000) };
    await bench.put(states);
    expect(await acquire(90_000)).toEqual([2, 0]);
    await bench.expect(states);
  });

  test("the largest lease survives as text", async () => {
    await bench.put({});
    expect(await acquire(MOST)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, MOST) });
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    expect(await acquire(MOST)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, MOST) });
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, MOST) });
    const [, ttl] = (await acquire(1)) as number[];
    expectTtl(ttl, MOST);
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: { value: ["theirs"], ttl: 60_000 } });
    await expect(acquire(90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: { value: ["theirs"], ttl: 60_000 } });
  });

  test("without memory nothing is written, not even in part", async () => {
    await bench.put({});
    await bench.outOfMemory(() => expect(acquire(90_000)).rejects.toThrow("OOM"));
    await bench.expect({});
  });

  test("sent again, it keeps a count of many digits", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "12" }, 30_000) });
    expect(await acquire(60_000)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "12" }, 60_000) });
  });

  test.each([
    ["exists", {}],
    ["hset", {}],
    ["pexpire", {}],
    ["pexpire", { [LOCK]: held({ [ME]: "1" }, 30_000) }],
    ["hexists", { [LOCK]: held({ [ME]: "1" }, 30_000) }],
    ["pttl", { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
    ["pttl", { [LOCK]: held({ [ME]: "1" }, 30_000) }],
  ])("who may not %s takes nothing and leaves nothing without end", async (command, before) => {
    const limited = bench.runner(lockAcquire, form, await bench.without(command));
    await bench.put(before);
    await expect(limited(keys, { owner: ME, lease: 60_000 })).rejects.toThrow(FORBIDDEN);
    await bench.expect(before);
  });
});
