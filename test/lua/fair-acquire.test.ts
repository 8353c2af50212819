import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairAcquire } from "../../src/scripts/generated.js";
import {
  type Bench,
  FORBIDDEN,
  forms,
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
import {
  ALIVE,
  type Attempt,
  attempt,
  FAIR_KEYS,
  GRACE,
  heard,
  inLine,
  JAVA,
  JAVA_2,
  line,
  mine,
  NO_WAIT,
  PATIENCE,
  type Place,
  QUEUE,
  THIRD,
  TIMEOUTS,
  theirs,
  wakeChannel,
} from "./fair-line.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([wakeChannel(OTHER)]);
});
afterAll(() => bench?.stop());

describe.each(forms(fairAcquire))("fair/acquire, %s: granted or refused for good", (form) => {
  const acquire = (changes?: Partial<Attempt>) =>
    bench.runner(fairAcquire, form)(FAIR_KEYS, attempt(changes)) as Promise<number[]>;

  test.each([PATIENCE, NO_WAIT])("a free lock without a queue, once however often (%i)", async (patience) => {
    await bench.put({});
    for (const _ of [1, 2]) {
      expect(await acquire({ patience })).toBe(1);
      await bench.expect(mine(60_000));
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("sent again, it keeps count and queue, and only raises the TTL", async () => {
    const waiting = inLine([OTHER, { due: 330_000, alive: 5_000 }], [JAVA, { due: -1 }]);
    await bench.put({ ...mine(90_000, "12"), ...waiting });
    expect(await acquire({ coWaiters: [OTHER] })).toBe(1);
    await bench.expect({ ...mine(90_000, "12"), ...waiting });
    expect(await acquire({ lease: 120_000 })).toBe(1);
    await bench.expect({ ...mine(120_000, "12"), ...waiting });
  });

  test("the head of the queue leaves it, and all behind are one grace nearer", async () => {
    const behind = (less: number): [string, Place][] => [
      [OTHER, { due: 700_000 - less, alive: 15_000 }],
      [JAVA, { due: 1_000_000 - less }],
    ];
    await bench.put(inLine([ME, { due: 400_000, alive: 9_000 }], ...behind(0)));
    for (const _ of [1, 2]) {
      expect(await acquire()).toBe(1);
      await bench.expect({ ...mine(60_000), ...inLine(...behind(GRACE)) });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("the last of the queue leaves no key behind but the lock", async () => {
    await bench.put(inLine([ME, { due: 400_000, alive: 9_000 }]));
    expect(await acquire()).toBe(1);
    await bench.expect(mine(60_000));
  });

  test("a grant heeds what it hears of co-waiters before it takes the grace off", async () => {
    await bench.put(inLine([ME, { due: 400_000, alive: 9_000 }], [OTHER, { due: 5_000, alive: 1_000 }]));
    expect(await acquire({ coWaiters: [OTHER] })).toBe(1);
    await bench.expect({ ...mine(60_000), ...inLine([OTHER, heard(later(0))]) });
  });

  test("however many are behind, all are one grace nearer", async () => {
    const many = (less: number) =>
      [1, 2, 3, 4].map((i): [string, Place] => [
        `client:${9 + i}`,
        { due: i * 500_000 - less, alive: 9_000 },
      ]);
    await bench.put(inLine([ME, { due: 400_000, alive: 9_000 }], ...many(0)));
    expect(await acquire()).toBe(1);
    await bench.expect({ ...mine(60_000), ...line(many(GRACE), 1_700_000) });
  });

  test("who stands in the zset but not in the list is granted a free lock, and leaves the zset", async () => {
    await bench.put({ [TIMEOUTS]: scored({ [ME]: 400_000 }) });
    expect(await acquire()).toBe(1);
    await bench.expect(mine(60_000));
  });

  test("whoever is in line is granted the lock after the dead before it were dropped", async () => {
    await bench.put(
      inLine(
        [JAVA, { due: -1 }],
        [OTHER, { due: 900_000, alive: -1 }],
        [JAVA_2, {}],
        [ME, { due: 1_200_000, alive: 9_000 }],
        [THIRD, { due: -1, alive: 9_000 }],
      ),
    );
    expect(await acquire()).toBe(1);
    await bench.expect({ ...mine(60_000), ...inLine([THIRD, { due: -1 - GRACE, alive: 9_000 }]) });
    expect(await bench.heard()).toEqual([]);
  });

  test("the key of who is alive does not stay without TTL when that of a co-waiter was gone", async () => {
    const places: [string, Place][] = [
      [ME, { due: 400_000 }],
      [OTHER, { due: 700_000 }],
    ];
    await bench.put(inLine(...places));
    expect(await acquire({ coWaiters: [OTHER] })).toBe(1);
    expect(await bench.redis.pttl(ALIVE)).not.toBe(-1);
  });

  const waiting = inLine([OTHER, { due: 330_000, alive: 5_000 }]);
  test.each([
    ["a free lock", waiting],
    ["its own lock", { ...mine(20_000), ...waiting }],
    ["another's lock", { ...theirs(20_000), ...waiting }],
  ])("{2, 0}: a wire id that is over does not get %s, nor a place", async (_, before) => {
    const states = { ...before, [TOMBSTONE]: text("1", 40_000) };
    await bench.put(states);
    expect(await acquire({ coWaiters: [OTHER] })).toEqual([2, 0]);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive", async () => {
    await bench.put({});
    expect(await acquire({ lease: MOST })).toBe(1);
    await bench.expect(mine(MOST));
    await bench.put(mine(30_000));
    expect(await acquire({ lease: MOST })).toBe(1);
    await bench.expect(mine(MOST));
    await bench.put(inLine([ME, { due: 1, alive: 9_000 }], [OTHER, { due: MOST - 2e13, alive: 9_000 }]));
    expect(await acquire({ grace: MOST - 3e13 })).toBe(1);
    await bench.expect({ ...mine(60_000), ...line([[OTHER, { due: 1e13, alive: 9_000 }]], 1e13) });
  });

  test.each<[string, States]>([
    ["the lock", { [LOCK]: { value: ["theirs"], ttl: 60_000 } }],
    ["the queue", { [QUEUE]: text("theirs", 60_000) }],
    ["the timeouts", { ...theirs(30_000), [TIMEOUTS]: text("theirs", 60_000) }],
    ["those alive", { ...inLine([ME, { due: 900_000 }]), [ALIVE]: text("theirs", 60_000) }],
    [
      "those alive, of which the head is asked",
      { ...inLine([JAVA, { due: 330_000 }]), [ALIVE]: text("theirs", 60_000) },
    ],
  ])("other data in the key of %s stays as it is", async (_, states) => {
    await bench.put(states);
    await expect(acquire()).rejects.toThrow("WRONGTYPE");
    await bench.expect(states);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["its turn", inLine([ME, { due: 330_000, alive: 9_000 }], [OTHER, { due: 630_000, alive: 9_000 }])],
    ["a place", theirs(30_000)],
    ["a place behind others", { ...theirs(30_000), ...inLine([OTHER, { due: 630_000, alive: 9_000 }]) }],
  ])("without memory %s is refused, and nothing is written, not even in part", async (_, states) => {
    await bench.put(states);
    await bench.outOfMemory(() => expect(acquire()).rejects.toThrow("OOM"));
    await bench.expect(states);
  });

  test("who may not set a TTL is told so, also when it does not wait", async () => {
    await bench.put({});
    await bench.expectRefusal("pexpire", fairAcquire, form, FAIR_KEYS, attempt({ patience: NO_WAIT }));
    await bench.expect({});
  });

  test("who may not look for the last place is told so", async () => {
    await bench.put(theirs(30_000));
    const limited = bench.runner(fairAcquire, form, await bench.without("zrevrange"));
    await expect(limited(FAIR_KEYS, attempt())).rejects.toThrow(FORBIDDEN);
  });

  const turn = inLine([ME, { due: 330_000, alive: 9_000 }], [OTHER, { due: 630_000, alive: 9_000 }]);
  const dead = inLine([OTHER, { due: 330_000, alive: -1 }]);
  test.each<[string, States]>([
    ["exists", {}],
    ["hexists", {}],
    ["time", {}],
    ["pttl", {}],
    ["zscore", {}],
    ["lindex", {}],
    ["hset", {}],
    ["pexpire", {}],
    ["pttl", mine(30_000)],
    ["pexpire", mine(30_000)],
    ["zadd", turn],
    ["lpop", turn],
    ["zrem", turn],
    ["zrange", turn],
    ["zincrby", turn],
    ["lpop", dead],
    ["zrem", dead],
    ["zadd", theirs(30_000)],
    ["rpush", theirs(30_000)],
  ])("who may not %s is told so, and leaves no lock without end", async (command, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, fairAcquire, form, FAIR_KEYS, attempt());
  });
});
