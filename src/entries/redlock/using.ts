/** Runs a routine under a lock that is extended as long as the routine runs. */
import { clearTimeout, LONGEST_TIMER, setTimeout, wallTime } from "../../base/platform.js";
import type { Lock } from "../redlock.js";
import { ExecutionError } from "./errors.js";
import type { Settings } from "./settings.js";

/** The signal that a routine gets; `error` says why it aborted. */
export type RedlockAbortSignal = AbortSignal & {
  /** Why the lock was lost, once it is aborted. */
  error?: Error;
};

/** The function that runs under a lock. */
export type Routine<T> = (signal: RedlockAbortSignal) => T | Promise<T>;

/** A lock that is acquired, and what its use needs. */
export interface Use<T> {
  readonly lock: Lock;
  /** The signals of the lock's holds: they abort when the lock is lost. */
  readonly signals: readonly AbortSignal[];
  readonly settings: Settings;
  readonly routine: Routine<T>;
  /** Extends the lock; tries again and again as long as the lock is held and `goesOn` is true. */
  extend(lock: Lock, goesOn: () => boolean): Promise<Lock>;
}

export async function useLock<T>(use: Use<T>): Promise<T> {
  const { settings, routine } = use;
  let { lock } = use;
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
    const left = lock.expiration - wallTime() - settings.automaticExtensionThreshold;
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

  for (const each of use.signals) {
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
  const failure = await lock.redlock.release(lock, settings).then(
    () => signal.error,
    (error: unknown) => signal.error ?? error,
  );
  if ("error" in outcome) throw outcome.error;
  if (failure) throw failure;
  return outcome.value;
}
