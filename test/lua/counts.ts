/** What the tests of semaphores and latches on the bench share: their keys, and permits by their ids. */
import { expect } from "vitest";
import { type Message, type State, text } from "./bench.js";
import { refusal, WRONGTYPE } from "./table.js";

export const NUMBER = "job";
export const PERMIT_CHANNEL = "redisson_sc:{job}";
export const LEASES = "{job}:timeout";
export const MARKER = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:1";
export const MARKER_TTL = 60_000;

/** Members for permits' ids: as a test names them, and as the scripts get them: these texts are their 16 bytes. */
export const MINE = "the permit of me";
export const THEIRS = "somebody else's ";
export const LONG_GONE = "lapsed long ago ";
export const JUST_GONE = "lapsed just now ";
export const hex = (member: string): string => Buffer.from(member).toString("hex");
export const tombstoneOf = (member: string): string => `redisson_unlock_latch:{job}:${hex(member)}`;

/** A number without a TTL. */
export function number(value: number | string, ttl = -1): State {
  return text(String(value), ttl);
}

/** The marker with the outcome of a call. */
export function marked(outcome: number | string): State {
  return text(String(outcome), MARKER_TTL);
}

export function told(payload: number | string): Message[] {
  return [{ channel: PERMIT_CHANNEL, payload: String(payload) }];
}

/** Numbers and leases have no TTL. */
export const ENDLESS: RegExp = /^(job|\{job\}:timeout)$/;

/** A script's word, with the server's time in seconds, which comes with it. */
export function answered(word: number): unknown {
  return [word, expect.toSatisfy((seconds: number) => Math.abs(Date.now() / 1_000 - seconds) < 60)];
}

const NO_NUMBER: unknown = refusal("not an integer");

/** Data that is no number, and Redis' error for it. */
export const OTHER_DATA: Readonly<Record<string, readonly [state: State, refusal: unknown]>> = {
  text: [text("paid", -1), NO_NUMBER],
  "text with a TTL": [text("paid", 60_000), NO_NUMBER],
  "a fraction": [text("2.5", -1), NO_NUMBER],
  "an exponent": [text("1e3", -1), NO_NUMBER],
  "hex digits": [text("0x10", -1), NO_NUMBER],
  "leading zeros": [text("007", -1), NO_NUMBER],
  "zero with a sign": [text("-0", -1), NO_NUMBER],
  "a plus sign": [text("+5", -1), NO_NUMBER],
  "more than Redis counts": [text("99999999999999999999", -1), NO_NUMBER],
  "a blank around a number": [text(" 5", -1), NO_NUMBER],
  "what goes on behind the longest number": [text(`-${"1".repeat(19)}x`, -1), NO_NUMBER],
  "a line end behind a number": [text("5\n", -1), NO_NUMBER],
  nothing: [text("", -1), NO_NUMBER],
  "a hash": [{ value: { a: "b" }, ttl: -1 }, WRONGTYPE],
  "a list": [{ value: ["a"], ttl: -1 }, WRONGTYPE],
};
