import { describe, expect, test } from "vitest";
import { semaphoreRelease } from "../../src/scripts/generated.js";
import { forms, publishers } from "./bench.js";
import {
  expectForbidden,
  MARKER,
  MARKER_TTL,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  told,
  useBench,
  wordOf,
} from "./counts.js";

const bench = useBench();
const keys = { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER };

describe.each(forms(semaphoreRelease))("semaphore/release, %s", (form) => {
  const release = (count: number, publish = "PUBLISH") =>
    wordOf(bench().runner(semaphoreRelease, form))(keys, {
      count,
      message: "",
      markerTtl: MARKER_TTL,
      latest: 0,
      publish,
    });

  test.each(publishers)("added and announced by %s, once however often it runs", async (publish) => {
    await bench().put({ [NUMBER]: number(5) });
    expect(await release(2, publish)).toBe(1);
    expect(await bench().heard()).toEqual(told(7, publish));
    expect(await release(2, publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(7), [MARKER]: marked(1) });
  });

  test("a semaphore that is missing is made, without end", async () => {
    await bench().put({});
    expect(await release(3)).toBe(1);
    expect(await bench().heard()).toEqual(told(3));
    await bench().expect({ [NUMBER]: number(3), [MARKER]: marked(1) });
  });

  test.each([
    [-5, 2, []],
    [-2, 2, []],
    [-2, 3, told(1)],
    [0, 1, told(1)],
  ])("of %i, after %i more, only what is above 0 is announced", async (free, count, messages) => {
    await bench().put({ [NUMBER]: number(free) });
    expect(await release(count)).toBe(1);
    expect(await bench().heard()).toEqual(messages);
    await bench().expect({ [NUMBER]: number(free + count), [MARKER]: marked(1) });
  });

  test("large numbers are announced digit by digit", async () => {
    await bench().put({ [NUMBER]: number("9007199254740980") });
    expect(await release(9)).toBe(1);
    expect(await bench().heard()).toEqual(told("9007199254740989"));
  });

  test("a TTL is kept", async () => {
    await bench().put({ [NUMBER]: number(5, 30_000) });
    expect(await release(2)).toBe(1);
    await bench().expect({ [NUMBER]: number(7, 30_000), [MARKER]: marked(1) });
  });

  test.each(OTHER_DATA)(
    "other data is left alone, and nothing is announced: %s",
    async (_, state, refusal) => {
      await bench().put({ [NUMBER]: state });
      await expect(release(1)).rejects.toThrow(refusal);
      await bench().expect({ [NUMBER]: state });
      expect(await bench().heard()).toEqual([]);
    },
  );

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value) });
    const limited = wordOf(bench().runner(semaphoreRelease, form, await bench().without("decrby")));
    await expect(
      limited(keys, { count: 2, message: "", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" }),
    ).resolves.toBeDefined();
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(await release(2)).toBe(1);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345680");
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await bench().outOfMemory(async () => {
      expect(await release(2)).toBe(1);
    });
    await bench().expect({ [NUMBER]: number(7), [MARKER]: marked(1) });
  });

  test("who may not announce may release", async () => {
    const mute = wordOf(bench().runner(semaphoreRelease, form, await bench().withoutChannels()));
    await bench().put({ [NUMBER]: number(5) });
    expect(
      await mute(keys, { count: 2, message: "", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" }),
    ).toBe(1);
    await bench().expect({ [NUMBER]: number(7), [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test.each(["exists", "get", "incrby", "set", "del"])("who may not %s is told so", async (command) => {
    await bench().put({ [NUMBER]: number(5) });
    const limited = wordOf(bench().runner(semaphoreRelease, form, await bench().without(command)));
    const args = { count: 2, message: "", markerTtl: MARKER_TTL, latest: 0, publish: "PUBLISH" };
    await expectForbidden(bench(), limited(keys, args));
    expect(await bench().heard()).toEqual([]);
  });
});
