import { describe, expect, test } from "vitest";
import { permitsState } from "../../src/scripts/generated.js";
import { forms, publishers, scored, text } from "./bench.js";
import {
  expectForbidden,
  JUST_GONE,
  LEASES,
  LONG_GONE,
  MINE,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  THEIRS,
  told,
  useBench,
} from "./counts.js";

const bench = useBench();
const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL };
const out = scored({ [MINE]: 30_000, [THEIRS]: 60_000 });

describe.each(forms(permitsState))("permits/state, %s", (form) => {
  const state = (publish = "PUBLISH") => bench().runner(permitsState, form)(keys, { publish });

  test.each([3, 0, -2])("%i free, and how many are out; nothing changes", async (free) => {
    const states = { [NUMBER]: number(free, 30_000), [LEASES]: out };
    await bench().put(states);
    expect(await state()).toEqual([free, 2]);
    await bench().expect(states);
    expect(await bench().heard()).toEqual([]);
  });

  test("none at all, and none is made", async () => {
    await bench().put({});
    expect(await state()).toEqual([0, 0]);
    await bench().expect({});
  });

  test.each(publishers)("leases that are over are taken back, announced by %s", async (publish) => {
    const members = { [LONG_GONE]: -9_000, [JUST_GONE]: 0, [MINE]: 30_000 };
    await bench().put({ [NUMBER]: number(1), [LEASES]: scored(members) });
    expect(await state(publish)).toEqual([3, 1]);
    expect(await bench().heard()).toEqual(told(3, publish));
    expect(await state(publish)).toEqual([3, 1]);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000 }) });
  });

  test.each([
    [-1, 0],
    [-2, -1],
  ])("what comes back to %i is not announced", async (before, after) => {
    await bench().put({ [NUMBER]: number(before), [LEASES]: scored({ [LONG_GONE]: -1 }) });
    expect(await state()).toEqual([after, 0]);
    expect(await bench().heard()).toEqual([]);
  });

  test("a permit that lasts for ever is never taken back", async () => {
    await bench().put({ [NUMBER]: number(1) });
    await bench().redis.zadd(LEASES, 922337203685477, THEIRS);
    expect(await state()).toEqual([1, 1]);
  });

  test("60 000 leases that are over at once", async () => {
    await bench().put({ [NUMBER]: number(0) });
    await bench().redis.eval(
      "for i = 1, 60000 do redis.call('ZADD', KEYS[1], i, 'permit ' .. i) end",
      1,
      LEASES,
    );
    expect(await state()).toEqual([60_000, 0]);
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, data, refusal) => {
    const states = { [NUMBER]: data, [LEASES]: scored({ [LONG_GONE]: -1 }) };
    await bench().put(states);
    await expect(state()).rejects.toThrow(refusal);
    await bench().expect(states);
  });

  test("other data where the leases should be is left alone", async () => {
    const states = { [NUMBER]: number(5), [LEASES]: text("theirs", -1) };
    await bench().put(states);
    await expect(state()).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value), [LEASES]: scored({ [MINE]: 30_000 }) });
    const limited = bench().runner(permitsState, form, await bench().without("decrby"));
    await expect(limited(keys, { publish: "PUBLISH" })).resolves.toBeDefined();
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    await state();
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345678");
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(1), [LEASES]: scored({ [LONG_GONE]: -1, [MINE]: 30_000 }) });
    await bench().outOfMemory(async () => {
      expect(await state()).toEqual([2, 1]);
    });
  });

  test("who may not announce may ask", async () => {
    const mute = bench().runner(permitsState, form, await bench().withoutChannels());
    await bench().put({ [NUMBER]: number(1), [LEASES]: scored({ [LONG_GONE]: -1 }) });
    expect(await mute(keys, { publish: "PUBLISH" })).toEqual([2, 0]);
  });

  test.each(["time", "get", "zremrangebyscore", "incrby", "zcard"])(
    "who may not %s is told so",
    async (command) => {
      await bench().put({ [NUMBER]: number(1), [LEASES]: scored({ [LONG_GONE]: -1 }) });
      const limited = bench().runner(permitsState, form, await bench().without(command));
      await expectForbidden(bench(), limited(keys, { publish: "PUBLISH" }));
    },
  );
});
