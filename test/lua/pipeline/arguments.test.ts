/** Keys and arguments become text that a script can trust, or nothing is sent. */
import { expect, test } from "vitest";
import { evalArguments, Script } from "../../../src/scripts/script.js";

const add = new Script<[counter: string], [owner: string, amount: number, ...more: string[]]>(
  "counter/add",
  "list",
  "return 1",
);
const adding = (amount: number) => evalArguments("text", add.with(["k"], ["me:1", amount]));

test("keys come first, then arguments", () => {
  expect(adding(2 ** 31)).toEqual(["text", 1, ["k"], ["me:1", 2 ** 31]]);
});

test.each([-1, Number.NaN, 1.5, 2 ** 53, Number.POSITIVE_INFINITY])(
  "a number that is not whole, or below 0, or not exact is refused: %s",
  (amount) => {
    const message = `counter/add: a number must be a safe integer of at least 0, not ${amount}`;
    expect(() => adding(amount)).toThrow(new RangeError(message));
  },
);

test("what is missing or of another type fails to compile", () => {
  // @ts-expect-error a number is no owner
  add.with(["k"], [1, 1]);
  // @ts-expect-error a key is missing
  add.with([], ["me:1", 1]);
});
