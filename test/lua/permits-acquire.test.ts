import { describe, expect, test } from "vitest";
import { permitsAcquire } from "../../src/scripts/generated.js";
import { expectTtl, forms, later, MOST, publishers, scored, text } from "./bench.js";
import {
  expectForbidden,
  hex,
  JUST_GONE,
  LEASES,
  LONG_GONE,
  MINE,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  THEIRS,
  told,
  tombstoneOf,
  useBench,
} from "./counts.js";

/** The end of a lease that Redisson gives to a permit taken without one. */
const NEVER = 922337203685477;
const bench = useBench();
const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: tombstoneOf(MINE) };
const args = (lease = 30_000, publish = "PUBLISH") => ({ id: hex(MINE), lease, publish });

describe.each(forms(permitsAcquire))("permits/acquire, %s", (form) => {
  const acquire = (lease?: number, publish?: string) =>
    bench().runner(permitsAcquire, form)(keys, args(lease, publish)) as Promise<number[]>;

  /** A reply whose time has run for a moment. */
  async function expectReply(
    reply: Promise<number[]>,
    granted: number,
    free: number,
    ends: number,
  ): Promise<void> {
    const [word, left, ms] = await reply;
    expect([word, left]).toEqual([granted, free]);
    expectTtl(ms, ends);
    if (ends > 0) expect(ms).toBeGreaterThan(0);
  }

  test("1: taken, once however often it runs; its lease is only raised", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await expectReply(acquire(20_000), 1, 4, 20_000);
    await bench().expect({ [NUMBER]: number(4), [LEASES]: scored({ [MINE]: later(20_000) }) });
    await expectReply(acquire(60_000), 1, 4, 60_000);
    await expectReply(acquire(10_000), 1, 4, 60_000);
    await bench().expect({ [NUMBER]: number(4), [LEASES]: scored({ [MINE]: later(60_000) }) });
    expect(await bench().heard()).toEqual([]);
  });

  test("every byte of an id stands for itself", async () => {
    await bench().put({ [NUMBER]: number(1) });
    const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
    await bench().runner(permitsAcquire, form)(keys, { id, lease: 30_000, publish: "PUBLISH" });
    expect(await bench().redis.zrangeBuffer(LEASES, "0", "-1")).toEqual([Buffer.from(id, "hex")]);
  });

  test("0: none is free; it says when the next lease ends", async () => {
    const states = { [NUMBER]: number(0), [LEASES]: scored({ [THEIRS]: 25_000, other: 50_000 }) };
    await bench().put(states);
    await expectReply(acquire(), 0, 0, 25_000);
    await bench().expect(states);
  });

  test("1: it says when the next lease of all ends", async () => {
    await bench().put({ [NUMBER]: number(2), [LEASES]: scored({ [THEIRS]: 15_000 }) });
    await expectReply(acquire(30_000), 1, 1, 15_000);
  });

  test.each([0, -2])("0: %i are free and all are out for ever, or missing", async (free) => {
    await bench().put({ [NUMBER]: number(free) });
    await bench().redis.zadd(LEASES, NEVER, THEIRS);
    expect(await acquire()).toEqual([0, 0, -1]);
    await bench().put({ [NUMBER]: number(free) });
    expect(await acquire()).toEqual([0, 0, -1]);
    await bench().put({});
    expect(await acquire()).toEqual([0, 0, -1]);
    await bench().expect({});
  });

  test("a lease that ends just before never does end", async () => {
    await bench().put({ [NUMBER]: number(0) });
    await bench().redis.zadd(LEASES, NEVER - 1, THEIRS);
    const [granted, free, ms = 0] = await acquire();
    expect([granted, free]).toEqual([0, 0]);
    expect(ms).toBeGreaterThan(900_000_000_000_000);
  });

  test.each(publishers)(
    "leases that are over free their permits, which is announced by %s",
    async (publish) => {
      const out = { [LONG_GONE]: -50_000, [JUST_GONE]: 0, [THEIRS]: 30_000 };
      await bench().put({ [NUMBER]: number(0), [LEASES]: scored(out) });
      await expectReply(acquire(60_000, publish), 1, 1, 30_000);
      expect(await bench().heard()).toEqual(told(2, publish));
      await bench().expect({
        [NUMBER]: number(1),
        [LEASES]: scored({ [THEIRS]: 30_000, [MINE]: later(60_000) }),
      });
    },
  );

  test("its own lease that is over is no grant: it is taken anew", async () => {
    await bench().put({ [NUMBER]: number(0), [LEASES]: scored({ [MINE]: -1 }) });
    await expectReply(acquire(30_000), 1, 0, 30_000);
    await bench().expect({ [NUMBER]: number(0), [LEASES]: scored({ [MINE]: later(30_000) }) });
  });

  test("what comes back to a semaphore in debt is not announced, and not granted", async () => {
    await bench().put({ [NUMBER]: number(-2), [LEASES]: scored({ [LONG_GONE]: -1 }) });
    expect(await acquire()).toEqual([0, 0, -1]);
    await bench().expect({ [NUMBER]: number(-1) });
    expect(await bench().heard()).toEqual([]);
  });

  test("granted again while the free ones are below 0: it says 0", async () => {
    await bench().put({ [NUMBER]: number(-2), [LEASES]: scored({ [MINE]: 30_000 }) });
    await expectReply(acquire(30_000), 1, 0, 30_000);
  });

  test("2: an id that is over gets nothing, and nothing is looked at", async () => {
    const states = {
      [NUMBER]: number(5),
      [LEASES]: scored({ [LONG_GONE]: -1 }),
      [keys.tombstone]: text("over", 20_000),
    };
    await bench().put(states);
    expect(await acquire()).toEqual([2, 0, 0]);
    await bench().expect(states);
  });

  test("leases get the TTL of the permits, which is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect((await acquire(10_000)).slice(0, 2)).toEqual([1, 4]);
    await bench().expect({
      [NUMBER]: number(4, 30_000),
      [LEASES]: scored({ [MINE]: later(10_000) }, 30_000),
    });
    await bench().put({ [NUMBER]: number(5), [LEASES]: scored({ [THEIRS]: 30_000 }) });
    await acquire(10_000);
    expect(await bench().redis.pttl(LEASES)).toBe(-1);
  });

  test("the largest lease survives", async () => {
    await bench().put({ [NUMBER]: number(1) });
    expect(await acquire(MOST)).toEqual([1, 0, -1]);
    expect(await acquire(1)).toEqual([1, 0, -1]);
    expect(await bench().redis.zcard(LEASES)).toBe(1);
  });

  test.each([9_000, 60_000])("%i leases that are over at once", async (many) => {
    await bench().put({ [NUMBER]: number(0) });
    await bench().redis.eval(
      "for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], i, 'permit ' .. i) end",
      1,
      LEASES,
      many,
    );
    await expectReply(acquire(30_000), 1, many - 1, 30_000);
    await bench().expect({ [NUMBER]: number(many - 1), [LEASES]: scored({ [MINE]: later(30_000) }) });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    const states = { [NUMBER]: state, [LEASES]: scored({ [LONG_GONE]: -1 }) };
    await bench().put(states);
    await expect(acquire()).rejects.toThrow(refusal);
    await bench().expect(states);
  });

  test("other data where the leases should be is left alone", async () => {
    const states = { [NUMBER]: number(5), [LEASES]: text("theirs", -1) };
    await bench().put(states);
    await expect(acquire()).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test.each([0, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value) });
    const limited = bench().runner(permitsAcquire, form, await bench().without("decrby"));
    expect(await limited(keys, args())).toEqual([0, 0, -1]);
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect((await acquire())[0]).toBe(1);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345677");
  });

  test("without memory all of it is done, or nothing", async () => {
    const others = { [THEIRS]: 30_000 };
    await bench().put({ [NUMBER]: number(5), [LEASES]: scored(others) });
    let granted = 1;
    await bench().outOfMemory(async () => {
      await acquire().catch((error: Error) => {
        expect(error.message).toContain("OOM");
        granted = 0;
      });
    });
    await bench().expect({
      [NUMBER]: number(5 - granted),
      [LEASES]: scored({ ...others, ...(granted ? { [MINE]: later(30_000) } : {}) }),
    });
  });

  test("who may not announce may acquire", async () => {
    const mute = bench().runner(permitsAcquire, form, await bench().withoutChannels());
    await bench().put({ [NUMBER]: number(0), [LEASES]: scored({ [LONG_GONE]: -1 }) });
    expect(((await mute(keys, args())) as number[]).slice(0, 2)).toEqual([1, 0]);
  });

  test.each([
    "exists",
    "time",
    "get",
    "zremrangebyscore",
    "incrby",
    "zscore",
    "decrby",
    "zadd",
    "pttl",
    "pexpire",
    "zrange",
  ])("who may not %s is told so", async (command) => {
    await bench().put({ [NUMBER]: number(0, 30_000), [LEASES]: scored({ [LONG_GONE]: -1 }) });
    const limited = bench().runner(permitsAcquire, form, await bench().without(command));
    await expectForbidden(bench(), limited(keys, args()));
  });
});
