import { describe, expect, test } from "vitest";
import { semaphoreUndo } from "../../src/scripts/generated.js";
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
} from "./counts.js";

const bench = useBench();
const keys = { permits: NUMBER, channel: PERMIT_CHANNEL, marker: MARKER };

describe.each(forms(semaphoreUndo))("semaphore/undo, %s", (form) => {
  const undo = (publish = "PUBLISH") =>
    bench().runner(semaphoreUndo, form)(keys, { markerTtl: MARKER_TTL, publish });

  test.each(publishers)("what was taken is given back and announced by %s, once", async (publish) => {
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("2", 20_000) });
    expect(await undo(publish)).toBe(1);
    expect(await bench().heard()).toEqual(told(5, publish));
    expect(await undo(publish)).toBe(1);
    expect(await bench().heard()).toEqual([]);
    await bench().expect({ [NUMBER]: number(5), [MARKER]: marked("over") });
  });

  test("a call that has taken nothing is refused from now on", async () => {
    await bench().put({ [NUMBER]: number(3) });
    expect(await undo()).toBe(1);
    await bench().expect({ [NUMBER]: number(3), [MARKER]: marked("over") });
    expect(await bench().heard()).toEqual([]);
  });

  test("the marker lives anew with each run", async () => {
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("over", 20_000) });
    expect(await undo()).toBe(1);
    await bench().expect({ [NUMBER]: number(3), [MARKER]: marked("over") });
  });

  test("who took one gives one back; who took none, nothing", async () => {
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("1", 20_000) });
    expect(await undo()).toBe(1);
    expect(await bench().heard()).toEqual(told(4));
    await bench().put({ [MARKER]: text("0", 20_000) });
    expect(await undo()).toBe(1);
    await bench().expect({ [MARKER]: marked("over") });
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("0", 20_000) });
    expect(await undo()).toBe(1);
    expect(await bench().heard()).toEqual([]);
  });

  test.each([
    [-2, []],
    [-1, told(1)],
  ])("what comes back to %i is announced above 0 only", async (before, messages) => {
    await bench().put({ [NUMBER]: number(before), [MARKER]: text("2", 20_000) });
    expect(await undo()).toBe(1);
    expect(await bench().heard()).toEqual(messages);
  });

  test("to a semaphore in debt nothing is announced", async () => {
    await bench().put({ [NUMBER]: number(-4), [MARKER]: text("2", 20_000) });
    expect(await undo()).toBe(1);
    await bench().expect({ [NUMBER]: number(-2), [MARKER]: marked("over") });
    expect(await bench().heard()).toEqual([]);
  });

  test("a TTL is kept, and a semaphore that is missing is made", async () => {
    await bench().put({ [NUMBER]: number(3, 30_000), [MARKER]: text("2", 20_000) });
    expect(await undo()).toBe(1);
    await bench().expect({ [NUMBER]: number(5, 30_000), [MARKER]: marked("over") });
    await bench().put({ [MARKER]: text("2", 20_000) });
    expect(await undo()).toBe(1);
    await bench().expect({ [NUMBER]: number(2), [MARKER]: marked("over") });
  });

  test("other data is left alone, and the call is over all the same", async () => {
    const theirs = { value: ["theirs"], ttl: -1 };
    await bench().put({ [NUMBER]: theirs, [MARKER]: text("2", 20_000) });
    await expect(undo()).rejects.toThrow("WRONGTYPE");
    await bench().expect({ [NUMBER]: theirs, [MARKER]: marked("over") });
  });

  test("without memory it works as ever", async () => {
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("2", 20_000) });
    await bench().outOfMemory(async () => {
      expect(await undo()).toBe(1);
    });
    await bench().expect({ [NUMBER]: number(5), [MARKER]: marked("over") });
  });

  test("who may not announce may undo", async () => {
    const mute = bench().runner(semaphoreUndo, form, await bench().withoutChannels());
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("2", 20_000) });
    expect(await mute(keys, { markerTtl: MARKER_TTL, publish: "PUBLISH" })).toBe(1);
    await bench().expect({ [NUMBER]: number(5), [MARKER]: marked("over") });
  });

  test.each(["get", "incrby", "set", "del"])("who may not %s is told so", async (command) => {
    await bench().put({ [NUMBER]: number(3), [MARKER]: text("2", 20_000) });
    const limited = bench().runner(semaphoreUndo, form, await bench().without(command));
    await expectForbidden(bench(), limited(keys, { markerTtl: MARKER_TTL, publish: "PUBLISH" }));
  });
});
