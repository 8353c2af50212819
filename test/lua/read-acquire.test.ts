import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readAcquire } from "../../src/scripts/generated.js";
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
  scored,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { CHANNEL, holdKey, holds, reading, THIRD, WRITERS, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const KEYS = { lock: LOCK, writers: WRITERS, theirs: [TOMBSTONE, holdKey(ME, 1)] };
const mine = (lease: number, yields = 1) => ({ owners: [ME], leases: [lease], yield: yields });
/** A writer that waits, alive for so many ms. */
const waits = (ms: number): States => ({ [WRITERS]: scored({ [OTHER]: -1, [THIRD]: ms }, 40_000) });

describe.each(forms(readAcquire))("read/acquire, %s", (form) => {
  const acquire = (lease: number, yields = 1) =>
    bench.runner(readAcquire, form)(KEYS, mine(lease, yields)) as Promise<number[]>;

  async function expectRefused(reply: Promise<number[]>, ms: number): Promise<void> {
    const [granted, found, ...rest] = await reply;
    expect([granted, rest]).toEqual([0, []]);
    expectTtl(found, ms);
  }

  test.each([0, 1])(
    "{1, 0}: a free lock is granted, once however often it is sent (yield %i)",
    async (yields) => {
      await bench.put({});
      for (const _ of [1, 2]) {
        expect(await acquire(30_000, yields)).toEqual([1, 0]);
        await bench.expect(reading({ [ME]: [30_000] }));
      }
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("{1, 0}: sent again, it keeps the count, and only raises the TTLs of hold and lock", async () => {
    await bench.put(reading({ [ME]: [30_000, 90_000] }));
    expect(await acquire(15_000)).toEqual([1, 0]);
    await bench.expect(reading({ [ME]: [30_000, 90_000] }));
    expect(await acquire(60_000)).toEqual([1, 0]);
    await bench.expect(reading({ [ME]: [60_000, 90_000] }));
    expect(await acquire(120_000)).toEqual([1, 0]);
    await bench.expect(reading({ [ME]: [120_000, 90_000] }));
  });

  test.each([
    ["longer", 60_000],
    ["shorter: the TTL of the lock is theirs then", 15_000],
  ])("{1, 0}: beside other readers, with a lease that is %s", async (_, lease) => {
    await bench.put(reading({ [OTHER]: [30_000, 10_000] }));
    for (const _again of [1, 2]) {
      expect(await acquire(lease)).toEqual([1, 0]);
      await bench.expect(reading({ [OTHER]: [30_000, 10_000], [ME]: [lease] }));
    }
  });

  test("{1, 0}: beside readers that have all lapsed, as with Redisson", async () => {
    await bench.put(reading({ [OTHER]: [0] }, 30_000));
    expect(await acquire(60_000)).toEqual([1, 0]);
    await bench.expect(reading({ [OTHER]: [0], [ME]: [60_000] }));
  });

  test("{1, 0}: a hold key without TTL gets one", async () => {
    await bench.put({ [holdKey(ME, 1)]: text("1", -1) });
    expect(await acquire(60_000)).toEqual([1, 0]);
    await bench.expect(reading({ [ME]: [60_000] }));
  });

  test("{1, 0}: sent again when its owner has come to write as well, it changes nothing of that", async () => {
    await bench.put(writing(90_000, "2", [30_000]));
    expect(await acquire(60_000)).toEqual([1, 0]);
    await bench.expect(writing(90_000, "2", [60_000]));
  });

  test("{0, pttl}: another writes", async () => {
    await bench.put(writing(50_000, "2", [30_000], OTHER));
    await expectRefused(acquire(90_000), 50_000);
    await bench.expect(writing(50_000, "2", [30_000], OTHER));
    await bench.put(writing(-1, "1", [], OTHER));
    expect(await acquire(90_000)).toEqual([0, -1]);
    await bench.expect(writing(-1, "1", [], OTHER));
  });

  test("{0, pttl}: a plain lock of that name is not shared", async () => {
    const states = { [LOCK]: held({ [OTHER]: "1" }, 50_000) };
    await bench.put(states);
    await expectRefused(acquire(90_000), 50_000);
    await bench.expect(states);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["a lock that others read", reading({ [OTHER]: [90_000] })],
  ])("{0, ms}: for %s a waiting writer goes first, until it is taken for dead", async (_, before) => {
    const states = { ...before, ...waits(25_000) };
    await bench.put(states);
    await expectRefused(acquire(60_000), 25_000);
    await bench.expect(states);
  });

  test.each<[string, number, States]>([
    ["one that does not yield", 0, waits(25_000)],
    ["one that finds the waiting writers dead", 1, waits(-1)],
  ])("{1, 0}: %s is let in at once", async (_, yields, writers) => {
    await bench.put(writers);
    expect(await acquire(60_000, yields)).toEqual([1, 0]);
    await bench.expect({ ...reading({ [ME]: [60_000] }), ...writers });
  });

  test("{1, 0}: an owner that reads already passes waiting writers", async () => {
    await bench.put({ ...reading({ [ME]: [30_000] }), ...waits(25_000) });
    expect(await acquire(60_000)).toEqual([1, 0]);
    await bench.expect({ ...reading({ [ME]: [60_000] }), ...waits(25_000) });
  });

  test("{0, pttl}: while another writes, its time counts and not that of waiting writers", async () => {
    await bench.put({ ...writing(50_000, "1", [], OTHER), ...waits(25_000) });
    await expectRefused(acquire(60_000), 50_000);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["its own lock", reading({ [ME]: [20_000] })],
    ["a lock that others read", reading({ [OTHER]: [20_000] })],
    ["a lock that another writes", writing(20_000, "1", [], OTHER)],
  ])("{2, 0}: a wire id that is over does not get %s", async (_, before) => {
    const states = { ...before, [TOMBSTONE]: text("1", 40_000) };
    await bench.put(states);
    expect(await acquire(90_000)).toEqual([2, 0]);
    await bench.expect(states);
  });

  test("many at once are each answered as if they had come one after the other", async () => {
    const theirs = [OTHER, ME, THIRD].flatMap((owner) => [
      `redisson_unlock_latch:{job}:${owner}`,
      holdKey(owner, 1),
    ]);
    const together = (owners: string[], leases: number[]) =>
      bench.runner(readAcquire, form)({ lock: LOCK, writers: WRITERS, theirs }, { owners, leases, yield: 1 });
    const before = { [TOMBSTONE]: text("1", 40_000) };
    await bench.put(before);
    expect(await together([OTHER, ME, THIRD], [20_000, 90_000, 60_000])).toEqual([1, 0, 2, 0, 1, 0]);
    await bench.expect({ ...before, ...reading({ [OTHER]: [20_000], [THIRD]: [60_000] }) });
    const states = { ...before, ...writing(50_000, "1", [], OTHER) };
    await bench.put(states);
    const [first, forOther, second, over, third, ms] = (await together(
      ["6e3814a1-e847-452b-a982-45baf93a1df2:7", ME, THIRD],
      [60_000, 60_000, 60_000],
    )) as number[];
    expect([first, second, over, third]).toEqual([0, 2, 0, 0]);
    expectTtl(forOther, 50_000);
    expectTtl(ms, 50_000);
    await bench.expect(states);
  });

  test("the largest lease survives as text", async () => {
    await bench.put({});
    expect(await acquire(MOST)).toEqual([1, 0]);
    await bench.expect(reading({ [ME]: [MOST] }));
    await bench.put(reading({ [OTHER]: [30_000] }));
    expect(await acquire(MOST)).toEqual([1, 0]);
    await bench.expect(reading({ [OTHER]: [30_000], [ME]: [MOST] }));
  });

  test.each<[string, States]>([
    ["the lock", { [LOCK]: { value: ["theirs"], ttl: 60_000 } }],
    ["the waiting writers", { [WRITERS]: text("theirs", 60_000) }],
  ])("other data in the key of %s stays as it is", async (_, states) => {
    await bench.put(states);
    await expect(acquire(90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect(states);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["a lock that others read", reading({ [OTHER]: [30_000] })],
  ])("without memory %s is refused, and nothing is written, not even in part", async (_, before) => {
    await bench.put(before);
    await bench.outOfMemory(() => expect(acquire(90_000)).rejects.toThrow("OOM"));
    await bench.expect(before);
  });

  test("what is left when it fails half-way has an end", async () => {
    await bench.put({});
    await bench.expectRefusal("pexpire", readAcquire, form, KEYS, mine(60_000));
    await bench.expect(holds(ME, [60_000]));
  });

  test.each<[string, States]>([
    ["hget", {}],
    ["exists", {}],
    ["hexists", {}],
    ["zrevrange", {}],
    ["time", waits(25_000)],
    ["pttl", {}],
    ["set", {}],
    ["hset", {}],
    ["hset", reading({ [OTHER]: [30_000] })],
    ["pexpire", reading({ [OTHER]: [30_000] })],
    ["pttl", writing(30_000, "1", [], OTHER)],
  ])("who may not %s is told so, and leaves nothing without end", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, readAcquire, form, KEYS, mine(60_000));
  });
});
