import { describe, expect, test } from "vitest";
import { counterTrySet } from "../../src/scripts/generated.js";
import { forms, publishers, text } from "./bench.js";
import {
  expectForbidden,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  PERMIT_CHANNEL,
  told,
  useBench,
  wordOf,
} from "./counts.js";

const bench = useBench();
const keys = { number: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER };

describe.each(forms(counterTrySet))("counter/try-set, %s", (form) => {
  const args = (count: number, publish = "PUBLISH") => ({
    count,
    message: `it is ${count}`,
    markerTtl: MARKER_TTL,
    latest: 0,
    publish,
  });
  const trySet = (count: number, publish?: string) =>
    wordOf(bench().runner(counterTrySet, form))(keys, args(count, publish));

  test.each(publishers)("1: set without end, and announced by %s, once", async (publish) => {
    await bench().put({});
    expect(await trySet(5, publish)).toBe(1);
    expect(await bench().heard()).toEqual(told("it is 5", publish));
    await bench().expect({ [NUMBER]: number(5), [MARKER]: marked(1) });
    await bench().redis.del(NUMBER);
    expect(await trySet(5, publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [MARKER]: marked(1) });
  });

  test.each(["5", "0", "-1"])("0: there is %j already, now and when it is sent again", async (value) => {
    await bench().put({ [NUMBER]: number(value, 30_000) });
    expect(await trySet(5)).toBe(0);
    await bench().expect({ [NUMBER]: number(value, 30_000), [MARKER]: marked(0) });
    await bench().redis.del(NUMBER);
    expect(await trySet(5)).toBe(0);
    await bench().expect({ [MARKER]: marked(0) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each(["paid", ""])("what is no number is refused: %j", async (value) => {
    await bench().put({ [NUMBER]: text(value, 30_000) });
    await expect(trySet(5)).rejects.toThrow("not an integer");
    await bench().expect({ [NUMBER]: text(value, 30_000) });
  });

  test("0 may be set", async () => {
    await bench().put({});
    expect(await trySet(0)).toBe(1);
    await bench().expect({ [NUMBER]: number(0), [MARKER]: marked(1) });
  });

  test("other data is left alone", async () => {
    const states = { [NUMBER]: { value: { a: "b" }, ttl: -1 } };
    await bench().put(states);
    await expect(trySet(5)).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test("a marker says what the call came to", async () => {
    await bench().put({ [MARKER]: text("1", 20_000) });
    expect(await trySet(5)).toBe(1);
    await bench().put({ [MARKER]: text("0", 20_000) });
    expect(await trySet(5)).toBe(0);
    await bench().expect({ [MARKER]: text("0", 20_000) });
    expect(await bench().heard()).toEqual([]);
  });

  test("without memory nothing is set", async () => {
    await bench().put({});
    await bench().outOfMemory(async () => {
      await expect(trySet(5)).rejects.toThrow("OOM");
    });
    await bench().expect({});
    expect(await bench().heard()).toEqual([]);
  });

  test("who may not announce may set", async () => {
    const mute = wordOf(bench().runner(counterTrySet, form, await bench().withoutChannels()));
    await bench().put({});
    expect(await mute(keys, args(5))).toBe(1);
    await bench().expect({ [NUMBER]: number(5), [MARKER]: marked(1) });
  });

  test.each(["get", "set", "del"])("who may not %s is told so", async (command) => {
    await bench().put({});
    const limited = wordOf(bench().runner(counterTrySet, form, await bench().without(command)));
    await expectForbidden(bench(), limited(keys, args(5)));
  });
});
