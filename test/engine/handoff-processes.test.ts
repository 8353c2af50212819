/** The hand-over policy at work: several processes in virtual time, under any load. */
import fc from "fast-check";
import { describe, test } from "vitest";
import { Engine } from "../../src/engine/engine.js";
import { endsItsStay, isFair, isFairToAll, neverSleeps, type Property } from "./handoff-properties.js";
import type { Load } from "./processes.js";

const times = {
  hold: fc.constantFrom(0.05, 0.3, 1, 3, 10, 30),
  latency: fc.constantFrom(0.1, 0.3, 1),
  seed: fc.nat(1_000_000),
};

const anySize: fc.Arbitrary<Load> = fc
  .record({ ...times, workers: fc.array(fc.integer({ min: 2, max: 16 }), { minLength: 2, maxLength: 8 }) })
  .map((load) => ({ ...load, runs: 12 * load.workers.length, time: 20_000 }));

const withLoner: fc.Arbitrary<Load> = fc.record({
  ...times,
  hold: fc.constantFrom(1, 2, 3),
  latency: fc.constant(0.3),
  workers: fc.constant([16, 8, 2, 1]),
  runs: fc.constant(80),
  time: fc.constant(4_000),
});

const unequal: fc.Arbitrary<Load> = fc.record({
  ...times,
  // With a higher latency others may come too late, because the releasing process cannot know how long they take.
  latency: fc.constantFrom(0.1, 0.3),
  workers: fc.array(fc.integer({ min: 2, max: 16 }), { minLength: 2, maxLength: 5 }),
  runs: fc.constant(4),
  time: fc.constant(4_000),
  uncounted: fc.boolean(),
});

const withStranger: fc.Arbitrary<Load> = fc.record({
  ...times,
  workers: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 4 }),
  runs: fc.constant(40),
  time: fc.constant(1_000),
  stranger: fc.boolean(),
});

const holds = (property: Property, loads: fc.Arbitrary<Load>, numRuns: number) =>
  fc.assert(
    fc.asyncProperty(loads, (load) => property(Engine, load)),
    // The loads are the same each time, so that a test fails only because the code has changed.
    { numRuns, seed: 1 },
  );

describe("processes that share a lock", () => {
  test("take turns, however many wait in each [B38]", () => holds(isFair, anySize, 40));

  test("leave as much to one that waits alone in its process", () => holds(isFairToAll, withLoner, 10));

  test("keep it for a second and a hold at most, also if nobody counts who else waits", () =>
    holds(endsItsStay, unequal, 40));

  test("do not all sleep while it is free", () => holds(neverSleeps, withStranger, 60));
});
