/**
 * Finds a short schedule that fails like a long one: delta debugging (Zeller and Hildebrandt, 2002), by removing parts
 * of the schedule.
 */
import type { AnySchedule } from "./schedule.js";

/** Two failures are alike if they differ in numbers only. */
function kindOf(failure: string | undefined): string | undefined {
  return failure?.replace(/\d+(\.\d+)?/g, "");
}

/** `fails`: plays a schedule and returns its failure. */
export async function shrink(
  schedule: AnySchedule,
  fails: (schedule: AnySchedule) => Promise<string | undefined>,
): Promise<AnySchedule> {
  const wanted = kindOf(await fails(schedule));
  const isAlike = async (tried: AnySchedule) => kindOf(await fails(tried)) === wanted;
  let shortest = schedule;
  const tryIt = async (tried: AnySchedule) => {
    if (!(await isAlike(tried))) return false;
    shortest = tried;
    return true;
  };
  const withSteps = (steps: readonly object[]) => ({ ...shortest, steps }) as AnySchedule;
  for (let size = Math.ceil(schedule.steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let from = 0; from < shortest.steps.length; ) {
      const steps: readonly object[] = shortest.steps;
      if (!(await tryIt(withSteps(steps.filter((_, i) => i < from || i >= from + size))))) from += size;
    }
  }
  if ("rates" in shortest) {
    await tryIt({ ...shortest, rates: shortest.rates.map(() => 1) });
    await tryIt({ ...shortest, weather: { ...shortest.weather, late: 0, latest: 0 } });
  }
  for (const [i, step] of shortest.steps.entries()) {
    for (const name of ["owner", "lease", "wait", "extend", "abort", "watched", "lost"]) {
      if (!(name in step)) continue;
      const steps: object[] = [...shortest.steps];
      steps[i] = Object.fromEntries(
        Object.entries(shortest.steps[i] as object).filter(([key]) => key !== name),
      );
      await tryIt(withSteps(steps));
    }
  }
  return shortest;
}
