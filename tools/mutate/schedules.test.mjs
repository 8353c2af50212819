// A few schedules of test/simulation: what a change of src/locks breaks, they often notice. `npm run test:all` plays 20,000 of them.
import { expect, test } from "vitest";
import { makeSchedule } from "../../test/simulation/schedule.js";
import { Simulation } from "../../test/simulation/simulation.js";
import { Random } from "../../test/support/random.js";

const SCHEDULES = 12;

test.each(["lock", "fair", "fenced", "readwrite", "multi"])(
  "%s: whatever happens in a schedule, all that is promised is kept",
  async (kind) => {
    for (let seed = 1; seed <= SCHEDULES; seed++) {
      const random = new Random(seed);
      Math.random = () => random.next();
      const { failure } = await new Simulation(makeSchedule(kind, seed)).play();
      expect(failure, `seed ${seed}`).toBeUndefined();
    }
  },
);
