/** Checks the arguments of a call, without its settings. */

/** Each name once. @throws TypeError */
export function checkResources(resources: unknown): readonly string[] {
  if (!Array.isArray(resources) || resources.length === 0)
    throw new TypeError("redlock: resources must be an array of at least one name");
  return [...new Set(resources as string[])];
}

/** The text of redlock, because programs may know the error by it. */
const WRONG_DURATION = "Duration must be an integer value in milliseconds.";

/** @throws TypeError, RangeError for what is no whole number of milliseconds */
export function checkDuration(duration: unknown): void {
  if (typeof duration !== "number") throw new TypeError(WRONG_DURATION);
  if (!Number.isSafeInteger(duration) || duration < 1) throw new RangeError(WRONG_DURATION);
}
