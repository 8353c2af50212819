import { describe, expect, test } from "vitest";
import { permitsUpdate } from "../../src/scripts/generated.js";
import { forms, later, MOST, publishers, scored, text } from "./bench.js";
import {
  expectForbidden,
  hex,
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
const args = (lease: number, publish = "PUBLISH") => ({
  id: hex(MINE),
  lease,
  markerTtl: MARKER_TTL,
  latest: 0,
  publish,
});

describe.each(forms(permitsUpdate))("permits/update, %s", (form) => {
  const update = (lease: number, publish?: string) =>
    wordOf(bench().runner(permitsUpdate, form))(keys, args(lease, publish));

  test.each([
    [90_000, []],
    [20_000, told(1)],
  ])("1: %i from now on, once; a shorter lease is announced", async (lease, messages) => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 60_000, [THEIRS]: 70_000 }) });
    expect(await update(lease)).toBe(1);
    expect(await bench().heard()).toEqual(messages);
    const after = scored({ [MINE]: later(lease), [THEIRS]: 70_000 });
    await bench().expect({ [NUMBER]: number(3), [LEASES]: after, [MARKER]: marked(1) });
    expect(await update(2 * lease)).toBe(1);
    await bench().expect({ [NUMBER]: number(3), [LEASES]: after, [MARKER]: marked(1) });
    expect(await bench().heard()).toEqual([]);
  });

  test("every byte of an id stands for itself", async () => {
    const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
    await bench().put({ [NUMBER]: number(1) });
    await bench().redis.zadd(LEASES, 922337203685477, Buffer.from(id, "hex"));
    expect(await wordOf(bench().runner(permitsUpdate, form))(keys, { ...args(30_000), id })).toBe(1);
    expect(Number(await bench().redis.zscore(LEASES, Buffer.from(id, "hex")))).toBeLessThan(922337203685477);
    expect(await bench().redis.zcard(LEASES)).toBe(1);
  });

  test("0: no such permit, and none is made", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [THEIRS]: 70_000 }) });
    expect(await update(30_000)).toBe(0);
    expect(await bench().redis.zrange(LEASES, "0", "-1")).toEqual([THEIRS]);
    expect(await bench().redis.get(NUMBER)).toBe("3");
    await bench().put({});
    expect(await update(30_000)).toBe(0);
    expect(await bench().redis.exists(NUMBER, LEASES)).toBe(0);
  });

  test.each(publishers)(
    "0: its lease is over; the permit is free, which is announced by %s",
    async (publish) => {
      await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 0, [LONG_GONE]: -9_000 }) });
      expect(await update(30_000, publish)).toBe(0);
      expect(await bench().heard()).toEqual(told(5, publish));
      expect(await bench().redis.get(NUMBER)).toBe("5");
      expect(await bench().redis.exists(LEASES)).toBe(0);
    },
  );

  test.each(publishers)("the end of a lease that comes sooner is announced by %s", async (publish) => {
    await bench().put({ [NUMBER]: number(0), [LEASES]: scored({ [MINE]: 60_000 }) });
    expect(await update(59_000, publish)).toBe(1);
    expect(await bench().heard()).toEqual(told(1, publish));
  });

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value), [LEASES]: scored({ [MINE]: 30_000 }) });
    const limited = wordOf(bench().runner(permitsUpdate, form, await bench().without("decrby")));
    await expect(limited(keys, args(60_000))).resolves.toBeDefined();
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(await update(60_000)).toBe(0);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345678");
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 10_000 }) });
    await bench().outOfMemory(async () => {
      expect(await update(20_000)).toBe(1);
    });
    await bench().expect({
      [NUMBER]: number(3),
      [LEASES]: scored({ [MINE]: later(20_000) }),
      [MARKER]: marked(1),
    });
  });

  test("the TTL of the leases is kept", async () => {
    await bench().put({ [NUMBER]: number(3, 30_000), [LEASES]: scored({ [MINE]: 10_000 }, 30_000) });
    expect(await update(20_000)).toBe(1);
    await bench().expect({
      [NUMBER]: number(3, 30_000),
      [LEASES]: scored({ [MINE]: later(20_000) }, 30_000),
      [MARKER]: marked(1),
    });
  });

  test("the largest lease survives", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 10_000 }) });
    expect(await update(MOST)).toBe(1);
    expect(Number(await bench().redis.zscore(LEASES, MINE))).toBeGreaterThanOrEqual(MOST);
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    const states = { [NUMBER]: state, [LEASES]: scored({ [MINE]: 30_000, [LONG_GONE]: -1 }) };
    await bench().put(states);
    await expect(update(60_000)).rejects.toThrow(refusal);
    await bench().expect(states);
  });

  test("other data where the leases should be is left alone", async () => {
    const states = { [NUMBER]: number(5), [LEASES]: text("theirs", -1) };
    await bench().put(states);
    await expect(update(60_000)).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test("who may not announce may set a lease", async () => {
    const mute = wordOf(bench().runner(permitsUpdate, form, await bench().withoutChannels()));
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000, [LONG_GONE]: -1 }) });
    expect(await mute(keys, args(20_000))).toBe(1);
    await bench().expect({
      [NUMBER]: number(4),
      [LEASES]: scored({ [MINE]: later(20_000) }),
      [MARKER]: marked(1),
    });
  });

  test.each(["exists", "get", "time", "zremrangebyscore", "zscore", "zadd", "set", "del"])(
    "who may not %s is told so",
    async (command) => {
      await bench().put({ [NUMBER]: number(5), [LEASES]: scored({ [MINE]: 30_000 }) });
      const limited = wordOf(bench().runner(permitsUpdate, form, await bench().without(command)));
      await expectForbidden(bench(), limited(keys, args(60_000)));
    },
  );
});
