/** Tests of the tests: they notice each deliberate mistake in the hand-over policy. */
import { describe, expect, test } from "vitest";
import { ENDLESS, EQUIVALENT, MUTANTS, type Mutant, SELFISH, SLEEPY } from "./handoff-mutants.js";
import { endsItsStay, isFair, neverSleeps, type Property } from "./handoff-properties.js";
import { type PolicyClass, STORIES, tell } from "./handoff-table.js";
import { load } from "./load-mutant.js";
import type { Load } from "./processes.js";

const titled = (mutants: readonly (readonly [string, string, ...string[]])[]) =>
  mutants.map(([text, by]) => [inline(text), inline(by) || "nothing", [text, by]] as const);

const inline = (text: string) => text.replaceAll(/\s+/g, " ").trim();

function violated(Policy: PolicyClass): string[] {
  return STORIES.filter((story) => {
    try {
      tell(Policy, story);
      return false;
    } catch {
      return true;
    }
  }).map(({ rule }) => rule);
}

/** Whether processes with the broken policy violate the property under one of these loads. */
async function isBroken(property: Property, mutant: Mutant, ...loads: readonly Load[]): Promise<boolean> {
  const { Engine } = await load(mutant);
  const outcomes = await Promise.allSettled(loads.map((each) => property(Engine, each)));
  return outcomes.some(({ status }) => status === "rejected");
}

describe("each rule of the policy is told by a story", () => {
  test.each(titled(MUTANTS))("%s -> %s", async (_text, _by, mutant) => {
    const { HandoffPolicy } = await load(mutant);
    expect(violated(HandoffPolicy)).not.toEqual([]);
  });

  test.each(titled(EQUIVALENT))("%s -> %s changes nothing", async (_text, _by, mutant) => {
    const { HandoffPolicy } = await load(mutant);
    expect(violated(HandoffPolicy)).toEqual([]);
  });
});

describe("each property fails for processes that", () => {
  const times = { latency: 0.3, seed: 1 };
  const equal: Load = { ...times, workers: [8, 8, 8], hold: 30, runs: 36, time: 20_000 };
  const unseen: Load = { ...times, workers: [8, 8], hold: 10, runs: 4, time: 4_000, uncounted: true };
  const withStranger: Load = { ...times, workers: [8], hold: 10, runs: 2, time: 1_000, stranger: true };

  const alone: Load = { ...times, workers: [8], hold: 10, runs: 2, time: 1_500 };

  test.each(titled(SELFISH))("do not take turns: %s -> %s", async (_text, _by, mutant) => {
    expect(await isBroken(isFair, mutant, equal)).toBe(true);
  });

  test.each(titled(ENDLESS))("keep the lock: %s -> %s", async (_text, _by, mutant) => {
    expect(await isBroken(endsItsStay, mutant, unseen)).toBe(true);
  });

  test.each(titled(SLEEPY))("sleep: %s -> %s", async (_text, _by, mutant) => {
    expect(await isBroken(neverSleeps, mutant, equal, withStranger, alone)).toBe(true);
  });
});
