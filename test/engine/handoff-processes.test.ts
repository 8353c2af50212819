/** The policy of hand-overs at work: several processes in virtual time, whatever their loads. */
import fc from "fast-check";
import { describe, test } from "vitest";
import { Engine } from "../../src/engine/engine.js";
import { endsItsStreak, isFair, neverSleeps, type Property } from "./handoff-properties.js";
import type { Load } from "./processes.js";

const times = {
  hold: fc.constantFrom(0.05, 0.3, 1, 3, 10, 30),
  latency: fc.constantFrom(0.1, 0.3, 1),
  seed: fc.nat(1_000_000),
};

const equal: fc.Arbitrary<Load> = fc
  .record({ ...times, processes: fc.integer({ min: 2, max: 8 }), each: fc.integer({ min: 2, max: 16 }) })
  .map(({ processes, each, ...rest }) => ({
    ...rest,
    workers: Array.from({ length: processes }, () => each),
    runs: 12 * processes,
    time: 20_000,
  }));

const unequal: fc.Arbitrary<Load> = fc.record({
  ...times,
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
    // The same loads each time, so that a test fails only for what has changed.
    { numRuns, seed: 1 },
  );

describe("processes that share a lock", () => {
  test("take turns if their loads are equal", () => holds(isFair, equal, 80));

  test("keep it for a second and a hold at most, also if nobody counts who else waits", () =>
    holds(endsItsStreak, unequal, 40));

  test("do not all sleep while it is free", () => holds(neverSleeps, withStranger, 60));
});
