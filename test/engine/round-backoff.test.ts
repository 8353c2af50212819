import { describe, expect, test } from "vitest";
import { RoundBackoff } from "../../src/engine/round-backoff.js";

/** The back-off of a process that was served at these times, and whose rounds took so long. */
function backoff(served: number[], rounds: number[] = []): RoundBackoff {
  const made = new RoundBackoff();
  for (const now of served) made.served(now);
  for (const ms of rounds) made.took(ms);
  return made;
}

describe("a process that tries in rounds lets others go first", () => {
  test.each<[string, number[], now: number, chance: number, pause: number]>([
    ["by none, before it was ever served", [], 1_000, 0, 0],
    ["by none, before it knows how often it is served", [1_000], 1_000, 0, 0],
    ["by six round times, when it was just served", [1_000, 1_100], 1_100, 0, 6],
    ["by fewer, the longer that was ago", [1_000, 1_100], 1_150, 0, 3],
    ["by parts of one, too", [1_000, 1_100], 1_160, 0, 2.4],
    ["by those that chance adds", [1_000, 1_100], 1_150, 2.5, 5.5],
    ["by none, when it has waited as long as usual", [1_000, 1_100], 1_200, 0, 0],
    ["by none, when it has waited longer, but those of chance", [1_000, 1_100], 9_000, 1.5, 1.5],
    ["an interval that changes is followed slowly: 100, then 110", [1_000, 1_100, 1_300], 1_355, 0, 3],
    ["a shorter one as well: 100, then 91", [1_000, 1_100, 1_110], 1_110 + 91, 0, 0],
    ["a shorter one as well, not faster", [1_000, 1_100, 1_110], 1_110 + 75, 0, 96 / 91],
  ])("%s", (_, served, now, chance, pause) => {
    expect(backoff(served).pause(now, chance)).toBeCloseTo(pause, 10);
  });

  test.each<[string, number[], roundTime: number]>([
    ["1 ms at first", [], 1],
    ["a tenth of what a round took more", [11], 2],
    ["again", [11, 12], 3],
    ["and less", [11, 1], 1.9],
    ["a round that took too long counts as 20 ms", [1_000], 2.9],
    ["one that took no time as 1 ms", [11, 0], 1.9],
  ])("a round time: %s", (_, rounds, roundTime) => {
    expect(backoff([], rounds).pause(0, 1)).toBeCloseTo(roundTime, 10);
  });
});
