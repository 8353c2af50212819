import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readState } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  type States,
  startBench,
  text,
} from "./bench.js";
import { CHANNEL, holds, reading, THIRD, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(readState))("read/state, %s", (form) => {
  const state = (owner: string) =>
    bench.runner(readState, form)({ locks: [LOCK] }, { owner }) as Promise<number[]>;

  test.each([
    ["a reader", ME, 3],
    ["another", THIRD, 0],
    ["nobody", "", 0],
  ])("{1, count, pttl}: a lock that is read, asked for %s", async (_, owner, count) => {
    const states = reading({ [ME]: [30_000, 10_000, 0], [OTHER]: [50_000] });
    await bench.put(states);
    const [found, counted, ttl, ...rest] = await state(owner);
    expect([found, counted, rest]).toEqual([1, count, []]);
    expectTtl(ttl, 50_000);
    await bench.expect(states);
  });

  test("{1, count, pttl}: a writer that reads as well", async () => {
    await bench.put(writing(60_000, "2", [30_000]));
    const [found, count, ttl] = await state(ME);
    expect([found, count]).toEqual([1, 1]);
    expectTtl(ttl, 60_000);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["a lock that is only written", writing(30_000)],
    ["a lock whose readers, none of them this one, have all lapsed", reading({ [OTHER]: [0, 0] }, 30_000)],
    ["a plain lock of that name", { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
  ])("{0, 0, -2}: %s", async (_, states) => {
    await bench.put(states);
    expect(await state(ME)).toEqual([0, 0, -2]);
    await bench.expect(states);
  });

  test("{1, 0, pttl}: holds that have lapsed do not count, while others read", async () => {
    await bench.put(reading({ [ME]: [0, 0], [OTHER]: [30_000] }));
    expect((await state(ME)).slice(0, 2)).toEqual([1, 0]);
  });

  test("{0, 0, -2}: holds that have lapsed do not count, when nobody reads", async () => {
    await bench.put(reading({ [ME]: [0, 0] }, 30_000));
    expect(await state(ME)).toEqual([0, 0, -2]);
  });

  test("the longest TTL", async () => {
    await bench.put(reading({ [ME]: [MOST] }));
    const [, , ttl] = await state(ME);
    expectTtl(ttl, MOST);
  });

  test("a lock without end", async () => {
    await bench.put(reading({ [ME]: [30_000] }, -1));
    expect(await state(ME)).toEqual([1, 1, -1]);
  });

  test("the hold keys of a name with braces and of one without", async () => {
    for (const [name, base] of [
      ["größe:日本", "{größe:日本}"],
      ["{a}:c", "{a}:c"],
    ] as const) {
      await bench.put({
        [name]: held({ mode: "read", "6e3814a1-e847-452b-a982-45baf93a1df2:-1": "2" }, 30_000),
        ...holds("6e3814a1-e847-452b-a982-45baf93a1df2:-1", [0, 10_000], base),
      });
      expect(
        (
          (await bench.runner(readState, form)(
            { locks: [name] },
            { owner: "6e3814a1-e847-452b-a982-45baf93a1df2:-1" },
          )) as number[]
        ).slice(0, 2),
      ).toEqual([1, 2]);
    }
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(state(ME)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test.each(["hget", "hgetall", "pttl"])("who may not %s is told so", async (command) => {
    await bench.put(reading({ [ME]: [30_000] }));
    await bench.expectRefusal(command, readState, form, { locks: [LOCK] }, { owner: ME });
  });
});
