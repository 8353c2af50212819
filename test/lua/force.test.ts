import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockForce } from "../../src/scripts/generated.js";
import {
  type Bench,
  CHANNEL,
  FORBIDDEN,
  forms,
  held,
  LOCK,
  ME,
  OTHER,
  publishers,
  startBench,
  TOMBSTONE,
  text,
} from "./bench.js";

const OVER = "holdfast_over:call";

let bench: Bench;
beforeAll(async () => {
  bench = await startBench();
});
afterAll(() => bench?.stop());

describe.each(forms(lockForce))("lock/force, %s", (form) => {
  const keys = { lock: LOCK, channel: CHANNEL, tombstone: OVER };
  const args = { tombstoneTtl: 20_000, publish: "PUBLISH" };
  const force = (publish = "PUBLISH") => bench.runner(lockForce, form)(keys, { ...args, publish });
  const bystander = { [TOMBSTONE]: text("1", 40_000) };
  const over = { [OVER]: text("1", 20_000) };

  test.each(publishers)("1: whoever held it, announced by %s", async (publish) => {
    await bench.put({ [LOCK]: held({ [OTHER]: "2" }, 30_000), ...bystander });
    expect(await force(publish)).toBe(1);
    await bench.expect({ ...bystander, ...over });
    expect(await bench.heard()).toEqual([{ command: publish, channel: CHANNEL, payload: "0" }]);
  });

  test("sent again, it is true still, and leaves the next holder alone", async () => {
    await bench.put({ [LOCK]: held({ [OTHER]: "1" }, 30_000), ...over });
    expect(await force()).toBe(1);
    await bench.expect({ [LOCK]: held({ [OTHER]: "1" }, 30_000), ...over });
    await bench.put(over);
    expect(await force()).toBe(1);
    expect(await bench.heard()).toEqual([]);
  });

  test("0: it was free, and nothing is announced", async () => {
    await bench.put(bystander);
    expect(await force()).toBe(0);
    await bench.expect(bystander);
    expect(await bench.heard()).toEqual([]);
  });

  test("a key with other data stays as it is", async () => {
    await bench.put({ [LOCK]: text("theirs", -1) });
    await expect(force()).rejects.toThrow("WRONGTYPE");
    await bench.expect({ [LOCK]: text("theirs", -1) });
    expect(await bench.heard()).toEqual([]);
  });

  test("without memory, and by one who may not announce", async () => {
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await bench.outOfMemory(async () => {
      expect(await force()).toBe(1);
    });
    await bench.expect(over);
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    const mute = await bench.withoutChannels();
    expect(await bench.runner(lockForce, form, mute)(keys, args)).toBe(1);
    await bench.expect(over);
    expect(await bench.heard()).toEqual([]);
  });

  test.each(["hrandfield", "exists", "del", "set"])("who may not %s is told so", async (command) => {
    const limited = bench.runner(lockForce, form, await bench.without(command));
    await bench.put({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    await expect(limited(keys, args)).rejects.toThrow(FORBIDDEN);
    await bench.expect({ [LOCK]: held({ [ME]: "1" }, 30_000) });
    expect(await bench.heard()).toEqual([]);
  });
});
