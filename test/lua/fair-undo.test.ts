import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fairUndo } from "../../src/scripts/generated.js";
import {
  type Bench,
  forms,
  held,
  LOCK,
  later,
  ME,
  MOST,
  OTHER,
  publishers,
  type States,
  scored,
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

const { tombstone, ...COMMON_KEYS } = FAIR_KEYS;
const UNDO_KEYS = { ...COMMON_KEYS, tombstones: [tombstone] };
const over = { [TOMBSTONE]: text("1", 40_000) };
const MY_PLACE: [string, Place] = [ME, { due: 330_000, alive: 9_000 }];
const next = (due: Place["due"]): [string, Place] => [OTHER, { due, alive: 9_000 }];

describe.each(forms(fairUndo))("fair/undo, %s", (form) => {
  const args = (count: number, left: number, more = {}) => ({
    owners: [ME],
    count,
    left,
    tombstoneTtl: 40_000,
    publish: "PUBLISH",
    grace: GRACE,
    ...more,
  });
  const undo = (count = 0, left = 0, more = {}) =>
    bench.runner(fairUndo, form)(UNDO_KEYS, args(count, left, more));

  describe("a waiter that gives up", () => {
    test("1: leaves the queue of a held lock, those behind it one grace nearer; and 0 the next time", async () => {
      const before: [string, Place] = [THIRD, { due: 330_000, alive: 9_000 }];
      await bench.put({
        ...theirs(30_000),
        ...inLine(before, [ME, { due: 630_000, alive: 9_000 }], next(930_000), [JAVA, { due: 1_230_000 }]),
      });
      for (const reply of [1, 0]) {
        expect(await undo()).toBe(reply);
        await bench.expect({
          ...theirs(30_000),
          ...inLine(before, next(630_000), [JAVA, { due: 930_000 }]),
          ...over,
        });
      }
      expect(await bench.heard()).toEqual([]);
    });

    test("1: the last of a queue leaves no key behind but its tombstone", async () => {
      await bench.put({ ...theirs(30_000), ...inLine(MY_PLACE) });
      expect(await undo()).toBe(1);
      await bench.expect({ ...theirs(30_000), ...over });
    });

    test.each(publishers)("1: the head of a free lock tells the next, by %s", async (publish) => {
      await bench.put(inLine(MY_PLACE, next(630_000)));
      expect(await undo(0, 0, { publish })).toBe(1);
      await bench.expect({ ...inLine(next(330_000)), ...over });
      expect(await bench.heard()).toEqual(woken(OTHER, publish));
      expect(await undo(0, 0, { publish })).toBe(0);
      expect(await bench.heard()).toEqual([]);
    });

    test("1: with the dead at the head dropped, by the server's clock or for want of a score", async () => {
      await bench.put(
        inLine(
          ["6e3814a1-e847-452b-a982-45baf93a1df2:8", { due: 900_000, alive: -1 }],
          MY_PLACE,
          [JAVA, { due: GRACE - 1 }],
          ["b0e5b1a2-0000-4000-8000-000000000000:9", { due: 1 }],
          next(630_000),
        ),
      );
      expect(await undo()).toBe(1);
      await bench.expect({ ...inLine(next(later(GRACE))), ...over });
      expect(await bench.heard()).toEqual(woken(OTHER));
    });

    test("a Redisson waiter, of which only its score is known, is woken as well", async () => {
      await bench.put({
        ...inLine(
          [ME, { due: 30_000, alive: 9_000 }],
          [JAVA, { due: 330_000 }],
          [OTHER, { due: 630_000, alive: 9_000 }],
        ),
      });
      expect(await undo(0, 0, { grace: 10 })).toBe(1);
      expect(await bench.heard()).toEqual(woken(JAVA));
    });

    test("1: those who have no score before it do not stop it", async () => {
      await bench.put(
        inLine(
          [JAVA, {}],
          ["6e3814a1-e847-452b-a982-45baf93a1df2:9", { alive: 9_000 }],
          MY_PLACE,
          next(630_000),
        ),
      );
      expect(await undo()).toBe(1);
      await bench.expect({ ...inLine(next(330_000)), ...over });
    });

    test("1: one that stands twice leaves the later place, which alone has its score", async () => {
      const before: [string, Place] = [THIRD, { due: 330_000, alive: 9_000 }];
      await bench.put({
        ...theirs(30_000),
        ...inLine(before, [ME, { due: 630_000, alive: 9_000 }], next(930_000)),
        [QUEUE]: { value: [ME, THIRD, ME, OTHER], ttl: -1 },
      });
      expect(await undo()).toBe(1);
      await bench.expect({
        ...theirs(30_000),
        ...inLine(before, next(630_000)),
        [QUEUE]: { value: [ME, THIRD, OTHER], ttl: -1 },
        ...over,
      });
    });

    test("1: one without a score leaves as well", async () => {
      await bench.put({ ...theirs(30_000), ...inLine([ME, {}], next(630_000)) });
      expect(await undo()).toBe(1);
      await bench.expect({ ...theirs(30_000), ...inLine(next(330_000)), ...over });
    });

    test("1: another grace than the usual is taken off", async () => {
      await bench.put({ ...theirs(30_000), ...inLine(MY_PLACE, next(630_000)) });
      expect(await undo(0, 0, { grace: 7 })).toBe(1);
      await bench.expect({ ...theirs(30_000), ...inLine(next(629_993)), ...over });
    });
  });

  test.each(publishers)(
    "1: an acquire, whose release wakes the head by %s; and 0 the next time",
    async (publish) => {
      await bench.put({ ...mine(30_000), ...inLine(next(330_000)) });
      expect(await undo(0, 0, { publish })).toBe(1);
      await bench.expect({ ...inLine(next(330_000)), ...over });
      expect(await bench.heard()).toEqual(woken(OTHER, publish));
      expect(await undo(0, 0, { publish, tombstoneTtl: 90_000 })).toBe(0);
      await bench.expect({ ...inLine(next(330_000)), ...over });
      expect(await bench.heard()).toEqual([]);
    },
  );

  test.each([
    ["up", 60_000],
    ["down", 15_000],
  ])("1: a nested acquire alone, the TTL set %s; and 0 the next time", async (_, left) => {
    const waiting = inLine([JAVA, { due: -1 }], next(330_000));
    await bench.put({ [LOCK]: held({ [ME]: "3", [THIRD]: "1" }, 30_000), ...waiting });
    expect(await undo(2, left)).toBe(1);
    await bench.expect({ [LOCK]: held({ [ME]: "2", [THIRD]: "1" }, left), ...waiting, ...over });
    await bench.redis.pexpire(LOCK, 90_000);
    expect(await undo(2, left)).toBe(0);
    await bench.expect({ [LOCK]: held({ [ME]: "2", [THIRD]: "1" }, 90_000), ...waiting, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each([
    ["none left", 0, 5_000],
    ["none left that lasts", 1, 0],
  ])("1: %s, so the lock is given back", async (_, count, left) => {
    await bench.put({ ...mine(30_000, "12"), ...inLine(next(330_000)) });
    expect(await undo(count, left)).toBe(1);
    await bench.expect({ ...inLine(next(330_000)), ...over });
    expect(await bench.heard()).toEqual(woken(OTHER));
  });

  const waiting = inLine([JAVA, { due: -1 }], next(330_000));
  test.each<[string, number, number, States]>([
    ["a free lock", 0, 0, {}],
    ["a free lock, for which others wait,", 0, 0, waiting],
    ["another's lock", 0, 0, { ...theirs(30_000), ...waiting }],
    ["a count that is lower", 2, 60_000, mine(30_000)],
    ["a count that is the same", 1, 60_000, mine(30_000)],
    ["a count that is the same, and none lasts", 1, 0, mine(30_000)],
  ])("0: %s has nothing to undo; the tombstone stands", async (_, count, left, before) => {
    await bench.put(before);
    expect(await undo(count, left)).toBe(0);
    await bench.expect({ ...before, ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test("0: an earlier run has undone it, and a later one changes nothing more", async () => {
    const states = { ...mine(30_000, "3"), ...inLine(MY_PLACE, next(630_000)), ...over };
    await bench.put(states);
    expect(await undo(2, 60_000, { tombstoneTtl: 80_000 })).toBe(0);
    expect(await undo(0, 0, { tombstoneTtl: 80_000 })).toBe(0);
    await bench.expect(states);
    expect(await bench.heard()).toEqual([]);
  });

  test("the largest numbers survive as text", async () => {
    await bench.put(mine(30_000, String(MOST)));
    expect(await undo(MOST - 1, MOST, { tombstoneTtl: MOST })).toBe(1);
    await bench.expect({ ...mine(MOST, String(MOST - 1)), [TOMBSTONE]: text("1", MOST) });
    await bench.put({ ...theirs(30_000), ...inLine(MY_PLACE, next(MOST - 2e13)) });
    expect(await undo(0, 0, { grace: MOST - 3e13 })).toBe(1);
    await bench.expect({ ...theirs(30_000), ...inLine(next(1e13)), ...over });
  });

  const asked = { ...inLine([JAVA, { due: 330_000 }]), [ALIVE]: text("theirs", 60_000) };
  const left = { [QUEUE]: { value: [OTHER], ttl: -1 }, [ALIVE]: text("theirs", 60_000) };
  test.each<[string, States, States]>([
    ["the lock", { [LOCK]: text("theirs", 60_000) }, { [LOCK]: text("theirs", 60_000) }],
    [
      "the queue",
      { ...mine(30_000), [QUEUE]: text("theirs", 60_000) },
      { ...mine(30_000), [QUEUE]: text("theirs", 60_000) },
    ],
    ["those alive", { ...mine(30_000), ...asked }, asked],
    [
      "those alive, among whom it is not,",
      { ...left, [QUEUE]: { value: [ME, OTHER], ttl: -1 }, [TIMEOUTS]: scored({ [OTHER]: 1 }) },
      { ...left, [TIMEOUTS]: scored({ [OTHER]: 1 - GRACE }) },
    ],
  ])("other data in the key of %s stays as it is", async (_, before, after) => {
    await bench.put(before);
    await expect(undo()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ ...after, ...over });
  });

  describe("many waiters that give up together", () => {
    const many = async (owners: string[]) => {
      const tombstones = owners.map((owner) => `over:${owner}`);
      const reply = await bench.runner(fairUndo, form)({ ...UNDO_KEYS, tombstones }, args(0, 0, { owners }));
      return { reply, over: Object.fromEntries(tombstones.map((key) => [key, text("1", 40_000)])) };
    };

    test("1: those that stay keep their order, each nearer by those who left before it; and 0 the next time", async () => {
      const turn = (i: number): Place => ({ due: 30_000 + i * GRACE, alive: 9_000 });
      await bench.put({
        ...theirs(30_000),
        ...inLine(
          ["a", turn(1)],
          ["b", turn(2)],
          ["c", turn(3)],
          ["d", turn(4)],
          ["e", turn(5)],
          ["f", turn(6)],
        ),
      });
      const once = await many(["e", "nobody", "b", "d"]);
      const again = await many(["e", "nobody", "b", "d"]);
      expect([once.reply, again.reply]).toEqual([1, 0]);
      await bench.expect({
        ...theirs(30_000),
        ...inLine(["a", turn(1)], ["c", turn(2)], ["f", turn(3)]),
        ...once.over,
      });
      expect(await bench.heard()).toEqual([]);
    });

    test("1: the whole queue of a free lock leaves no key behind", async () => {
      await bench.put(inLine(MY_PLACE, next(630_000)));
      const { reply, over: tombstones } = await many([ME, OTHER]);
      expect(reply).toBe(1);
      await bench.expect(tombstones);
      expect(await bench.heard()).toEqual([]);
    });

    test("1: the head of a free lock among them: the next is told once", async () => {
      await bench.put(inLine(MY_PLACE, [THIRD, { due: 630_000, alive: 9_000 }], next(930_000)));
      const { over: tombstones } = await many([ME, THIRD]);
      await bench.expect({ ...inLine(next(330_000)), ...tombstones });
      expect(await bench.heard()).toEqual(woken(OTHER));
    });

    test("1: of a waiter that is there twice only the last place goes", async () => {
      await bench.put({
        ...theirs(30_000),
        ...inLine([JAVA, {}], [ME, {}], next(930_000), [ME, { due: 630_000, alive: 9_000 }]),
      });
      const { reply, over: tombstones } = await many([ME, JAVA]);
      expect(reply).toBe(1);
      await bench.expect({ ...theirs(30_000), ...inLine([ME, {}], next(630_000)), ...tombstones });
    });

    test("1: before more than Lua can unpack", async () => {
      const names = Array.from({ length: 8_500 }, (_, i) => `w${i}`);
      const at = (due: number) => scored(Object.fromEntries(names.map((name) => [name, due])));
      const queue = (...first: string[]) => ({ [QUEUE]: { value: [...first, ...names], ttl: -1 } });
      await bench.put({ ...theirs(30_000), ...queue("first"), [TIMEOUTS]: at(900_000) });
      const { over: tombstones } = await many(["first"]);
      await bench.expect({
        ...theirs(30_000),
        ...queue(),
        [TIMEOUTS]: at(900_000 - GRACE),
        ...tombstones,
      });
    });

    test("1: far from each other in a long queue, as one after the other", async () => {
      const names = Array.from({ length: 1_800 }, (_, i) => `w${i}`);
      const places = (waiters: string[], from = 0): [string, Place][] =>
        waiters.map((name, i) => [name, { due: (from + i) * GRACE + 30_000, alive: 9_000 }]);
      const leaving = ["w1799", "w700", "w1300", "w699", "w3"];
      await bench.put({ ...theirs(30_000), ...inLine(...places(names)) });
      const { over: tombstones } = await many(leaving);
      const staying = names.filter((name) => !leaving.includes(name));
      await bench.expect({ ...theirs(30_000), ...inLine(...places(staying)), ...tombstones });
    });
  });

  test("who may not announce may undo", async () => {
    const mute = await bench.withoutChannels();
    await bench.put({ ...mine(30_000), ...inLine(next(330_000)) });
    expect(await bench.runner(fairUndo, form, mute)(UNDO_KEYS, args(0, 0))).toBe(1);
    await bench.expect({ ...inLine(next(330_000)), ...over });
    expect(await bench.heard()).toEqual([]);
  });

  test.each<[string, number, number, States]>([
    ["a nested acquire", 1, 60_000, mine(60_000)],
    ["an acquire", 0, 0, {}],
    ["nothing", 2, 60_000, mine(30_000, "2")],
  ])("without memory %s is undone as ever", async (_, count, left, after) => {
    await bench.put(mine(30_000, "2"));
    await bench.outOfMemory(async () => {
      expect(await undo(count, left)).toBe(count === 2 ? 0 : 1);
    });
    await bench.expect({ ...after, ...over });
  });

  test("without memory a waiter leaves as ever", async () => {
    await bench.put({ ...theirs(30_000), ...inLine(MY_PLACE, next(630_000)) });
    await bench.outOfMemory(async () => {
      expect(await undo()).toBe(1);
    });
    await bench.expect({ ...theirs(30_000), ...inLine(next(330_000)), ...over });
  });

  const line = inLine(MY_PLACE, next(630_000));
  test.each<[string, number, number, States]>([
    ["exists", 0, 0, mine(30_000)],
    ["del", 0, 0, mine(30_000)],
    ["set", 0, 0, mine(30_000)],
    ["llen", 0, 0, mine(30_000)],
    ["hget", 0, 0, mine(30_000)],
    ["hdel", 0, 0, mine(30_000)],
    ["pexpire", 1, 20_000, mine(30_000, "2")],
    ["hset", 1, 20_000, mine(30_000, "2")],
    ["lrange", 0, 0, line],
    ["zincrby", 0, 0, line],
    ["rpush", 0, 0, line],
    ["del", 0, 0, line],
    ["ltrim", 0, 0, inLine(next(330_000), [ME, { due: 630_000, alive: 9_000 }])],
    ["zrem", 0, 0, line],
    ["time", 0, 0, line],
    ["lindex", 0, 0, line],
    ["zscore", 0, 0, line],
    ["lpop", 0, 0, inLine([JAVA, { due: -1 }], MY_PLACE)],
  ])("who may not %s is told so", async (command, count, left, before) => {
    await bench.put(before);
    await bench.expectRefusal(command, fairUndo, form, UNDO_KEYS, args(count, left));
  });
});
