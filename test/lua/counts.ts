/** What the tests of semaphores and latches on the bench share: their keys, and permits by their ids. */
import { afterAll, beforeAll, expect } from "vitest";
import { allKeys } from "../support/index.js";
import { type Bench, FORBIDDEN, type Message, type State, startBench, text } from "./bench.js";

export const NUMBER = "job";
export const PERMIT_CHANNEL = "redisson_sc:{job}";
export const LEASES = "{job}:timeout";
export const MARKER = "holdfast_over:{job}:6e3814a1-e847-452b-a982-45baf93a1df2:1:1";
export const MARKER_TTL = 60_000;

/** Keys of a permit's id as a test names it, and as the scripts get it: its 16 bytes are this text. */
export const MINE = "the permit of me";
export const THEIRS = "somebody else's ";
export const LONG_GONE = "lapsed long ago ";
export const JUST_GONE = "lapsed just now ";
export const hex = (member: string): string => Buffer.from(member).toString("hex");
export const tombstoneOf = (member: string): string => `redisson_unlock_latch:{job}:${hex(member)}`;

/** A number that stays until it is deleted. */
export function number(value: number | string, ttl = -1): State {
  return text(String(value), ttl);
}

/** What a call came to. */
export function marked(outcome: number | string): State {
  return text(String(outcome), MARKER_TTL);
}

export function told(payload: number | string, command: string = "PUBLISH"): Message[] {
  return [{ command: command as Message["command"], channel: PERMIT_CHANNEL, payload: String(payload) }];
}

/** A server for the tests of one file. */
export function useBench(channel: string = PERMIT_CHANNEL): () => Bench {
  let bench: Bench | undefined;
  beforeAll(async () => {
    bench = await startBench([channel]);
  });
  afterAll(() => bench?.stop());
  return () => {
    if (bench === undefined) throw new Error("the bench is not up yet");
    return bench;
  };
}

/** Data that is no number, and the word for it that Redis has. */
export const OTHER_DATA: readonly [what: string, state: State, refusal: string][] = [
  ["text", text("paid", -1), "not an integer"],
  ["text with a TTL", text("paid", 60_000), "not an integer"],
  ["a fraction", text("2.5", -1), "not an integer"],
  ["an exponent", text("1e3", -1), "not an integer"],
  ["hex digits", text("0x10", -1), "not an integer"],
  ["leading zeros", text("007", -1), "not an integer"],
  ["zero with a sign", text("-0", -1), "not an integer"],
  ["a plus sign", text("+5", -1), "not an integer"],
  ["more than Redis counts", text("99999999999999999999", -1), "not an integer"],
  ["a blank around a number", text(" 5", -1), "not an integer"],
  ["a line end behind a number", text("5\n", -1), "not an integer"],
  ["nothing", text("", -1), "not an integer"],
  ["a hash", { value: { a: "b" }, ttl: -1 }, "WRONGTYPE"],
  ["a list", { value: ["a"], ttl: -1 }, "WRONGTYPE"],
];

/** The call is refused for lack of a command, and no key was left without end, but the numbers and leases. */
export async function expectForbidden(bench: Bench, call: Promise<unknown>): Promise<void> {
  await expect(call).rejects.toThrow(FORBIDDEN);
  for (const [key, { ttl }] of await allKeys(bench.redis)) {
    if (key !== NUMBER && key !== LEASES) expect(ttl, key).toBeGreaterThan(0);
  }
}

/** A script's word, without the server's time that comes with it. */
export function wordOf<A extends unknown[]>(
  run: (...args: A) => Promise<unknown>,
): (...args: A) => Promise<unknown> {
  return async (...args) => {
    const [word, time] = (await run(...args)) as [number, number];
    expect(Math.abs(Date.now() / 1_000 - time)).toBeLessThan(60);
    return word;
  };
}
