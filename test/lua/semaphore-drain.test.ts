import { describe, expect, test } from "vitest";
import { semaphoreDrain } from "../../src/scripts/generated.js";
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

describe.each(forms(semaphoreDrain))("semaphore/drain, %s", (form) => {
  const drain = () => bench().runner(semaphoreDrain, form)(keys, { markerTtl: MARKER_TTL });

  test.each([5, 1, 9007199254740990])("all of %i are taken, and each run says so", async (free) => {
    await bench().put({ [NUMBER]: number(free) });
    expect(await drain()).toBe(free);
    await bench().redis.incrby(NUMBER, 3);
    expect(await drain()).toBe(free);
    await bench().expect({ [NUMBER]: number(3), [MARKER]: marked(free) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each([0, -2])("0: nothing can be taken of %i", async (free) => {
    await bench().put({ [NUMBER]: number(free) });
    expect(await drain()).toBe(0);
    const { [NUMBER]: left } = { [NUMBER]: await bench().redis.get(NUMBER) };
    expect(left).toBe(String(free));
  });

  test("0: a semaphore that is missing stays so", async () => {
    await bench().put({});
    expect(await drain()).toBe(0);
    expect(await bench().redis.exists(NUMBER)).toBe(0);
  });

  test("a call that is over gets nothing", async () => {
    const states = { [NUMBER]: number(5), [MARKER]: text("over", 20_000) };
    await bench().put(states);
    expect(await drain()).toBe(0);
    await bench().expect(states);
  });

  test("a TTL is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect(await drain()).toBe(5);
    await bench().expect({ [NUMBER]: number(0, 30_000), [MARKER]: marked(5) });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    await bench().put({ [NUMBER]: state });
    await expect(drain()).rejects.toThrow(refusal);
    await bench().expect({ [NUMBER]: state });
  });

  test.each([0, -2])("of %i nothing is taken, so who may not decrby is not told", async (free) => {
    await bench().put({ [NUMBER]: number(free) });
    const limited = bench().runner(semaphoreDrain, form, await bench().without("decrby"));
    expect(await limited(keys, { markerTtl: MARKER_TTL })).toBe(0);
  });

  test("more than Lua counts exactly is taken whole, or left alone", async () => {
    await bench().put({ [NUMBER]: number(String(2 ** 57)) });
    await drain().catch(() => {});
    expect(["0", String(2 ** 57)]).toContain(await bench().redis.get(NUMBER));
  });

  test("without memory nothing is taken", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await bench().outOfMemory(async () => {
      await expect(drain()).rejects.toThrow("OOM");
    });
    await bench().expect({ [NUMBER]: number(5) });
  });

  test.each(["get", "decrby", "set", "del"])("who may not %s is told so", async (command) => {
    await bench().put({ [NUMBER]: number(5) });
    const limited = bench().runner(semaphoreDrain, form, await bench().without(command));
    await expectForbidden(bench(), limited(keys, { markerTtl: MARKER_TTL }));
  });
});
