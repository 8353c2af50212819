import { describe, expect, test } from "vitest";
import { permitsRelease } from "../../src/scripts/generated.js";
import { forms, publishers, scored, text } from "./bench.js";
import {
  expectForbidden,
  hex,
  LEASES,
  LONG_GONE,
  MARKER_TTL,
  MINE,
  marked,
  NUMBER,
  number,
  OTHER_DATA,
  PERMIT_CHANNEL,
  THEIRS,
  told,
  tombstoneOf,
  useBench,
} from "./counts.js";

const bench = useBench();
const TOMBSTONE = tombstoneOf(MINE);
const keys = { permits: NUMBER, leases: LEASES, channel: PERMIT_CHANNEL, tombstone: TOMBSTONE };
const args = (call = "my call", publish = "PUBLISH") => ({
  id: hex(MINE),
  call,
  tombstoneTtl: MARKER_TTL,
  publish,
});

describe.each(forms(permitsRelease))("permits/release, %s", (form) => {
  const release = (call?: string, publish?: string) =>
    bench().runner(permitsRelease, form)(keys, args(call, publish));

  test.each(publishers)("1: given back and announced by %s, and each run says so", async (publish) => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000, [THEIRS]: 20_000 }) });
    expect(await release("my call", publish)).toBe(1);
    expect(await bench().heard()).toEqual(told(4, publish));
    expect(await release("my call", publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({
      [NUMBER]: number(4),
      [LEASES]: scored({ [THEIRS]: 20_000 }),
      [TOMBSTONE]: marked("my call"),
    });
  });

  test("0: another call finds that it was given back", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000 }) });
    expect(await release("first")).toBe(1);
    expect(await release("second")).toBe(0);
    await bench().expect({ [NUMBER]: number(4), [TOMBSTONE]: marked("first") });
  });

  test("every byte of an id stands for itself", async () => {
    const id = "000a0d7f80c3bfff25001f2e7d5b5c61";
    await bench().put({ [NUMBER]: number(1), [LEASES]: scored({ [THEIRS]: 20_000 }) });
    await bench().redis.zadd(LEASES, 9_999_999_999_999, Buffer.from(id, "hex"));
    expect(await bench().runner(permitsRelease, form)(keys, { ...args(), id })).toBe(1);
    expect(await bench().redis.zrange(LEASES, "0", "-1")).toEqual([THEIRS]);
  });

  test("0: an id that nobody has is over from now on", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [THEIRS]: 20_000 }) });
    expect(await release()).toBe(0);
    expect(await release()).toBe(0);
    await bench().expect({
      [NUMBER]: number(3),
      [LEASES]: scored({ [THEIRS]: 20_000 }),
      [TOMBSTONE]: marked("over"),
    });
    expect(await bench().heard()).toEqual([]);
  });

  test("0: an id that is over stays over, however it is called", async () => {
    const states = {
      [NUMBER]: number(3),
      [LEASES]: scored({ [MINE]: 30_000 }),
      [TOMBSTONE]: text("over", 20_000),
    };
    await bench().put(states);
    expect(await release()).toBe(0);
    await bench().expect(states);
  });

  test("0: its lease is over; the permit is free all the same, and that is announced", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 0, [LONG_GONE]: -50_000 }) });
    expect(await release()).toBe(0);
    expect(await bench().heard()).toEqual(told(5));
    await bench().expect({ [NUMBER]: number(5), [TOMBSTONE]: marked("over") });
  });

  test("a semaphore in debt: nothing is announced", async () => {
    await bench().put({ [NUMBER]: number(-2), [LEASES]: scored({ [MINE]: 30_000 }) });
    expect(await release()).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(-1), [TOMBSTONE]: marked("my call") });
  });

  test("TTLs are kept", async () => {
    await bench().put({
      [NUMBER]: number(3, 30_000),
      [LEASES]: scored({ [MINE]: 20_000, [THEIRS]: 20_000 }, 30_000),
    });
    expect(await release()).toBe(1);
    await bench().expect({
      [NUMBER]: number(4, 30_000),
      [LEASES]: scored({ [THEIRS]: 20_000 }, 30_000),
      [TOMBSTONE]: marked("my call"),
    });
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, state, refusal) => {
    const states = { [NUMBER]: state, [LEASES]: scored({ [MINE]: 30_000 }) };
    await bench().put(states);
    await expect(release()).rejects.toThrow(refusal);
    await bench().expect(states);
  });

  test("other data where the leases should be is left alone", async () => {
    const states = { [NUMBER]: number(5), [LEASES]: text("theirs", -1) };
    await bench().put(states);
    await expect(release()).rejects.toThrow("WRONGTYPE");
    await bench().expect(states);
  });

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value), [LEASES]: scored({ [MINE]: 30_000 }) });
    const limited = bench().runner(permitsRelease, form, await bench().without("decrby"));
    await expect(limited(keys, args())).resolves.toBeDefined();
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(await release()).toBe(0);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345678");
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000 }) });
    await bench().outOfMemory(async () => {
      expect(await release()).toBe(1);
    });
    await bench().expect({ [NUMBER]: number(4), [TOMBSTONE]: marked("my call") });
  });

  test("who may not announce may release", async () => {
    const mute = bench().runner(permitsRelease, form, await bench().withoutChannels());
    await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000 }) });
    expect(await mute(keys, args())).toBe(1);
    await bench().expect({ [NUMBER]: number(4), [TOMBSTONE]: marked("my call") });
  });

  test.each(["get", "time", "zremrangebyscore", "zscore", "set", "del", "zrem", "incrby"])(
    "who may not %s is told so",
    async (command) => {
      await bench().put({ [NUMBER]: number(3), [LEASES]: scored({ [MINE]: 30_000 }) });
      const limited = bench().runner(permitsRelease, form, await bench().without(command));
      await expectForbidden(bench(), limited(keys, args()));
    },
  );
});
