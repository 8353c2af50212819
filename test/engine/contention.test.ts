import { expect, test } from "vitest";
import { Contention } from "../../src/engine/contention.js";

/** Milliseconds. */
const MEMORY = 1_000;

/** Whether a call for these locks may try all at once; it is over at once. */
function isFree(contention: Contention, keys: readonly string[], now: number): boolean {
  const set = new Set(keys);
  const may = contention.enter(set, now);
  if (may) contention.leave(set);
  return may;
}

test("it is known at all keys of the call that met it, for a second, and at no others", () => {
  const contention = new Contention();
  contention.met(["a", "b"], 5_000);
  const free = (now: number) => ["a", "b", "c"].filter((key) => isFree(contention, [key], now));
  expect([free(5_000), free(5_000 + MEMORY - 1)]).toEqual([["c"], ["c"]]);
  expect(free(5_000 + MEMORY)).toEqual(["a", "b", "c"]);
});

test("one key where it is known is enough", () => {
  const contention = new Contention();
  expect(isFree(contention, ["a", "b"], 0)).toBe(true);
  contention.met(["b", "c"], 0);
  expect([isFree(contention, ["a", "b"], 1), isFree(contention, ["a", "d"], 1)]).toEqual([false, true]);
});

test("it counts from the last time", () => {
  const contention = new Contention();
  contention.met(["a", "b"], 0);
  contention.met(["a"], 600);
  const free = (now: number) => ["a", "b"].filter((key) => isFree(contention, [key], now));
  expect([free(MEMORY), free(600 + MEMORY)]).toEqual([["b"], ["a", "b"]]);
});

test("of the calls of one client that want a lock, one tries all its locks at once", () => {
  const contention = new Contention();
  const first = new Set(["a", "b"]);
  expect(contention.enter(first, 0)).toBe(true);
  expect([isFree(contention, ["b", "c"], 1), isFree(contention, ["c"], 1)]).toEqual([false, true]);
  contention.leave(first);
  expect(isFree(contention, ["b", "c"], 2)).toBe(true);
});

test("what it has forgotten takes no memory", () => {
  const contention = new Contention();
  for (let i = 0; i < 1_000; i++) contention.met([`old-${i}`], i / 10);
  contention.met(["new"], 5_000);
  expect(contention.size).toBe(1);
});
