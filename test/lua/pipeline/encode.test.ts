/** Keys and arguments become text that a script can trust, or nothing is sent. */
import { expect, test } from "vitest";
import { defineScript, encode } from "../../../src/scripts/script.js";

const counterAdd = defineScript(
  {
    name: "counter/add",
    keys: { counter: "hash", channel: "channel" },
    args: { owner: "text", amount: "int", lease: "ms" },
    reply: "list",
  },
  "return 1",
);

const counterRenewMany = defineScript(
  {
    name: "counter/renew-many",
    keys: { counters: "hash..." },
    args: { limit: "int", owners: "text...", leases: "ms..." },
    reply: "list",
  },
  "return 1",
);

const keys = { channel: "c", counter: "k" };
const args = { lease: 30_000, amount: 0, owner: "me:1" };
const add = (some: object): unknown[] => encode("text", counterAdd, keys, { ...args, ...some });
const renew = (counters: readonly string[], limit: number, owners: string[], leases: number[]): unknown[] =>
  encode("text", counterRenewMany, { counters }, { limit, owners, leases });

test("the order is that of the header, whatever the order of the properties", () => {
  expect(add({})).toEqual(["text", 2, "k", "c", "me:1", "0", "30000"]);
});

test("numbers keep all their digits, and minus zero is zero", () => {
  const large = add({ amount: Number.MAX_SAFE_INTEGER, lease: 2 ** 31 });
  expect(large.slice(5)).toEqual(["9007199254740991", "2147483648"]);
  expect(add({ amount: -0 })[5]).toBe("0");
});

test("variadic keys are spread, and groups of arguments interleaved", () => {
  const two = renew(["k1", "k2"], 2, ["a:1", "b:2"], [10, 20]);
  expect(two).toEqual(["text", 2, "k1", "k2", "2", "a:1", "10", "b:2", "20"]);
  expect(renew([], 0, [], [])).toEqual(["text", 0, "0"]);
});

test.each([
  ...[-1, Number.NaN, 1.5, 2 ** 53, Number.POSITIVE_INFINITY].map((amount) => ({ amount })),
  ...[0, -1, Number.NaN, 0.5, 2 ** 53].map((lease) => ({ lease })),
])("a number that is no int or ms is refused: %o", (some) => {
  const [[name, value] = []] = Object.entries(some);
  const least = name === "lease" ? 1 : 0;
  expect(() => add(some)).toThrow(
    new RangeError(`counter/add: '${name}' must be a safe integer of at least ${least}, not ${value}`),
  );
});

test("groups of unequal length, and numbers in them that are none, are refused", () => {
  expect(() => renew(["k"], 1, ["a:1"], [0])).toThrow("'leases' must be a safe integer");
  expect(() => renew(["k"], 1, ["a:1", "b:2"], [10])).toThrow(
    new RangeError("counter/renew-many: 'leases' has 1 values, but 'owners' has 2"),
  );
});

test("a key or an argument that is no text, or no list, is refused", () => {
  expect(() => add({ owner: 1 })).toThrow("counter/add: 'owner' must be a string, not number");
  expect(() => encode("text", counterAdd, { counter: "k" } as never, args as never)).toThrow(
    "'channel' must be",
  );
  const none = { limit: 0, owners: [], leases: [] };
  expect(() => encode("text", counterRenewMany, { counters: "k" } as never, none)).toThrow(
    "must be an array",
  );
});
