import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeAcquire } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
  forms,
  held,
  LOCK,
  later,
  ME,
  MOST,
  OTHER,
  type States,
  scored,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import { CHANNEL, holds, MY_WRITE, over, reading, THIRD, WRITERS, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

const KEYS = { lock: LOCK, tombstone: TOMBSTONE, writers: WRITERS };
/** How long an unheard writer counts as waiting. */
const PATIENCE = 20_000;
/** A try of a call that does not wait, or whose writers do not go first. */
const NO_WAIT = 0;

describe.each(forms(writeAcquire))("write/acquire, %s", (form) => {
  const args = (lease: number, patience: number) => ({
    owner: ME,
    field: MY_WRITE,
    lease,
    patience,
  });
  const acquire = (lease: number, patience = PATIENCE) =>
    bench.runner(writeAcquire, form)(KEYS, args(lease, patience)) as Promise<number[]>;

  async function expectRefused(reply: Promise<number[]>, ms: number): Promise<void> {
    const [granted, found, ...rest] = await reply;
    expect([granted, rest]).toEqual([0, []]);
    expectTtl(found, ms);
  }

  test.each([PATIENCE, NO_WAIT])(
    "1: a free lock is granted, once however often it is sent (%i)",
    async (patience) => {
      await bench.put({});
      for (const _ of [1, 2]) {
        expect(await acquire(30_000, patience)).toBe(1);
        await bench.expect(writing(30_000));
      }
      expect(await bench.heard()).toEqual([]);
    },
  );

  test("1: sent again, it keeps counts, and the TTL is raised and never a sum", async () => {
    await bench.put(writing(30_000, "12", [10_000]));
    expect(await acquire(15_000)).toBe(1);
    await bench.expect(writing(30_000, "12", [10_000]));
    expect(await acquire(40_000)).toBe(1);
    await bench.expect(writing(40_000, "12", [10_000]));
  });

  test("1: whoever is granted the lock waits no more; the others do", async () => {
    await bench.put({ [WRITERS]: scored({ [OTHER]: 5_000, [ME]: 6_000, [THIRD]: -1 }, 40_000) });
    expect(await acquire(30_000)).toBe(1);
    await bench.expect({ ...writing(30_000), [WRITERS]: scored({ [OTHER]: 5_000, [THIRD]: -1 }, 40_000) });
    await bench.put({ [WRITERS]: scored({ [ME]: 6_000 }, 40_000) });
    expect(await acquire(30_000, NO_WAIT)).toBe(1);
    await bench.expect(writing(30_000));
  });

  test("1: a lock whose readers have all lapsed is free, also when its own TTL has not", async () => {
    await bench.put(reading({ [OTHER]: [0, 0], [THIRD]: [0] }, 90_000));
    for (const _ of [1, 2]) {
      expect(await acquire(30_000)).toBe(1);
      await bench.expect(writing(30_000));
    }
  });

  test("{0, pttl}: one hold that lives keeps the lock for all lapsed ones", async () => {
    const states = reading({ [OTHER]: [0, 25_000, 0], [THIRD]: [0] }, 50_000);
    await bench.put(states);
    await expectRefused(acquire(90_000, NO_WAIT), 50_000);
    await bench.expect(states);
  });

  test.each<[string, States, number]>([
    ["another writes", writing(50_000, "2", [], OTHER), 50_000],
    ["another writes, without end", writing(-1, "1", [], OTHER), -1],
    ["another writes, whose read holds have lapsed", writing(50_000, "2", [0], OTHER), 50_000],
    ["others read", reading({ [OTHER]: [50_000] }), 50_000],
    ["a plain lock of that name is there", { [LOCK]: held({ [OTHER]: "1" }, 50_000) }, 50_000],
  ])("{0, pttl}: %s; who does not wait is not marked", async (_, states, ttl) => {
    await bench.put(states);
    await expectRefused(acquire(90_000, NO_WAIT), ttl);
    await bench.expect(states);
    await expectRefused(acquire(90_000), ttl);
    await bench.expect({ ...states, [WRITERS]: scored({ [ME]: later(PATIENCE) }, PATIENCE) });
  });

  test("{0, pttl}: a waiting writer is marked, the marks of others stay, those of dead ones go", async () => {
    const lock = reading({ [OTHER]: [50_000] });
    await bench.put({ ...lock, [WRITERS]: scored({ a: -1, b: 5_000, [ME]: 4_000 }, 5_000) });
    for (const _ of [1, 2]) {
      await expectRefused(acquire(90_000), 50_000);
      await bench.expect({ ...lock, [WRITERS]: scored({ b: 5_000, [ME]: later(PATIENCE) }, PATIENCE) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("{0, pttl}: a late copy of the command by which its owner came to write, before it went on as a reader", async () => {
    const states = reading({ [ME]: [50_000], [OTHER]: [30_000] });
    await bench.put(states);
    await expectRefused(acquire(90_000), 50_000);
    await bench.expect(states);
  });

  test("who does not wait leaves the marks of others as they are", async () => {
    const states = {
      ...reading({ [OTHER]: [50_000] }),
      [WRITERS]: scored({ [OTHER]: -1, [THIRD]: 5_000 }, 5_000),
    };
    await bench.put(states);
    await expectRefused(acquire(90_000, NO_WAIT), 50_000);
    await bench.expect(states);
  });

  test("{0, -1}: a lock without end that is read", async () => {
    const states = reading({ [OTHER]: [50_000] }, -1);
    await bench.put(states);
    expect(await acquire(90_000, NO_WAIT)).toEqual([0, -1]);
    await bench.expect(states);
  });

  test("a mark and its key last as long as the longest patience", async () => {
    const lock = reading({ [OTHER]: [50_000] });
    await bench.put({ ...lock, [WRITERS]: scored({ [OTHER]: 35_000 }, 35_000) });
    await expectRefused(acquire(90_000), 50_000);
    await bench.expect({ ...lock, [WRITERS]: scored({ [OTHER]: 35_000, [ME]: later(PATIENCE) }, 35_000) });
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["its own lock", writing(20_000)],
    ["another's lock", writing(20_000, "1", [], OTHER)],
    ["a lock that others read", reading({ [OTHER]: [20_000] })],
  ])("{2, 0}: a wire id that is over does not get %s, nor a mark", async (_, before) => {
    const states = { ...before, ...over, [WRITERS]: scored({ [OTHER]: 5_000 }, 40_000) };
    await bench.put(states);
    expect(await acquire(90_000)).toEqual([2, 0]);
    await bench.expect(states);
  });

  test("the largest numbers survive", async () => {
    await bench.put({});
    expect(await acquire(MOST)).toBe(1);
    await bench.expect(writing(MOST));
    await bench.put(writing(30_000));
    expect(await acquire(MOST)).toBe(1);
    await bench.expect(writing(MOST));
    await bench.put(writing(MOST, "1", [], OTHER));
    await expectRefused(acquire(1, 1e12), MOST);
    await bench.expect({ ...writing(MOST, "1", [], OTHER), [WRITERS]: scored({ [ME]: later(1e12) }, 1e12) });
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      const before = {
        [name]: held({ mode: "read", "6e3814a1-e847-452b-a982-45baf93a1df2:-1": "2" }, 50_000),
        ...holds("6e3814a1-e847-452b-a982-45baf93a1df2:-1", [0, 30_000], base),
      };
      await bench.put(before);
      await expectRefused(
        bench.runner(writeAcquire, form)({ ...KEYS, lock: name }, args(1, NO_WAIT)) as Promise<number[]>,
        50_000,
      );
      await bench.expect(before);
    }
  });

  test.each<[string, States]>([
    ["the lock", { [LOCK]: { value: ["theirs"], ttl: 60_000 } }],
    ["the waiting writers", { [WRITERS]: text("theirs", 60_000) }],
    ["the waiting writers", { ...reading({ [OTHER]: [30_000] }), [WRITERS]: text("theirs", 60_000) }],
  ])("other data in the key of %s stays as it is", async (_, states) => {
    await bench.put(states);
    await expect(acquire(90_000)).rejects.toThrow("WRONGTYPE");
    await bench.expect(states);
  });

  test("who may not mark itself is told so, also when it is alone", async () => {
    await bench.put(reading({ [OTHER]: [30_000] }));
    await bench.expectRefusal("zadd", writeAcquire, form, KEYS, args(60_000, PATIENCE));
    await bench.expect(reading({ [OTHER]: [30_000] }));
  });

  test("without memory a free lock is granted or refused, but either wholly", async () => {
    await bench.put({});
    await bench.outOfMemory(async () => {
      const reply = await acquire(90_000).catch(String);
      if (typeof reply === "string") expect(reply).toContain("OOM");
      else expect(reply).toBe(1);
      await bench.expect(typeof reply === "string" ? {} : writing(90_000));
    });
  });

  const marked = { ...reading({ [OTHER]: [30_000] }), [WRITERS]: scored({ [OTHER]: 5_000 }, 40_000) };
  test.each<[string, States]>([
    ["hget", {}],
    ["hgetall", marked],
    ["pttl", marked],
    ["del", reading({ [OTHER]: [0] }, 30_000)],
    ["exists", {}],
    ["zrem", {}],
    ["hset", {}],
    ["pexpire", {}],
    ["hexists", writing(30_000)],
    ["pttl", writing(30_000)],
    ["pexpire", writing(30_000)],
    ["time", marked],
    ["hexists", marked],
    ["zremrangebyscore", marked],
    ["zadd", marked],
  ])("who may not %s is told so, and leaves nothing without end", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, writeAcquire, form, KEYS, args(60_000, PATIENCE));
  });
});
