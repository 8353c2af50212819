/** The example with the SQL table: it proves what it says, and notices a fence that refuses nothing. */
import { expect, test } from "vitest";
import { runChanged, runExample, useExamples } from "./run.js";

useExamples();

test("the late write of a paused holder is refused by the fence and by the version, not by the lock", async () => {
  const { code, output } = await runExample("fenced-write/main.mjs");
  expect(output).toMatch(/lock alone: +\{ bens: 1, adas: 1/);
  expect(output).toMatch(/refused the late write/);
  expect(code).toBe(0);
});

test("a statement that does not compare the fence is noticed", async () => {
  const { code, output } = await runChanged(
    "fenced-write/main.mjs",
    "fenced-write/writer-process.mjs",
    "AND fence < CAST(?2 AS INTEGER)",
    "",
  );
  expect(output).toMatch(/AssertionError/);
  expect(code).toBe(1);
});
