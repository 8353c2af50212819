import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairRelease } from "../../src/scripts/generated.js";
import {
  type Bench,
  forms,
  held,
  type Later,
  LOCK,
  later,
  ME,
  MOST,
  OTHER,
  publishers,
  type States,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";
import {
  ALIVE,
  FAIR_KEYS,
  GRACE,
  inLine,
  JAVA,
  JAVA_2,
  mine,
  type Place,
  QUEUE,
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

const over = { [TOMBSTONE]: text("1", 40_000) };
const waiting = inLine([OTHER, { due: 330_000, alive: 9_000 }], [JAVA, { due: 630_000 }]);

describe.each(forms(fairRelease))("fair/release, %s", (form) => {
  const args = (count: number, left: number, more = {}) => ({
    owner: ME,
    count,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    grace: GRACE,
    ...more,
  });
  const release = (count: number, left: number, more = {}) =>
    bench.runner(fairRelease, form)(FAIR_KEYS, args(count, left, more));

  test.each(publishers)(
    "1: the last hold; the head alone is woken, by %s, on its own channel",
    async (publish) => {
      await bench.put({ ...mine(30_000), ...waiting });
      expect(await release(0, 0, { publish })).toBe(1);
      await bench.expect({ ...waiting, ...over });
      expect(await bench.heard()).toEqual(woken(OTHER, publish));
    },
  );

  test("1: nobody waits, so nobody is told", async () => {
    await bench.put(mine(30_000));
    expect(await release(0, 0)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test("1: sent again, it finds its tombstone; who waits still is told again, which is harmless", async () => {
    await bench.put({ ...mine(30_000), ...waiting });
    await release(0, 0);
    await bench.heard();
    expect(await release(0, 0, { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect({ ...waiting, ...over });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("1: sent again when the next has the lock, it disturbs nobody", async () => {
    const states = {
      ...theirs(30_000),
      ...inLine([JAVA, { due: -1 }], [OTHER, { due: 630_000, alive: 9_000 }]),
      ...over,
    };
    await bench.put(states);
    expect(await release(0, 0, { tombstoneTtl: 90_000 })).toBe(1);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("the dead at the head are passed over by the server's clock, one without a score too", async () => {
    const alive = inLine([OTHER, { due: -1, alive: 9_000 }], [THIRD, { due: later(600_000), alive: -1 }]);
    await bench.put({
      ...mine(30_000),
      ...inLine(
        [JAVA, { due: -1 }],
        ["6e3814a1-e847-452b-a982-45baf93a1df2:8", { due: 900_000, alive: -1 }],
        ["b0e5b1a2-0000-4000-8000-000000000000:9", {}],
        ["6e3814a1-e847-452b-a982-45baf93a1df2:9", { alive: 9_000 }],
        [OTHER, { due: -1, alive: 9_000 }],
        [THIRD, { due: 900_000, alive: -1 }],
      ),
    });
    expect(await release(0, 0)).toBe(1);
    await bench.expect({ ...alive, ...over });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test.each([
    ["a whole turn", 630_000, GRACE],
    ["the rest of its turn", 100_000, 100_000],
  ])("one that is dropped early leaves %s to those behind, who keep theirs", async (_, due, left) => {
    await bench.put({
      ...mine(30_000),
      ...inLine(
        ["6e3814a1-e847-452b-a982-45baf93a1df2:8", { due, alive: -1 }],
        [JAVA, { due: GRACE + 700_000 }],
        [OTHER, { due: 2 * GRACE + 10, alive: 9_000 }],
      ),
    });
    expect(await release(0, 0)).toBe(1);
    const [java, other] = [{ due: later(GRACE + 700_000 - left) }, { due: later(2 * GRACE), alive: 9_000 }];
    await bench.expect({ ...inLine([JAVA, java], [OTHER, other]), ...over });
  });

  test("two dropped early leave the turns of both to all behind them, of whom one has no score", async () => {
    const behind = (turn: (due: number) => number | Later): [string, Place][] => [
      [OTHER, { due: turn(1_500_000), alive: 9_000 }],
      [JAVA, {}],
      [JAVA_2, { due: turn(2_100_000) }],
      [THIRD, { due: turn(2_400_000), alive: 9_000 }],
    ];
    await bench.put({
      ...mine(30_000),
      ...inLine(
        ["6e3814a1-e847-452b-a982-45baf93a1df2:8", { due: 200_000, alive: -1 }],
        ["6e3814a1-e847-452b-a982-45baf93a1df2:9", { due: 350_000, alive: -1 }],
        ...behind((due) => due),
      ),
    });
    expect(await release(0, 0)).toBe(1);
    // 200 s of the first, and the 150 s that the second had behind it.
    await bench.expect({ ...inLine(...behind((due) => later(due - 350_000))), ...over });
  });

  test("a Redisson waiter, of which only its score is known, is woken as well", async () => {
    await bench.put({
      ...mine(30_000),
      ...inLine([JAVA, { due: 330_000 }], [OTHER, { due: 630_000, alive: 9_000 }]),
    });
    expect(await release(0, 0)).toBe(1);
    expect(await bench.heard()).toEqual(woken(JAVA));
  });

  test("when all who waited are dead, nothing of the queue is left, and nobody is told", async () => {
    await bench.put({ ...mine(30_000), ...inLine([OTHER, { due: -1, alive: -1 }], [JAVA, { due: -1 }]) });
    expect(await release(0, 0)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["none left", 0, 5_000],
    ["none left that lasts", 2, 0],
  ])("1: %s, whatever the count was", async (_, count, left) => {
    await bench.put({ ...mine(30_000, "3"), ...waiting });
    expect(await release(count, left)).toBe(1);
    await bench.expect({ ...waiting, ...over });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("1: a lock that has yet another field is not announced", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1", [THIRD]: "1" }, 30_000), ...waiting });
    expect(await release(0, 0)).toBe(1);
    await bench.expect({ [LOCK]: held({ [THIRD]: "1" }, 30_000), ...waiting, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: with holds left, count and TTL are set to theirs, %s, and the queue stays", async (_, left) => {
    await bench.put({ ...mine(30_000, "3"), ...waiting });
    for (const _again of [1, 2]) {
      expect(await release(2, left)).toBe(1);
      await bench.expect({ ...mine(left, "2"), ...waiting });
    }
    expect(await bench.heard()).toEqual([]);
  });

  test("1: a nested release whose call is over changes nothing", async () => {
    const states = { ...mine(30_000, "3"), ...waiting, ...over };
    await bench.put(states);
    expect(await release(2, 60_000)).toBe(1);
    await bench.expect(states);
  });

  test.each([
    ["the last hold", 0, 0],
    ["a nested hold", 1, 20_000],
  ])("0 and -1: %s that is not there", async (_, count, left) => {
    await bench.put({});
    expect(await release(count, left)).toBe(0);
    await bench.expect({});
    await bench.put({ ...theirs(30_000), ...waiting });
    expect(await release(count, left)).toBe(-1);
    await bench.expect({ ...theirs(30_000), ...waiting });
    expect(await bench.heard()).toEqual([]);
  });

  test("0: a lock that has lapsed; as with Redisson, the head is told that it is free", async () => {
    await bench.put({ ...inLine([JAVA, { due: -1 }], [OTHER, { due: 630_000, alive: 9_000 }]) });
    expect(await release(0, 0)).toBe(0);
    await bench.expect(inLine([OTHER, { due: 630_000, alive: 9_000 }]));
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("the largest numbers survive as text", async () => {
    await bench.put(mine(30_000));
    expect(await release(MOST, MOST)).toBe(1);
    await bench.expect(mine(MOST, String(MOST)));
    expect(await release(0, 0, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ [TOMBSTONE]: text("1", MOST) });
  });

  test.each([
    [0, 0],
    [1, 20_000],
  ])("a lock with other data stays as it is (%i left)", async (count, left) => {
    await bench.put({ [LOCK]: text("theirs", 60_000), ...waiting });
    await expect(release(count, left)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000), ...waiting });
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, States]>([
    ["queue", { [QUEUE]: text("theirs", 60_000) }],
    ["timeouts", { [QUEUE]: { value: [OTHER], ttl: -1 }, [TIMEOUTS]: text("theirs", 60_000) }],
    ["alive", { ...inLine([OTHER, { due: 330_000 }]), [ALIVE]: text("theirs", 60_000) }],
  ])("other data in the key for %s stays as it is; the lock is given back", async (_, states) => {
    await bench.put({ ...mine(30_000), ...states });
    await expect(release(0, 0)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ ...states, ...over });
  });

  test("without memory it works as ever", async () => {
    await bench.put({ ...mine(30_000, "2"), ...waiting });
    await bench.outOfMemory(async () => {
      expect(await release(1, 60_000)).toBe(1);
      await bench.expect({ ...mine(60_000), ...waiting });
      expect(await release(0, 0)).toBe(1);
    });
    await bench.expect({ ...waiting, ...over });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  test("who may not announce may release", async () => {
    const mute = await bench.withoutChannels();
    await bench.put({ ...mine(30_000), ...waiting });
    expect(await bench.runner(fairRelease, form, mute)(FAIR_KEYS, args(0, 0))).toBe(1);
    await bench.expect({ ...waiting, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  const dead = inLine([OTHER, { due: 330_000, alive: -1 }]);
  test.each<[string, number, number, States]>([
    ["exists", 1, 20_000, mine(30_000)],
    ["hexists", 1, 20_000, mine(30_000)],
    ["pexpire", 1, 20_000, mine(30_000)],
    ["hset", 1, 20_000, mine(30_000)],
    ["hdel", 0, 0, mine(30_000)],
    ["set", 0, 0, mine(30_000)],
    ["exists", 0, 0, mine(30_000)],
    ["time", 0, 0, mine(30_000)],
    ["lindex", 0, 0, mine(30_000)],
    ["zscore", 0, 0, { ...mine(30_000), ...waiting }],
    ["lpop", 0, 0, { ...mine(30_000), ...dead }],
    ["zrem", 0, 0, { ...mine(30_000), ...dead }],
  ])("who may not %s is told so (%i left)", async (command, count, left, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, fairRelease, form, FAIR_KEYS, args(count, left));
  });
});
