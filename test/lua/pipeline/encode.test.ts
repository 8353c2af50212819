/** Keys and arguments become text that a script can trust, or nothing is sent. */
import { expect, test } from "vitest";
import { encode } from "../../../src/scripts/script.js";
import { counterAdd, counterRenewMany } from "./fixtures/src/scripts/generated.js";

const keys = { channel: "c", counter: "k" };
const args = { lease: 30_000, amount: 0, owner: "me:1" };

test("the order is that of the header, whatever the order of the properties", () => {
  expect(encode("text", counterAdd, keys, args)).toEqual(["text", 2, "k", "c", "me:1", "0", "30000"]);
});

test("numbers keep all their digits", () => {
  const large = { ...args, amount: Number.MAX_SAFE_INTEGER, lease: 2 ** 31 };
  expect(encode("text", counterAdd, keys, large).slice(4)).toEqual([
    "me:1",
    "9007199254740991",
    "2147483648",
  ]);
});

test("variadic keys are spread, and groups of arguments interleaved", () => {
  const values = { limit: 2, owners: ["a:1", "b:2"], leases: [10, 20] };
  expect(encode("text", counterRenewMany, { counters: ["k1", "k2"] }, values)).toEqual([
    "text",
    2,
    "k1",
    "k2",
    "2",
    "a:1",
    "10",
    "b:2",
    "20",
  ]);
  expect(encode("text", counterRenewMany, { counters: [] }, { limit: 0, owners: [], leases: [] })).toEqual([
    "text",
    0,
    "0",
  ]);
});

test.each([-1, Number.NaN, 1.5, 2 ** 53, Number.POSITIVE_INFINITY])("%d is no int", (amount) => {
  expect(() => encode("text", counterAdd, keys, { ...args, amount })).toThrow(
    new RangeError(`counter/add: 'amount' must be a safe integer of at least 0, not ${amount}`),
  );
});

test.each([0, -1, Number.NaN, 0.5, 2 ** 53])("%d is no ms", (lease) => {
  expect(() => encode("text", counterAdd, keys, { ...args, lease })).toThrow(
    new RangeError(`counter/add: 'lease' must be a safe integer of at least 1, not ${lease}`),
  );
});

test("minus zero is zero", () => {
  expect(encode("text", counterAdd, keys, { ...args, amount: -0 })[5]).toBe("0");
});

test("numbers in a variadic group are checked too", () => {
  const values = { limit: 1, owners: ["a:1"], leases: [0] };
  expect(() => encode("text", counterRenewMany, { counters: ["k"] }, values)).toThrow(
    "'leases' must be a safe integer",
  );
});

test("groups of unequal length are refused", () => {
  const values = { limit: 1, owners: ["a:1", "b:2"], leases: [10] };
  expect(() => encode("text", counterRenewMany, { counters: ["k"] }, values)).toThrow(
    new RangeError("counter/renew-many: 'leases' has 1 values, but 'owners' has 2"),
  );
});

test("a key or an argument that is no text is refused", () => {
  // @ts-expect-error a number is no owner
  expect(() => encode("text", counterAdd, keys, { ...args, owner: 1 })).toThrow(
    new TypeError("counter/add: 'owner' must be a string, not number"),
  );
  // @ts-expect-error a key is missing
  expect(() => encode("text", counterAdd, { counter: "k" }, args)).toThrow(
    new TypeError("counter/add: 'channel' must be a string, not undefined"),
  );
  expect(() =>
    // @ts-expect-error a variadic key is an array
    encode("text", counterRenewMany, { counters: "k" }, { limit: 0, owners: [], leases: [] }),
  ).toThrow(new TypeError("counter/renew-many: 'counters' must be an array, not string"));
});

test("a misspelt name fails to compile", () => {
  // @ts-expect-error 'leese' is not in the header
  expect(() => encode("text", counterAdd, keys, { owner: "me:1", amount: 0, leese: 1 })).toThrow(
    "'lease' must be",
  );
});
