import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockState } from "../../src/scripts/generated.js";
import {
  type Bench,
  expectTtl,
  FORBIDDEN,
  forms,
  held,
  LOCK,
  ME,
  MOST,
  OTHER,
  startBench,
  text,
} from "./bench.js";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

describe.each(forms(lockState))("lock/state, %s", (form) => {
  const state = (owner: string) =>
    bench.runner(lockState, form)({ lock: LOCK }, { owner }) as Promise<number[]>;

  test.each([
    ["its owner", ME, 3],
    ["another", OTHER, 0],
    ["nobody", "", 0],
  ])("{1, count, pttl}: a held lock, asked for %s", async (_, owner, count) => {
    const states = { [LOCK]: held({ [ME]: "3" }, 30_000) };
    await bench.put(states);
    const [found, counted, ttl, ...rest] = await state(owner);
    expect([found, counted, rest]).toEqual([1, count, []]);
    expectTtl(ttl, 30_000);
    await bench.expect(states);
  });

  test("{0, 0, -2}: a free lock", async () => {
    await bench.put({});
    expect(await state(ME)).toEqual([0, 0, -2]);
    await bench.expect({});
  });

  test("the largest numbers, and a lock without end", async () => {
    await bench.put({ [LOCK]: held({ [ME]: String(MOST) }, MOST) });
    const exact = bench.server.connect({ stringNumbers: true }); // ioredis would read 2^53-1 as 2^53
    const [, count, ttl] = (await bench.runner(
      lockState,
      form,
      exact,
    )({ lock: LOCK }, { owner: ME })) as string[];
    expect(count).toBe(String(MOST));
    expectTtl(Number(ttl), MOST);
    await bench.put({ [LOCK]: held({ [ME]: "1" }, -1) });
    expect(await state(ME)).toEqual([1, 1, -1]);
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", 60_000) });
    await expect(state(ME)).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", 60_000) });
  });

  test.each(["hrandfield", "exists", "hget", "pttl"])("who may not %s is told so", async (command) => {
    const limited = bench.runner(lockState, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await expect(limited({ lock: LOCK }, { owner: ME })).rejects.toThrow(FORBIDDEN);
  });
});
