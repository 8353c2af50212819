import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairAcquire } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
  forms,
  held,
  later,
  ME,
  MOST,
  OTHER,
  publishers,
  scored,
  startBench,
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
  NO_WAIT,
  PATIENCE,
  type Place,
  THIRD,
  TIMEOUTS,
  theirs,
  wakeChannel,
  woken,
} from "./fair-line.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([wakeChannel(OTHER)]);
});
afterAll(() => bench?.stop());

describe.each(forms(fairAcquire))("fair/acquire, %s: {0, ms, i...}, refused for now", (form) => {
  const acquire = (changes?: Partial<Attempt>) =>
    bench.runner(fairAcquire, form)(FAIR_KEYS, attempt(changes)) as Promise<number[]>;

  /** Refused, with about this many ms, and these coWaiters. */
  async function expectRefused(reply: Promise<number[]>, ms: number, ...coWaiters: number[]): Promise<void> {
    const [granted, found, ...indices] = await reply;
    expect([granted, indices]).toEqual([0, coWaiters]);
    expectTtl(found, ms);
  }

  test("Redisson's scores: 330 s for the first in line, 630 s for the second", async () => {
    await bench.put(theirs(30_000));
    await expectRefused(acquire(), 30_000);
    const first = inLine([ME, heard(later(330_000))]);
    await bench.expect({
      ...theirs(30_000),
      ...first,
      [ALIVE]: scored({ [ME]: later(PATIENCE) }, 330_000),
    });
    await bench.put({ ...theirs(30_000), ...line([[ME, { due: 330_000, alive: 9_000 }]], 330_000) });
    await expectRefused(acquire({ owner: OTHER }), 30_000);
    const both: [string, Place][] = [
      [ME, { due: 330_000, alive: 9_000 }],
      [OTHER, heard(630_000)],
    ];
    await bench.expect({ ...theirs(30_000), ...line(both, 630_000) });
    expect(await bench.heard()).toEqual([]);
  });

  test("a place is taken once however often the call is sent", async () => {
    await bench.put(theirs(30_000));
    for (const _ of [1, 2, 3]) await expectRefused(acquire(), 30_000);
    await bench.expect({ ...theirs(30_000), ...line([[ME, heard(later(330_000))]], 330_000) });
  });

  test("behind a Redisson waiter, with its score as the base", async () => {
    await bench.put({ ...theirs(30_000), ...inLine([JAVA, { due: 310_123 }]) });
    await expectRefused(acquire(), 30_000);
    await bench.expect({
      ...theirs(30_000),
      ...line(
        [
          [JAVA, { due: 310_123 }],
          [ME, heard(610_123)],
        ],
        611_000,
      ),
    });
  });

  test("behind one without a score that is not the head: the holder's TTL is the base", async () => {
    await bench.put({ ...theirs(30_000), ...inLine([JAVA, { due: 310_000 }], [JAVA_2, {}]) });
    await expectRefused(acquire(), 30_000);
    await bench.expect({
      ...theirs(30_000),
      ...line(
        [
          [JAVA, { due: 310_000 }],
          [JAVA_2, {}],
          [ME, heard(later(330_000))],
        ],
        330_000,
      ),
    });
  });

  test("a lock without TTL: -1, and the grace alone is the score", async () => {
    await bench.put(theirs(-1));
    expect(await acquire()).toEqual([0, -1]);
    await bench.expect({ ...theirs(-1), ...line([[ME, heard(later(GRACE))]], GRACE) });
  });

  test("a call that does not wait takes no place, and does not overtake", async () => {
    await bench.put(theirs(30_000));
    await expectRefused(acquire({ patience: NO_WAIT }), 30_000);
    await bench.expect(theirs(30_000));
    const waiting = inLine([JAVA, { due: 310_000 }], [OTHER, { due: 610_000, alive: 9_000 }]);
    await bench.put(waiting);
    expect(await acquire({ patience: NO_WAIT })).toEqual([0, 1_000]);
    await bench.expect(waiting);
  });

  test("a call that does not wait leaves places, and the word on who is alive, as they are", async () => {
    const states = { ...theirs(30_000), ...line([[ME, { due: 310_000, alive: 9_000 }]], 15_000) };
    await bench.put(states);
    await expectRefused(acquire({ patience: NO_WAIT }), 30_000);
    await bench.expect(states);
  });

  test("a waiter that is heard of keeps its place while the holder renews past its score", async () => {
    const before: [string, Place][] = [
      [OTHER, { due: 10_000, alive: 5_000 }],
      [ME, { due: 10_000, alive: 1 }],
    ];
    await bench.put({ ...theirs(30_000), ...line(before, 15_000) });
    await expectRefused(acquire(), 30_000);
    const after: [string, Place][] = [
      [OTHER, { due: 10_000, alive: 5_000 }],
      [ME, heard(later(330_000))],
    ];
    await bench.expect({ ...theirs(30_000), ...line(after, 330_000) });
  });

  test("a score is only raised, so that Redisson's subtractions cannot drop it", async () => {
    await bench.put({ ...theirs(30_000), ...line([[ME, { due: 930_000, alive: 9_000 }]], 15_000) });
    await expectRefused(acquire(), 30_000);
    await bench.expect({ ...theirs(30_000), ...line([[ME, heard(930_000)]], 930_000) });
  });

  test("one whose place was taken meanwhile gets a new one at the end", async () => {
    await bench.put({ ...theirs(30_000), ...inLine([JAVA, { due: 310_000 }]) });
    await expectRefused(acquire(), 30_000);
    await bench.expect({
      ...theirs(30_000),
      ...line(
        [
          [JAVA, { due: 310_000 }],
          [ME, heard(610_000)],
        ],
        611_000,
      ),
    });
  });

  test("who is alive is decided by the server's clock alone, and by our word before Redisson's score", async () => {
    const alive: [string, Place] = [OTHER, { due: -1, alive: 5_000 }];
    await bench.put(inLine([THIRD, { due: 900_000, alive: -1 }], alive));
    expect(await acquire({ patience: NO_WAIT })).toEqual([0, 1_000]);
    await bench.expect(inLine(alive));
  });

  test("a head without a score does not block the queue", async () => {
    await bench.put(inLine([JAVA, {}], [THIRD, { alive: 9_000 }], [OTHER, { due: 610_000 }]));
    expect(await acquire({ patience: NO_WAIT })).toEqual([0, 1_000]);
    await bench.expect(inLine([OTHER, { due: 610_000 }]));
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("while the lock is held nobody is dropped: after a stall all have the time to be heard of", async () => {
    const states = {
      ...theirs(30_000),
      ...inLine(
        [THIRD, { due: -1, alive: -1 }],
        [JAVA, { due: -1 }],
        [JAVA_2, {}],
        [OTHER, { due: 610_000 }],
      ),
    };
    await bench.put(states);
    await expectRefused(acquire({ patience: NO_WAIT }), 30_000);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("who stands in the queue without a score is put at its end", async () => {
    await bench.put(inLine([ME, {}], [OTHER, { due: 310_000 }]));
    expect(await acquire()).toEqual([0, 1_000]);
    await bench.expect(
      line(
        [
          [OTHER, { due: 310_000 }],
          [ME, heard(610_000)],
        ],
        611_000,
      ),
    );
  });

  test.each([
    ["at most a second", 310_000, 1_000],
    ["as soon as the head may be dropped", 700, 700],
  ])("a free lock with a live head is looked at again after %s", async (_, due, most) => {
    await bench.put(inLine([JAVA, { due }]));
    const [granted, ms = 0, ...rest] = await acquire({ patience: NO_WAIT });
    expect([granted, rest]).toEqual([0, []]);
    expect(ms).toBeLessThanOrEqual(most);
    expect(ms).toBeGreaterThan(most === 700 ? 0 : 999);
    expect(await bench.heard()).toEqual([]);
  });

  test("co-waiters are kept by the same call, each with its own time", async () => {
    const before: [string, Place][] = [
      [OTHER, { due: 500_000, alive: 100 }],
      [THIRD, { due: 100_000, alive: 100 }],
      [ME, { due: 900_000, alive: 100 }],
    ];
    await bench.put({ ...theirs(30_000), ...inLine(...before) });
    await expectRefused(acquire({ coWaiters: [OTHER, THIRD] }), 30_000);
    await bench.expect({
      ...theirs(30_000),
      ...inLine([OTHER, heard(500_000)], [THIRD, heard(later(330_000))], [ME, heard(900_000)]),
    });
  });

  test("co-waiters that have lost their ticket are named, and get none by this call", async () => {
    await bench.put({ ...theirs(30_000), ...inLine([OTHER, { due: 500_000, alive: 100 }], [THIRD, {}]) });
    await expectRefused(
      acquire({
        coWaiters: [
          "6e3814a1-e847-452b-a982-45baf93a1df2:8",
          OTHER,
          THIRD,
          "6e3814a1-e847-452b-a982-45baf93a1df2:9",
        ],
      }),
      30_000,
      1,
      3,
      4,
    );
    await bench.expect({
      ...theirs(30_000),
      ...line(
        [
          [OTHER, heard(500_000)],
          [THIRD, {}],
          [ME, heard(later(330_000))],
        ],
        1_000_000,
      ),
    });
  });

  test("the co-waiter whose turn it is at a free lock is named", async () => {
    const places = (alive: Place["alive"]): [string, Place][] => [
      [OTHER, { due: 500_000, alive }],
      [ME, heard(900_000)],
    ];
    await bench.put(inLine(...places(later(PATIENCE))));
    expect(await acquire({ coWaiters: [THIRD, OTHER] })).toEqual([0, 1_000, 1, 2]);
    await bench.expect(inLine(...places(later(PATIENCE))));
    expect(await bench.heard()).toEqual([]);
  });

  test.each(publishers)(
    "the next is told by %s when the dead before it were dropped at a free lock",
    async (publish) => {
      const next: [string, Place] = [OTHER, { due: 500_000, alive: 9_000 }];
      await bench.put(inLine([JAVA, { due: -1 }], next));
      expect(await acquire({ publish })).toEqual([0, 1_000]);
      expect(await bench.heard()).toEqual(woken(OTHER, publish));
      expect(await acquire({ publish })).toEqual([0, 1_000]);
      expect(await bench.heard()).toEqual([]);
      await bench.expect(inLine(next, [ME, heard(800_000)]));
    },
  );

  test("who may not announce may take a place", async () => {
    const mute = bench.runner(fairAcquire, form, await bench.withoutChannels());
    await bench.put(inLine([JAVA, { due: -1 }], [OTHER, { due: 500_000, alive: 9_000 }]));
    expect(await mute(FAIR_KEYS, attempt())).toEqual([0, 1_000]);
    await bench.expect(inLine([OTHER, { due: 500_000, alive: 9_000 }], [ME, heard(800_000)]));
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive: a place behind a lock that lasts for ever", async () => {
    await bench.put(theirs(MOST));
    await expectRefused(acquire({ grace: 1_000, patience: 1_000_000_000_000 }), MOST);
    const [member, score] = await bench.redis.zrange(TIMEOUTS, "0", "0", "WITHSCORES");
    expect(member).toBe(ME);
    expect(score).toMatch(/^900\d{13}$/);
    // Not the 2^53 and more that Lua could not count exactly.
    expectTtl(await bench.redis.pttl(ALIVE), 2 ** 52);
    expect(await bench.redis.zrange(ALIVE, "0", "0", "WITHSCORES")).toEqual([
      ME,
      expect.stringMatching(/^\d{13}$/),
    ]);
  });

  test.each(["a{b}:c", "größe:日本", "a:b}"])(
    "a name like %s is used as it comes, and so is an owner's",
    async (name) => {
      const keys = {
        lock: name,
        queue: `q:${name}`,
        timeouts: `t:${name}`,
        alive: `h:${name}`,
        tombstone: `o:${name}`,
        channel: `c:${name}`,
      };
      const owner = `${name} %s {}:1`;
      await bench.put({ [name]: held({ [OTHER]: "1" }, 30_000) });
      await expectRefused(
        bench.runner(fairAcquire, form)(keys, attempt({ owner })) as Promise<number[]>,
        30_000,
      );
      await bench.expect({
        [name]: held({ [OTHER]: "1" }, 30_000),
        [keys.queue]: { value: [owner], ttl: -1 },
        [keys.timeouts]: scored({ [owner]: later(330_000) }),
        [keys.alive]: scored({ [owner]: later(PATIENCE) }, 330_000),
      });
      await bench.redis.del(name);
      expect(
        await bench.runner(fairAcquire, form)(keys, attempt({ owner: OTHER, coWaiters: [owner] })),
      ).toEqual([0, 1_000, 1]);
      expect(await bench.runner(fairAcquire, form)(keys, attempt({ owner }))).toBe(1);
      expect(await bench.redis.hgetall(name)).toEqual({ [owner]: "1" });
    },
  );
});
