import { describe, expect, test } from "vitest";
import { counterState } from "../../src/scripts/generated.js";
import { forms } from "./bench.js";
import { expectForbidden, NUMBER, number, OTHER_DATA, useBench } from "./counts.js";

const bench = useBench();
const keys = { number: NUMBER };

describe.each(forms(counterState))("counter/state, %s", (form) => {
  const state = () => bench().runner(counterState, form)(keys, {});

  test.each([5, 0, -3, 9007199254740990])("%i, which stays as it is", async (value) => {
    await bench().put({ [NUMBER]: number(value, 30_000) });
    expect(await state()).toBe(value);
    await bench().expect({ [NUMBER]: number(value, 30_000) });
  });

  test("0 where there is none, and none is made", async () => {
    await bench().put({});
    expect(await state()).toBe(0);
    await bench().expect({});
  });

  test.each(OTHER_DATA)("other data is left alone: %s", async (_, data, refusal) => {
    await bench().put({ [NUMBER]: data });
    await expect(state()).rejects.toThrow(refusal);
    await bench().expect({ [NUMBER]: data });
  });

  test.each([0, 7, -7])("%i is read without a write", async (value) => {
    await bench().put({ [NUMBER]: number(value) });
    const limited = bench().runner(counterState, form, await bench().without("decrby"));
    await expect(limited(keys, {})).resolves.toBeDefined();
  });

  test("a number of 18 digits is counted exactly", async () => {
    await bench().put({ [NUMBER]: number("123456789012345678") });
    expect(String(await state())).toMatch(/^12345678901234/);
    expect(await bench().redis.get(NUMBER)).toBe("123456789012345678");
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await bench().outOfMemory(async () => {
      expect(await state()).toBe(5);
    });
  });

  test("who may not get is told so", async () => {
    await bench().put({ [NUMBER]: number(5) });
    await expectForbidden(
      bench(),
      bench().runner(counterState, form, await bench().without("get"))(keys, {}),
    );
  });
});
