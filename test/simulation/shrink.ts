/**
 * Finds a short schedule that fails like a long one: delta debugging (Zeller and Hildebrandt, 2002), by removing parts
 * of the schedule.
 */
import type { Schedule } from "./schedule.js";

/** Two failures are alike if they differ in numbers only. */
function kindOf(failure: string | undefined): string | undefined {
  return failure?.replace(/\d+(\.\d+)?/g, "");
}

/** `fails`: plays a schedule and returns its failure. */
export async function shrink(
  schedule: Schedule,
  fails: (schedule: Schedule) => Promise<string | undefined>,
): Promise<Schedule> {
  const wanted = kindOf(await fails(schedule));
  const isAlike = async (tried: Schedule) => kindOf(await fails(tried)) === wanted;
  let shortest = schedule;
  const tryIt = async (tried: Schedule) => {
    if (!(await isAlike(tried))) return false;
    shortest = tried;
    return true;
  };
  const withSteps = (steps: Schedule["steps"]) => ({ ...shortest, steps });
  for (let size = Math.ceil(schedule.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < shortest.steps.length; ) {
      const steps = shortest.steps.filter((_, i) => i < from || i >= from + size);
      if (!(await tryIt(withSteps(steps)))) from += size;
    }
  }
  await tryIt({ ...shortest, rates: shortest.rates.map(() => 1) });
  await tryIt({ ...shortest, weather: { ...shortest.weather, late: 0, latest: 0 } });
  for (const [i, step] of shortest.steps.entries()) {
    for (const name of ["owner", "lease", "wait", "extend", "abort", "watched"]) {
      if (!(name in step)) continue;
      const { [name]: _, ...rest } = shortest.steps[i] as unknown as Record<string, unknown>;
      await tryIt(withSteps(shortest.steps.map((each, at) => (at === i ? (rest as never) : each))));
    }
  }
  return shortest;
}
