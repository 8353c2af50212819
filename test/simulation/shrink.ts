/**
 * Finds a short schedule that fails like a long one: delta debugging (Zeller and Hildebrandt, 2002), by removing parts
 * of the schedule.
 */
import type { Schedule, Step } from "./schedule.js";

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
  for (let size = Math.ceil(schedule.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < shortest.steps.length; ) {
      const { steps } = shortest;
      if (!(await tryIt({ ...shortest, steps: steps.filter((_, i) => i < from || i >= from + size) })))
        from += size;
    }
  }
  await tryIt({ ...shortest, rates: shortest.rates.map(() => 1) });
  await tryIt({ ...shortest, weather: { ...shortest.weather, late: 0, latest: 0 } });
  for (const [i, step] of shortest.steps.entries()) {
    for (const name of ["owner", "lease", "wait", "extend", "abort", "watched"]) {
      if (!(name in step)) continue;
      const { [name as keyof Step]: _, ...without } = shortest.steps[i] as Step;
      await tryIt({
        ...shortest,
        steps: shortest.steps.map((each, at) => (at === i ? (without as Step) : each)),
      });
    }
  }
  return shortest;
}
