import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fencedAcquire } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
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

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

const COUNTER = "redisson_lock_token:{job}";
const KEYS = { lock: LOCK, tombstone: TOMBSTONE, counter: COUNTER };
/** Far ahead of any server's clock in microseconds, and within what Redis counts. */
const AHEAD = "9223372036854775000";

describe.each(forms(fencedAcquire))("fenced/acquire, %s", (form) => {
  const acquire = (lease: number, owner = ME) => bench.runner(fencedAcquire, form)(KEYS, { owner, lease });

  /** The server's clock in microseconds. */
  async function microseconds(): Promise<bigint> {
    const [seconds = 0, rest = 0] = await bench.redis.time();
    return BigInt(seconds) * 1_000_000n + BigInt(rest);
  }

  test("{1, token}: a free lock is granted, once and with one token however often it is sent", async () => {
    await bench.put({});
    const [granted, token] = (await acquire(30_000)) as [number, string];
    expect([granted, typeof token]).toEqual([1, "string"]);
    for (const _ of [1, 2]) {
      await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text(token, -1) });
      expect(await acquire(30_000)).toEqual([1, token]);
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("{1, token}: one more than the last, when that is ahead of the clock", async () => {
    await bench.put({ [COUNTER]: text(AHEAD, -1) });
    const token = String(BigInt(AHEAD) + 1n);
    expect(await acquire(30_000)).toEqual([1, token]);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text(token, -1) });
  });

  test.each([
    ["is gone", {}],
    ["has fallen behind", { [COUNTER]: text("41", -1) }],
    ["is negative", { [COUNTER]: text("-7", -1) }],
  ])("{1, token}: the server's clock in microseconds, when the counter %s", async (_, before) => {
    await bench.put(before);
    const earliest = await microseconds();
    const [, token] = (await acquire(30_000)) as [number, string];
    const latest = await microseconds();
    expect(token).toMatch(/^\d{16}$/);
    expect(BigInt(token) >= earliest && BigInt(token) <= latest).toBe(true);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text(token, -1) });
  });

  test("tokens rise from grant to grant, also when the counter was lost, or counted on by Redisson's INCR", async () => {
    await bench.put({});
    const tokens: bigint[] = [];
    for (const between of [
      async () => undefined,
      () => bench.redis.del(COUNTER),
      () => bench.redis.incrby(COUNTER, 60_000_000),
      async () => undefined,
    ]) {
      await between();
      tokens.push(BigInt(((await acquire(30_000)) as [number, string])[1]));
      await bench.redis.del(LOCK);
    }
    expect(new Set(tokens).size).toBe(4);
    expect([...tokens].sort((a, b) => (a < b ? -1 : 1))).toEqual(tokens);
    expect((tokens[3] as bigint) - (tokens[2] as bigint)).toBe(1n);
  });

  test("{1, token}: sent again, it keeps count and token, and only raises the TTL", async () => {
    const counter = { [COUNTER]: text("41", -1) };
    await bench.put({ [LOCK]: held({ [ME]: "12" }, 30_000), ...counter });
    expect(await acquire(10_000)).toEqual([1, "41"]);
    await bench.expect({ [LOCK]: held({ [ME]: "12" }, 30_000), ...counter });
    expect(await acquire(60_000)).toEqual([1, "41"]);
    await bench.expect({ [LOCK]: held({ [ME]: "12" }, 60_000), ...counter });
  });

  test("{1, token}: sent again after the counter was deleted, it draws a new one", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    const earliest = await microseconds();
    const [granted, token] = (await acquire(30_000)) as [number, string];
    expect(granted).toBe(1);
    expect(BigInt(token)).toBeGreaterThanOrEqual(earliest);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text(token, -1) });
  });

  test("a refusal of a lock without TTL is no grant: the first number tells them apart", async () => {
    const states: States = { [LOCK]: held({ [OTHER]: "1" }, -1), [COUNTER]: text("41", -1) };
    await bench.put(states);
    expect(await acquire(90_000)).toEqual([0, -1]);
    await bench.expect(states);
  });

  test("{0, pttl}: held by another; no token is drawn", async () => {
    const states = { [LOCK]: held({ [OTHER]: "2" }, 50_000), [COUNTER]: text("41", -1) };
    await bench.put(states);
    const reply = (await acquire(90_000)) as number[];
    expect(reply).toHaveLength(2);
    expect(reply[0]).toBe(0);
    expectTtl(reply[1], 50_000);
    await bench.expect(states);
  });

  test.each([
    ["a free lock", {}],
    ["its own lock", { [LOCK]: held({ [ME]: "1" }, 20_000), [COUNTER]: text("41", -1) }],
    ["another's lock", { [LOCK]: held({ [OTHER]: "1" }, 20_000), [COUNTER]: text("41", -1) }],
  ])("{2, 0}: a wire id that is over does not get %s", async (_, before) => {
    const states = { ...before, [TOMBSTONE]: text("1", 40_000) };
    await bench.put(states);
    expect(await acquire(90_000)).toEqual([2, 0]);
    await bench.expect(states);
  });

  test("the largest lease survives as text", async () => {
    await bench.put({ [COUNTER]: text(AHEAD, -1) });
    await acquire(MOST);
    await bench.expect({
      [LOCK]: held({ [ME]: "1" }, MOST),
      [COUNTER]: text(String(BigInt(AHEAD) + 1n), -1),
    });
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text("41", -1) });
    await acquire(MOST);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, MOST), [COUNTER]: text("41", -1) });
  });

  test.each([
    ["the lock", { [LOCK]: { value: ["theirs"], ttl: 60_000 } }, "WRONGTYPE"],
    ["the counter", { [COUNTER]: { value: ["theirs"], ttl: 60_000 } }, "WRONGTYPE"],
    ["the counter, as text", { [COUNTER]: text("theirs", -1) }, "not an integer"],
    ["the counter, at its end", { [COUNTER]: text("9223372036854775807", -1) }, "overflow"],
  ])("other data in the key of %s stays as it is", async (_, states, message) => {
    await bench.put(states);
    await expect(acquire(90_000)).rejects.toThrow(message);
    await bench.expect(states);
  });

  test("without memory nothing is written, not even in part", async () => {
    await bench.put({});
    await bench.outOfMemory(() => expect(acquire(90_000)).rejects.toThrow("OOM"));
    await bench.expect({});
  });

  const own = { [LOCK]: held({ [ME]: "1" }, 30_000), [COUNTER]: text("41", -1) };
  test.each<[string, States]>([
    ["exists", {}],
    ["incr", {}],
    ["time", {}],
    ["set", {}],
    ["get", { [COUNTER]: text(AHEAD, -1) }],
    ["hset", {}],
    ["pexpire", {}],
    ["hexists", own],
    ["pttl", own],
    ["pexpire", own],
    ["get", own],
    ["pttl", { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
  ])("who may not %s is told so, and leaves nothing without end", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, fencedAcquire, form, KEYS, { owner: ME, lease: 60_000 });
  });
});
