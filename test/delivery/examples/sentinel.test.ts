/** The example with the failover: it proves what it says, and notices a hold that was lost with its master. */
import { expect, test } from "vitest";
import { runChanged, runExample, useExamples } from "./run.js";

useExamples();

test("the hold outlives its master, and the waiter gets it from the next one", async () => {
  const { code, output } = await runExample("sentinel/main.mjs");
  expect(output).toMatch(/The new master has renewed Ada's hold/);
  expect(output).toMatch(/Ben has it within \d+ ms/);
  expect(code).toBe(0);
});

test("a hold that does not outlive it is noticed", async () => {
  const main = "sentinel/main.mjs";
  const { code, output } = await runChanged(main, main, "lock.lock()", "lock.lock({ lease: 500 })");
  expect(output).toMatch(/AssertionError.*the hold was lost in the failover/s);
  expect(code).toBe(1);
});
