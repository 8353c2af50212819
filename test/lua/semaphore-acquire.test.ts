import { describe, expect, test } from "vitest";
import { semaphoreAcquire } from "../../src/scripts/generated.js";
import { forms, text } from "./bench.js";
import {
  expectForbidden,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  useBench,
} from "./counts.js";

const bench = useBench();
const keys = { permits: NUMBER, marker: MARKER };

describe.each(forms(semaphoreAcquire))("semaphore/acquire, %s", (form) => {
  const acquire = (count: number) =>
    bench().runner(semaphoreAcquire, form)(keys, { count, markerTtl: MARKER_TTL });

  test.each([
    [5, 2],
    [5, 5],
    [1, 1],
    [9007199254740990, 9007199254740989],
  ])("1: of %i free permits %i are taken, once however often it runs", async (free, count) => {
    await bench().put({ [NUMBER]: number(free) });
    for (const _ of [1, 2]) expect(await acquire(count)).toEqual([1, free - count]);
    await bench().expect({ [NUMBER]: number(free - count), [MARKER]: marked(count) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each([
    [1, 2],
    [0, 1],
    [-2, 1],
  ])("0: of %i free permits %i cannot be taken, and nothing is left behind", async (free, count) => {
    await bench().put({ [NUMBER]: number(free) });
    expect(await acquire(count)).toEqual([0, 0]);
    await bench().expect({ [NUMBER]: number(free) });
  });

  test("0: a semaphore that is missing stays so", async () => {
    await bench().put({});
    expect(await acquire(1)).toEqual([0, 0]);
    await bench().expect({});
  });

  test("refused, it may be granted later", async () => {
    await bench().put({ [NUMBER]: number(1) });
    expect(await acquire(2)).toEqual([0, 0]);
    await bench().redis.incr(NUMBER);
    expect(await acquire(2)).toEqual([1, 0]);
    await bench().expect({ [NUMBER]: number(0), [MARKER]: marked(2) });
  });

  test("2: a call that is over gets nothing", async () => {
    const states = { [NUMBER]: number(5), [MARKER]: text("over", 20_000) };
    await bench().put(states);
    expect(await acquire(2)).toEqual([2, 0]);
    await bench().expect(states);
  });

  test("granted before, it is granted still, whatever is free by now", async () => {
    await bench().put({ [NUMBER]: number(-3), [MARKER]: text("2", 20_000) });
    expect(await acquire(2)).toEqual([1, 0]);
    await bench().expect({ [NUMBER]: number(-3), [MARKER]: text("2", 20_000) });
  });

  test("a TTL is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect(await acquire(2)).toEqual([1, 3]);
    await bench().expect({ [NUMBER]: number(3, 30_000), [MARKER]: marked(2) });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    await bench().put({ [NUMBER]: state });
    await expect(acquire(1)).rejects.toThrow(refusal);
    await bench().expect({ [NUMBER]: state });
  });

  test("a marker that is no text is left alone", async () => {
    const states = { [NUMBER]: number(5), [MARKER]: { value: ["theirs"], ttl: 20_000 } };
    await bench().put(states);
    await expect(acquire(1)).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test.each([
    [0, 1],
    [1, 2],
    [-1, 1],
  ])("a refusal writes nothing, so it needs no memory (%i for %i)", async (free, count) => {
    await bench().put({ [NUMBER]: number(free) });
    await bench().outOfMemory(async () => {
      expect(await acquire(count)).toEqual([0, 0]);
    });
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(((await acquire(8)) as number[])[0]).toBe(1);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345670");
  });

  test("without memory nothing is taken", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await bench().outOfMemory(async () => {
      await expect(acquire(2)).rejects.toThrow("OOM");
    });
    await bench().expect({ [NUMBER]: number(5) });
  });

  test.each(["get", "decrby", "set", "del"])("who may not %s is told so", async (command) => {
    await bench().put({ [NUMBER]: number(5) });
    const limited = bench().runner(semaphoreAcquire, form, await bench().without(command));
    await expectForbidden(bench(), limited(keys, { count: 2, markerTtl: MARKER_TTL }));
  });
});
