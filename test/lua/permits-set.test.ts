import { describe, expect, test } from "vitest";
import { permitsSet } from "../../src/scripts/generated.js";
import { forms, publishers, scored, text } from "./bench.js";
import {
  expectForbidden,
  JUST_GONE,
  LEASES,
  LONG_GONE,
  MARKER,
  MARKER_TTL,
  MINE,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  THEIRS,
  told,
  useBench,
  wordOf,
} from "./counts.js";

const bench = useBench();
const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, marker: MARKER };
const args = (count: number, publish = "PUBLISH") => ({ count, markerTtl: MARKER_TTL, latest: 0, publish });
const out = scored({ [MINE]: 30_000, [THEIRS]: 60_000 });

describe.each(forms(permitsSet))("permits/set, %s", (form) => {
  const set = (count: number, publish?: string) =>
    wordOf(bench().runner(permitsSet, form))(keys, args(count, publish));

  test.each(publishers)("more: the free ones are more, announced by %s, once", async (publish) => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: out });
    expect(await set(9, publish)).toBe(1);
    expect(await bench().heard()).toEqual(told(9, publish));
    await bench().redis.incrby(NUMBER, 5);
    expect(await set(9, publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(12), [LEASES]: out, [MARKER]: marked(1) });
  });

  test.each([
    [4, 2],
    [2, 0],
    [1, -1],
    [0, -2],
  ])("fewer: with two out, of %i there are %i free", async (count, free) => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: out });
    expect(await set(count)).toBe(1);
    await bench().expect({ [NUMBER]: number(free), [LEASES]: out, [MARKER]: marked(1) });
    expect((await bench().heard()).filter(({ payload }) => Number(payload) < 0)).toEqual([]);
  });

  test("as many as there are: nobody is told", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: out });
    expect(await set(5)).toBe(1);
    await bench().expect({ [NUMBER]: number(3), [LEASES]: out, [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test("none, of a semaphore that is missing, is a number too", async () => {
    await bench().put({});
    expect(await set(0)).toBe(1);
    await bench().expect({ [NUMBER]: number(0), [MARKER]: marked(1) });
  });

  test("a semaphore that is missing is made, without end", async () => {
    await bench().put({});
    expect(await set(3)).toBe(1);
    expect(await bench().heard()).toEqual(told(3));
    await bench().expect({ [NUMBER]: number(3), [MARKER]: marked(1) });
  });

  test("leases that are over do not count", async () => {
    await bench().put({
      [NUMBER]: number(1),
      [LEASES]: scored({ [LONG_GONE]: -9_000, [JUST_GONE]: 0, [MINE]: 30_000 }),
    });
    expect(await set(6)).toBe(1);
    await bench().expect({ [NUMBER]: number(5), [LEASES]: scored({ [MINE]: 30_000 }), [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([...told(3), ...told(6)]);
  });

  test("a TTL is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect(await set(7)).toBe(1);
    await bench().expect({ [NUMBER]: number(7, 30_000), [MARKER]: marked(1) });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    const states = { [NUMBER]: state, [LEASES]: scored({ [LONG_GONE]: -1 }) };
    await bench().put(states);
    await expect(set(5)).rejects.toThrow(refusal);
    await bench().expect(states);
  });

  test("other data where the leases should be is left alone", async () => {
    const states = { [NUMBER]: number(5), [LEASES]: text("theirs", -1) };
    await bench().put(states);
    await expect(set(5)).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value) });
    const limited = wordOf(bench().runner(permitsSet, form, await bench().without("decrby")));
    await expect(limited(keys, args(7))).resolves.toBeDefined();
  });

  test("without memory all of it is done, or nothing", async () => {
    await bench().put({ [NUMBER]: number(5) });
    let done = true;
    await bench().outOfMemory(async () => {
      await set(7).catch((error: Error) => {
        expect(error.message).toContain("OOM");
        done = false;
      });
    });
    await bench().expect(done ? { [NUMBER]: number(7), [MARKER]: marked(1) } : { [NUMBER]: number(5) });
  });

  test("who may not announce may set", async () => {
    const mute = wordOf(bench().runner(permitsSet, form, await bench().withoutChannels()));
    await bench().put({ [NUMBER]: number(5) });
    expect(await mute(keys, args(7))).toBe(1);
    await bench().expect({ [NUMBER]: number(7), [MARKER]: marked(1) });
  });

  test.each(["exists", "get", "time", "zremrangebyscore", "zcard", "set", "del", "incrby"])(
    "who may not %s is told so",
    async (command) => {
      await bench().put({ [NUMBER]: number(5), [LEASES]: out });
      const limited = wordOf(bench().runner(permitsSet, form, await bench().without(command)));
      await expectForbidden(bench(), limited(keys, args(9)));
    },
  );
});
