/** When a round of a RedLock is decided: by the vote that makes a majority, or after which none is possible. */
import { expect, test } from "vitest";
import { isDecided, type Vote } from "../../src/groups/votes.js";

const VOTES: Record<string, Vote> = {
  yes: { status: "fulfilled", value: { granted: true, value: {} as never, lease: 1 } },
  no: { status: "fulfilled", value: { granted: false, ttl: 5 } },
  error: { status: "rejected", reason: new Error("no answer") },
};

test.each([
  [3, ["yes", "yes"], true],
  [3, ["yes", "yes", "no"], true],
  [3, ["yes"], false],
  [3, ["yes", "no"], false],
  [3, ["yes", "error"], false],
  [3, ["no", "no"], true],
  [3, ["no", "error"], true],
  [3, ["yes", "error", "no"], true],
  [4, ["yes", "yes"], false],
  [4, ["no", "no"], true],
  [5, ["yes", "yes", "yes"], true],
  [5, ["yes", "yes", "no", "no"], false],
  [5, ["no", "error", "no"], true],
  [5, [], false],
] as const)("of %i masters %j have answered", (masters, answers, decided) => {
  const votes = Array.from({ length: masters }, (_, i) => VOTES[answers[i] ?? "open"]);
  const quorum = Math.floor(masters / 2) + 1;
  expect(isDecided(votes, quorum)).toBe(decided);
  // It does not matter which masters they are.
  expect(isDecided([...votes].reverse(), quorum)).toBe(decided);
});
