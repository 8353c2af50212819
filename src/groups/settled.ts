/** Waiting for some of many answers. */

/** The outcome of a promise; undefined while the promise is open. */
export type Settled<T> = PromiseSettledResult<T> | undefined;

/** Resolves with the outcomes so far, once `enough` says so or all promises are settled. */
export function settled<T>(
  promises: readonly Promise<T>[],
  enough: (results: readonly Settled<T>[]) => boolean,
): Promise<readonly Settled<T>[]> {
  return new Promise((resolve) => {
    const results: Settled<T>[] = promises.map(() => undefined);
    let open = promises.length;
    let isOver = false;
    const note = (i: number, result: PromiseSettledResult<T>) => {
      if (isOver) return;
      results[i] = result;
      isOver = --open === 0 || enough(results);
      if (isOver) resolve(results);
    };
    promises.forEach((promise, i) => {
      promise.then(
        (value) => note(i, { status: "fulfilled", value }),
        (reason: unknown) => note(i, { status: "rejected", reason }),
      );
    });
    if (open === 0) resolve(results);
  });
}

/** Undefined if the promise is open or was rejected. */
export function answerOf<T>(result: Settled<T>): T | undefined {
  return result?.status === "fulfilled" ? result.value : undefined;
}

export function fulfilled<T>(results: readonly Settled<T>[]): T[] {
  return results.flatMap((result) => (result?.status === "fulfilled" ? [result.value] : []));
}

/** How many promises are fulfilled. */
export function countFulfilled(results: readonly Settled<unknown>[]): number {
  let count = 0;
  for (const result of results) if (result?.status === "fulfilled") count++;
  return count;
}

export function rejected(results: readonly Settled<unknown>[]): unknown[] {
  return results.flatMap((result): unknown[] => (result?.status === "rejected" ? [result.reason] : []));
}
