import { expect, test } from "vitest";
import { pauseAfter } from "../../src/groups/lost-round.js";

const longest = (lost: number, took: number) => pauseAfter(lost, took, 1);

test("the more rounds a call has lost, the less long it makes way, but it always does", () => {
  const pauses = [1, 2, 4, 8, 100].map((lost) => longest(lost, 2));
  expect(pauses).toEqual([40, 20, 10, 5, 5]);
});

test("a pause is measured in rounds, of which one without an answer counts as one far away", () => {
  expect([0, 0.5, 20, 3_000].map((took) => longest(8, took))).toEqual([1, 2, 41, 41]);
});

test("it is any time up to that", () => {
  expect([0, 0.25, 0.5].map((chance) => pauseAfter(1, 0.5, chance))).toEqual([0, 4, 8]);
});
