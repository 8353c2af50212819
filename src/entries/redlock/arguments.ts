/** Checks what a call is given, beside its settings. */

/** Each name once. @throws TypeError */
export function checkResources(resources: unknown): readonly string[] {
  if (!Array.isArray(resources) || resources.length === 0)
    throw new TypeError("redlock: resources must be an array of at least one name");
  return [...new Set(resources as string[])];
}

/** @throws TypeError, RangeError for what is no whole number of milliseconds */
export function checkDuration(duration: unknown): void {
  if (typeof duration !== "number") throw new TypeError("redlock: duration must be a number of milliseconds");
  if (!Number.isSafeInteger(duration) || duration < 1)
    throw new RangeError(`redlock: duration must be a whole number of milliseconds, not ${duration}`);
}
