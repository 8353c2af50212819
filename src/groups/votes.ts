/** What many members answer, counted: whether enough of them agree, and the one error for all that failed. */
import { isLockError, type LockError, QuorumError } from "../base/errors.js";

/** The outcome of a promise; undefined while the promise is open. */
export type Vote<T = unknown> = PromiseSettledResult<T> | undefined;

/** Resolves with the outcomes so far, once `enough` says so or all promises are settled. */
export function votes<T>(
  promises: readonly Promise<T>[],
  enough: (votes: readonly Vote<T>[]) => boolean,
): Promise<readonly Vote<T>[]> {
  return new Promise((resolve) => {
    const so: Vote<T>[] = promises.map(() => undefined);
    let open = promises.length;
    const note = (i: number, vote: PromiseSettledResult<T>) => {
      so[i] = vote;
      open--;
      if (open === 0 || enough(so)) resolve([...so]);
    };
    for (const [i, promise] of promises.entries()) {
      promise.then(
        (value) => note(i, { status: "fulfilled", value }),
        (reason: unknown) => note(i, { status: "rejected", reason }),
      );
    }
    if (open === 0) resolve(so);
  });
}

export function chosen<T>(vote: Vote<T>): T | undefined {
  return vote?.status === "fulfilled" ? vote.value : undefined;
}

export function fulfilled<T>(so: readonly Vote<T>[]): T[] {
  return so.flatMap((vote) => (vote?.status === "fulfilled" ? [vote.value] : []));
}

export function rejected(so: readonly Vote[]): unknown[] {
  return so.flatMap((vote): unknown[] => (vote?.status === "rejected" ? [vote.reason] : []));
}

/** Waits until `quorum` pieces of work are done. Resolves with the error of work that too few have done. */
export async function mostDone(quorum: number, work: readonly Promise<unknown>[]): Promise<unknown> {
  const so = await votes(work, (each) => fulfilled(each).length >= quorum);
  if (fulfilled(so).length >= quorum) return undefined;
  const errors = rejected(so);
  const isLoss = (error: unknown) => isLockError(error, "LOCK_LOST");
  // With a quorum not lost, the lost ones are not why the work failed.
  const isLost = so.length - errors.filter(isLoss).length < quorum;
  const first = errors.find((error) => isLockError(error) && isLoss(error) === isLost);
  return first ? withErrors(first as LockError, errors) : errors[0];
}

/** The error of a question or a round with too few answers: the one that all masters agree on, or QUORUM. */
export function tooFewAnswers(
  name: string,
  members: number,
  inFavour: number,
  so: readonly Vote[],
): LockError {
  const errors = rejected(so).filter((error) => !isLockError(error, "LOCK_LOST"));
  const [first] = errors;
  const agreed =
    isLockError(first) &&
    first.code !== "UNAVAILABLE" &&
    errors.every((error) => isLockError(error, first.code));
  return agreed ? withErrors(first, errors) : new QuorumError(name, inFavour, members, errors);
}

/** Adds the errors of a group's members to the error that stands for all of them. */
export function withErrors<E extends LockError>(error: E, errors: unknown[]): E {
  Object.defineProperty(error, "errors", { value: errors, configurable: true });
  return error;
}
