/** Arguments that are refused wherever they are given, and the type of the error. */

type Refusal = typeof TypeError | typeof RangeError;

export type Bad = readonly [title: string, value: unknown, type: Refusal];

export const NAMES: readonly Bad[] = [
  ["undefined", undefined, TypeError],
  ["null", null, TypeError],
  ["a number", 5, TypeError],
  ["an object", {}, TypeError],
  ["a symbol", Symbol("a"), TypeError],
  ["a String object", new String("a"), TypeError],
  ["empty", "", RangeError],
  ["513 bytes", "a".repeat(513), RangeError],
  ["516 bytes in 129 characters", "😀".repeat(129), RangeError],
  ["a lone high surrogate", "a\ud800", RangeError],
  ["a lone low surrogate", "\udc00a", RangeError],
];

export const WAITS: readonly Bad[] = [
  ["negative", -1, RangeError],
  ["-Infinity", Number.NEGATIVE_INFINITY, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["a string", "500", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 500n, TypeError],
];

export const LEASES: readonly Bad[] = [
  ["0", 0, RangeError],
  ["-1", -1, RangeError],
  ["0.5", 0.5, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["Infinity", Number.POSITIVE_INFINITY, RangeError],
  ["2^53", 2 ** 53, RangeError],
  ["a string", "1000", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 1000n, TypeError],
];

export const SIGNALS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a string", "abort", TypeError],
  ["a plain object", {}, TypeError],
  ["an object that looks aborted", { aborted: true }, TypeError],
  ["the controller instead of its signal", new AbortController(), TypeError],
  ["one that nobody can stop listening to", { aborted: false, addEventListener() {} }, TypeError],
];

export const OPTIONS: readonly Bad[] = [
  ["null", null, TypeError],
  ["a string", "500", TypeError],
  ["a function", () => {}, TypeError],
  ["a map", new Map([["wait", 5]]), TypeError],
  ["an unknown option", { retries: 5 }, TypeError],
  ["an unknown option that is undefined", { leaseTime: undefined }, TypeError],
];

export const FUNCTIONS: readonly Bad[] = [
  ["absent", undefined, TypeError],
  ["null", null, TypeError],
  ["a promise", Promise.resolve(), TypeError],
  ["options instead", { lease: 1000 }, TypeError],
];

/** For limits and counts, which are at least 0. */
export const LIMITS: readonly Bad[] = [
  ["a string", "1", TypeError],
  ["null", null, TypeError],
  ["a BigInt", 1n, TypeError],
  ["-1", -1, RangeError],
  ["0.5", 0.5, RangeError],
  ["NaN", Number.NaN, RangeError],
  ["Infinity", Number.POSITIVE_INFINITY, RangeError],
  ["2^53", 2 ** 53, RangeError],
];

/** For numbers of permits, which are at least 1. */
export const COUNTS: readonly Bad[] = [...LIMITS, ["0", 0, RangeError]];

export const IDS: readonly Bad[] = [
  ["undefined", undefined, TypeError],
  ["null", null, TypeError],
  ["a number", 5, TypeError],
  ["a String object", new String("0123456789abcdef0123456789abcdef"), TypeError],
];
