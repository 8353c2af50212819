import { describe, expect, test } from "vitest";
import { lockInspect } from "../../src/scripts/generated.js";
import { expectTtl, forms, held, LOCK, type State, text } from "./bench.js";
import { expectForbidden, useBench } from "./counts.js";

const QUEUE = "redisson_lock_queue:{job}";
const COUNTER = "redisson_lock_token:{job}";
const CLIENT = "6e3814a1-e847-452b-a982-45baf93a1df2";
const [ME, OTHER, DEAD] = [`${CLIENT}:1`, `${CLIENT}:2`, `${CLIENT}:-3`];
const bench = useBench();
const keys = { lock: LOCK, queue: QUEUE, counter: COUNTER };
const readHold = (owner: string, i: number): string => `{job}:${owner}:rwlock_timeout:${i}`;

type Reply = [
  pttl?: number,
  fenced?: number,
  mode?: string,
  waiters?: string[],
  holders?: (string | number)[],
];

describe.each(forms(lockInspect))("lock/inspect, %s", (form) => {
  const inspect = () => bench().runner(lockInspect, form)(keys, {}) as Promise<Reply>;

  /** Nothing changes by the look. */
  async function look(states: Record<string, State>): Promise<Reply> {
    await bench().put(states);
    const reply = await inspect();
    await bench().expect(states);
    expect(await bench().heard()).toEqual([]);
    return reply;
  }

  test("a lock: its TTL, its owner and count", async () => {
    // A key that would be a read hold's is none of this lock.
    const [pttl, ...rest] = await look({
      [LOCK]: held({ [ME]: "2" }, 30_000),
      [readHold(ME, 1)]: text("1", 9_000),
    });
    expectTtl(pttl, 30_000);
    expect(rest).toEqual([0, "", [], [ME, "2", 0]]);
  });

  test("a lock without end", async () => {
    expect(await look({ [LOCK]: held({ [ME]: "1" }, -1) })).toEqual([-1, 0, "", [], [ME, "1", 0]]);
  });

  test("one with a counter, one with a queue in its order", async () => {
    const lock = { [LOCK]: held({ [ME]: "1" }, 30_000) };
    expect((await look({ ...lock, [COUNTER]: text("7", -1) })).slice(1)).toEqual([1, "", [], [ME, "1", 0]]);
    const queue = { value: [OTHER, "whoever", ME], ttl: -1 };
    expect((await look({ ...lock, [QUEUE]: queue })).slice(1)).toEqual([0, "", queue.value, [ME, "1", 0]]);
  });

  test("the read side: each reader with the longest time of its holds", async () => {
    const [pttl, fenced, mode, waiters, holders = []] = await look({
      [LOCK]: held({ mode: "read", [ME]: "2", [OTHER]: "1", [DEAD]: "1" }, 90_000),
      [readHold(ME, 1)]: text("1", 20_000),
      [readHold(ME, 2)]: text("1", 60_000),
      [readHold(OTHER, 1)]: text("1", 90_000),
    });
    expectTtl(pttl, 90_000);
    expect([fenced, mode, waiters]).toEqual([0, "read", []]);
    const times = new Map<unknown, unknown>();
    for (let i = 0; i < holders.length; i += 3) times.set(`${holders[i]}=${holders[i + 1]}`, holders[i + 2]);
    expect([...times.keys()].sort()).toEqual([`${DEAD}=1`, `${ME}=2`, `${OTHER}=1`].sort());
    expectTtl(times.get(`${ME}=2`), 60_000);
    expectTtl(times.get(`${OTHER}=1`), 90_000);
    expect(times.get(`${DEAD}=1`)).toBe(0);
  });

  test.each<[string, ttl: number, counts: Record<string, string>, last: string, number[]]>([
    ["ten thousand are looked for in vain", 90_000, { [ME]: "10002" }, readHold(ME, 10_002), [30_000]],
    ["not one more; then the lock's time counts", 90_000, { [ME]: "10003" }, readHold(ME, 10_003), [90_000]],
    ["which may be without end", -1, { [ME]: "10003" }, readHold(ME, 10_003), [2 ** 52]],
    ["of all", 90_000, { [ME]: "5002", [OTHER]: "5001" }, readHold(OTHER, 5_001), [0, 30_000]],
    ["of all, not one more", 90_000, { [ME]: "5002", [OTHER]: "5002" }, readHold(OTHER, 5_002), [0, 90_000]],
  ])("readers with countless holds: %s", async (_, ttl, counts, last, times) => {
    await bench().put({ [LOCK]: held({ mode: "read", ...counts }, ttl), [last]: text("1", 30_000) });
    const [, , , , holders = []] = await inspect();
    expect(holders.filter((_field, i) => i % 3 === 0)).toEqual(Object.keys(counts));
    for (const [i, left] of times.entries()) expectTtl(holders[3 * i + 2], left);
  });

  test("the write side, and a writer that reads too", async () => {
    const [pttl, ...rest] = await look({ [LOCK]: held({ mode: "write", [`${ME}:write`]: "1" }, 30_000) });
    expectTtl(pttl, 30_000);
    expect(rest).toEqual([0, "write", [], [`${ME}:write`, "1", 0]]);
    const both = await look({
      [LOCK]: held({ mode: "write", [`${ME}:write`]: "1", [ME]: "1" }, 30_000),
      [readHold(ME, 1)]: text("1", 20_000),
    });
    const holders = both[4] ?? [];
    expect(holders.filter((_, i) => i % 3 !== 2).sort()).toEqual(["1", "1", ME, `${ME}:write`]);
    expectTtl(holders[holders.indexOf(ME) + 2], 20_000);
  });

  test("{}: nothing, or a number", async () => {
    for (const states of [
      {},
      { [QUEUE]: { value: [OTHER], ttl: -1 } },
      { [LOCK]: text("3", -1) },
      { [LOCK]: text("-2", -1) },
    ])
      expect(await look(states)).toEqual([]);
  });

  test("other data is refused", async () => {
    const hashes: Record<string, string>[] = [
      { [ME]: "1", [OTHER]: "1" },
      { mode: "dark", [ME]: "1" },
      { mode: "read" },
      { hits: "1" },
      { [ME]: "yes" },
      { [ME]: "1.5" },
      { [ME]: "-1" },
      { mode: "read", [ME]: "100000" },
      { [`${ME}x`]: "1" },
      { [`x${ME}`]: "1" },
      { [`${ME}:write`]: "1" },
      { mode: "read", [ME]: "1", user: "1" },
      { mode: "write", [`${ME}:write:write`]: "1" },
      { mode: "read", [ME]: "1", [OTHER]: "no" },
      // Many more than are looked at first, which chance picks.
      {
        mode: "read",
        user: "1",
        ...Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`${ME}${i}`, "1"])),
      },
    ];
    const others: State[] = [text("paid", -1), text("2.5", -1), { value: ["a"], ttl: -1 }];
    for (const state of [...hashes.map((fields) => held(fields, 30_000)), ...others]) {
      await bench().put({ [LOCK]: state });
      await expect(inspect(), JSON.stringify(state)).rejects.toThrow("WRONGTYPE");
      await bench().expect({ [LOCK]: state });
    }
  });

  test("a queue that is none counts as empty", async () => {
    const states = { [LOCK]: held({ [ME]: "1" }, 30_000), [QUEUE]: text("theirs", -1) };
    expect((await look(states)).slice(1)).toEqual([0, "", [], [ME, "1", 0]]);
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await bench().outOfMemory(async () => {
      expect((await inspect()).slice(1)).toEqual([0, "", [], [ME, "1", 0]]);
    });
  });

  test("who may not get is told so where it would", async () => {
    await bench().put({ [LOCK]: text("3", 30_000) });
    const limited = bench().runner(lockInspect, form, await bench().without("get"));
    await expectForbidden(bench(), limited(keys, {}));
  });

  test.each(["type", "hget", "hrandfield", "hgetall", "pttl", "exists", "lrange"])(
    "who may not %s is told so",
    async (command) => {
      await bench().put({ [LOCK]: held({ [ME]: "1" }, 30_000), [QUEUE]: { value: [OTHER], ttl: 30_000 } });
      const limited = bench().runner(lockInspect, form, await bench().without(command));
      await expectForbidden(bench(), limited(keys, {}));
    },
  );
});
