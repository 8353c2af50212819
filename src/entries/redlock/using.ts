/** Runs a routine under a lock that is extended as long as the routine runs. */
import { clearTimeout, LONGEST_TIMER, setTimeout, wallTime } from "../../base/platform.js";
import { ExecutionError } from "./errors.js";

/** The signal that a routine gets; `error` says why it aborted. */
export type RedlockAbortSignal = AbortSignal & {
  /** Why the lock was lost, once it is aborted. */
  error?: Error;
};

/** The function that runs under a lock. */
export type Routine<T> = (signal: RedlockAbortSignal) => T | Promise<T>;

/** Milliseconds by which a duration has to be longer than the threshold. */
const LEAST_MARGIN = 100;

/** Times are milliseconds. */
export interface Use<L, T> {
  readonly duration: number;
  readonly threshold: number;
  readonly routine: Routine<T>;
  acquire(): Promise<L>;
  /** Extends the lock; tries again and again as long as the lock is held and `goesOn` is true. */
  extend(lock: L, goesOn: () => boolean): Promise<L>;
  release(lock: L): Promise<unknown>;
  /** The signals of the lock's holds: they abort when the lock is lost. */
  signalsOf(lock: L): readonly AbortSignal[];
}

export async function useLock<L extends { readonly expiration: number }, T>(use: Use<L, T>): Promise<T> {
  const { duration, threshold, routine } = use;
  if (threshold > duration - LEAST_MARGIN) {
    throw new RangeError(
      `redlock: the duration (${duration}) must be at least ${LEAST_MARGIN} ms longer than automaticExtensionThreshold (${threshold})`,
    );
  }
  let lock = await use.acquire();
  const controller = new AbortController();
  const signal: RedlockAbortSignal = controller.signal;
  let running = true;
  let timer: NodeJS.Timeout | undefined;
  let extension: Promise<void> | undefined;

  function abort(error: Error): void {
    if (signal.aborted || !running) return;
    signal.error = error;
    controller.abort(error);
  }

  function extendLater(): void {
    const left = lock.expiration - wallTime() - threshold;
    timer = setTimeout(
      () => {
        extension = extendNow();
      },
      Math.min(Math.max(0, left), LONGEST_TIMER),
    );
  }

  async function extendNow(): Promise<void> {
    try {
      lock = await use.extend(lock, () => running);
      if (running) extendLater();
    } catch (error) {
      abort(error as Error);
    }
  }

  for (const each of use.signalsOf(lock)) {
    const lost = () =>
      abort(
        new ExecutionError("redlock: the lock was lost while its routine ran", [], { cause: each.reason }),
      );
    if (each.aborted) lost();
    else each.addEventListener("abort", lost, { once: true });
  }
  extendLater();

  let outcome: { value: T } | { error: unknown };
  try {
    outcome = { value: await routine(signal) };
  } catch (error) {
    outcome = { error };
  }
  running = false;
  clearTimeout(timer);
  // An extension that is under way must not come behind the release.
  await extension;
  const failure = await use.release(lock).then(
    () => signal.error,
    (error: unknown) => signal.error ?? error,
  );
  if ("error" in outcome) throw outcome.error;
  if (failure) throw failure;
  return outcome.value;
}
