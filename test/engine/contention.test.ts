import { expect, test } from "vitest";
import { Contention } from "../../src/engine/contention.js";

/** Milliseconds. */
const MEMORY = 1_000;

test("it is known at all keys of the call that met it, for a second, and at no others", () => {
  const contention = new Contention();
  contention.met(["a", "b"], 5_000);
  const known = (now: number) => ["a", "b", "c"].filter((key) => contention.isKnown([key], now));
  expect([known(5_000), known(5_000 + MEMORY - 1)]).toEqual([
    ["a", "b"],
    ["a", "b"],
  ]);
  expect(known(5_000 + MEMORY)).toEqual([]);
});

test("one key where it is known is enough", () => {
  const contention = new Contention();
  expect(contention.isKnown(["a", "b"], 0)).toBe(false);
  contention.met(["b", "c"], 0);
  expect([contention.isKnown(["a", "b"], 1), contention.isKnown(["a", "d"], 1)]).toEqual([true, false]);
});

test("it counts from the last time", () => {
  const contention = new Contention();
  contention.met(["a", "b"], 0);
  contention.met(["a"], 600);
  const known = (now: number) => ["a", "b"].filter((key) => contention.isKnown([key], now));
  expect([known(MEMORY), known(600 + MEMORY)]).toEqual([["a"], []]);
});

test("what it has forgotten takes no memory", () => {
  const contention = new Contention();
  for (let i = 0; i < 1_000; i++) contention.met([`old-${i}`], i / 10);
  contention.met(["new"], 5_000);
  expect(contention.size).toBe(1);
});
