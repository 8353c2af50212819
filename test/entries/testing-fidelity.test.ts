/**
 * The server in memory answers and changes keys as a real one does: both play thousands of random cases at the same
 * instant. HOLDFAST_FIDELITY_RUNS is the number of cases for each script; the seed of a failed run repeats it.
 */
import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../src/entries/testing/commands.js";
import * as generated from "../../src/scripts/generated.js";
import type { AnyScript } from "../../src/scripts/script.js";
import { findRedis, forFile, hasFeaturesOf, noMovableClock, PATIENCE } from "../support/index.js";
import { Random } from "../support/random.js";
import { type Case, randomCall } from "./fidelity/calls.js";
import { randomPattern } from "./fidelity/patterns.js";
import { type Outcome, playInMemory, RealSide } from "./fidelity/sides.js";

const RUNS = Number(process.env.HOLDFAST_FIDELITY_RUNS ?? (process.env.CI ? 300 : 100));
const SEED = Number(process.env.HOLDFAST_FIDELITY_SEED ?? Math.floor(Math.random() * 2 ** 31));
/** The number of cases that are sent together, at one instant. */
const BATCH = 100;
/** The first instant; the others are within a day after it. */
const BEGIN = 1_700_000_000_000;
const DAY = 86_400_000;
/** Milliseconds for all cases on a busy machine; only a limit. */
const LIMIT = 4 * PATIENCE + 20 * RUNS;

const scripts = Object.values(generated) as unknown as AnyScript[];
const canPlay = noMovableClock === undefined && hasFeaturesOf(await findRedis(), "7.0.0");
const real = canPlay ? await forFile(RealSide.start()) : undefined;

/** A refusal of a writer names any one of the holders, by chance. */
function withoutHolder(outcome: Outcome | undefined): Outcome | undefined {
  const { reply } = outcome ?? {};
  return outcome && Array.isArray(reply) && reply[0] === ":0"
    ? { ...outcome, reply: reply.slice(0, 2) }
    : outcome;
}

/** Plays random cases on both sides; `make` makes a case for an instant. */
async function expectAlike(about: string, make: (random: Random, now: number) => Case): Promise<void> {
  const random = new Random(SEED ^ [...about].reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) | 0, 7));
  const compared = about === "write/take" ? withoutHolder : (outcome: Outcome | undefined) => outcome;
  for (let done = 0; done < RUNS; done += BATCH) {
    const now = BEGIN + random.below(DAY);
    const cases = Array.from({ length: Math.min(BATCH, RUNS - done) }, () => make(random, now));
    const wanted = (await real?.play(cases, now)) ?? [];
    for (const [i, each] of cases.map((each) => playInMemory(each, now)).entries()) {
      const outcome = compared(each);
      const where = `HOLDFAST_FIDELITY_SEED=${SEED} HOLDFAST_FIDELITY_RUNS=${RUNS}, case ${done + i} of ${about}`;
      expect({ ...cases[i], where, now, outcome }).toEqual({
        ...cases[i],
        where,
        now,
        outcome: compared(wanted[i]),
      });
    }
  }
}

describe.skipIf(!canPlay)("the server in memory answers and changes keys as Redis 7 does", () => {
  test.each<[what: string, make: (random: Random, now: number) => Case]>([
    ...scripts.map((script): [string, (random: Random, now: number) => Case] => [
      script.name,
      (random, now) => randomCall(random, script, now),
    ]),
    ["patterns of names [B191]", randomPattern],
  ])("for %s", expectAlike, LIMIT);
});

test("each command that scripts call is one that the server in memory knows", () => {
  const called = scripts.flatMap(({ text }) => [...text.matchAll(/redis[.]p?call\('(\w+)'/g)]);
  const names = new Set(called.map(([, name = ""]) => name.toLowerCase()));
  expect([...names].filter((name) => !(name in COMMANDS))).toEqual([]);
});
