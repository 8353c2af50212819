import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeState } from "../../src/scripts/generated.js";
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
import { CHANNEL, MY_WRITE, reading, writing } from "./sides.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench([CHANNEL]);
});
afterAll(() => bench?.stop());

describe.each(forms(writeState))("write/state, %s", (form) => {
  const state = (field: string) =>
    bench.runner(writeState, form)({ lock: LOCK }, { field }) as Promise<number[]>;

  test.each([
    ["its writer", MY_WRITE, 12],
    ["another", `${OTHER}:write`, 0],
    ["nobody", ":write", 0],
  ])("{1, count, pttl}: a lock that is written, asked for %s", async (_, field, count) => {
    const states = writing(30_000, "12", [10_000]);
    await bench.put(states);
    const [found, counted, ttl, ...rest] = await state(field);
    expect([found, counted, rest]).toEqual([1, count, []]);
    expectTtl(ttl, 30_000);
    await bench.expect(states);
  });

  test.each<[string, States]>([
    ["a free lock", {}],
    ["a lock that is read, even by this owner", reading({ [ME]: [30_000] })],
    ["a plain lock of that name", { [LOCK]: held({ [OTHER]: "1" }, 30_000) }],
  ])("{0, 0, -2}: %s", async (_, states) => {
    await bench.put(states);
    expect(await state(MY_WRITE)).toEqual([0, 0, -2]);
    await bench.expect(states);
  });

  test("the largest numbers, and a lock without end", async () => {
    await bench.put(writing(MOST, String(MOST)));
    const exact = bench.server.connect({ stringNumbers: true }); // ioredis would read 2^53-1 as 2^53
    const reply = await bench.runner(writeState, form, exact)({ lock: LOCK }, { field: MY_WRITE });
    const [, count, ttl] = reply as string[];
    expect(count).toBe(String(MOST));
    expectTtl(Number(ttl), MOST);
    await bench.put(writing(-1));
    expect(await state(MY_WRITE)).toEqual([1, 1, -1]);
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(state(MY_WRITE)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test.each(["hget", "pttl"])("who may not %s is told so", async (command) => {
    await bench.put(writing(30_000));
    await bench.expectRefusal(command, writeState, form, { lock: LOCK }, { field: MY_WRITE });
  });
});
