/** The few names, texts and numbers of states and calls; few, so that they meet. Texts have one character per byte. */
import type { Random } from "../../support/random.js";

/** Lock names; a case uses one of them. */
export const LOCKS = ["job", "a{job}b", "{job}"] as const;

const CLIENT = "6e3814a1-e847-452b-a982-45baf93a1df2";
export const OWNERS: readonly string[] = [1, 2, 3].map((n) => `${CLIENT}:${n}`);
export const IDS: readonly string[] = [
  "00112233445566778899aabbccddeeff",
  "ff".repeat(16),
  "0a0d7f80c3a92000".repeat(2),
];

export function rawId(id: string): string {
  return Buffer.from(id, "hex").toString("latin1");
}

/** Strings that are read as numbers, well-formed or not. */
export const NUMERALS: readonly string[] = [
  ..."0 1 2 5 -1 -3 17 007 +1 1.5 -0 1e3 0x10 .5 5. abc nan inf -inf over true 99999999999999999".split(" "),
  ..."9007199254740993 -9007199254740993 9223372036854775000 9223372036854775807".split(" "),
  ..."-9223372036854775808 9223372036854775808".split(" "),
  ...[" 1", "1 ", ""],
];

/** Durations in milliseconds. */
export const TERMS: readonly number[] = [
  1, 2, 300, 1_000, 29_999, 30_000, 60_000, 2_147_483_648, 4_503_599_627_370_496, 9_007_199_254_740_991,
];

export const CHANNELS: readonly string[] = [
  "redisson:{job}",
  ...OWNERS.map((owner) => `redisson:{job}:${owner}`),
];

const FROM_NOW = [
  -300_000, -30_000, -1_001, -1, 0, 1, 2, 999, 1_000, 5_000, 30_000, 300_000, 900_000, 35_184_372_088_832,
];

/** An epoch time near now, as the score of a sorted set. */
export function score(random: Random, now: number): string {
  if (random.chance(0.08))
    return random.pick(["0", "-5", "1.5", "inf", "-inf", "922337203685477", "1e20", "0.1"]);
  return String(now + random.pick(FROM_NOW));
}

/** Texts in place of one that a script only passes on. */
export const TEXTS: readonly string[] = [
  ...["", "x", "a b", "over", "\0", "\xc3\xa9", "\xff\x00\r\n", "%s", "{}", "12", "mode"],
];
