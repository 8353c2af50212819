/** The examples with groups of locks: each proves what it says, and notices if its lock excludes nothing. */
import { expect, test } from "vitest";
import { runChanged, runExample, useExamples } from "./run.js";

useExamples();

test("transfers between accounts, named in any order, neither lose money nor wait for ever", async () => {
  const { code, output } = await runExample("accounts.mjs");
  expect(output).toMatch(/no money was made or lost/);
  expect(code).toBe(0);
});

test("a transfer that takes one of its two accounts only is noticed", async () => {
  const both = "new MultiLock(account(from), account(to))";
  const { code, output } = await runChanged("accounts.mjs", "accounts.mjs", both, "account(from)");
  expect(output).toMatch(/AssertionError.*no money was made or lost/s);
  expect(code).toBe(1);
});

test("a lock over five masters survives two of them, and says so when three are gone", async () => {
  const { code, output } = await runExample("redlock.mjs");
  expect(output).toMatch(/two of them killed: 160 seats booked, none twice/);
  expect(output).toMatch(/three of them killed: QUORUM/);
  expect(code).toBe(0);
});

test("two box offices that lock different theatres are noticed", async () => {
  const { code, output } = await runChanged(
    "redlock.mjs",
    "redlock.mjs",
    'client.getLock("theatre")',
    "client.getLock(String(Math.random()))",
  );
  expect(output).toMatch(/AssertionError/);
  expect(code).toBe(1);
});
