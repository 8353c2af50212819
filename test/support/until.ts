/**
 * Waits for something observable, instead of sleeping for a guessed time.
 */
import { PATIENCE } from "./patience.js";

export interface UntilOptions {
  /** Milliseconds after which the wait fails. Default {@link PATIENCE}. */
  readonly timeout?: number;
  /** Milliseconds between two looks. Default 5. */
  readonly every?: number;
}

const TIMED_OUT = Symbol("timed out");

/**
 * Calls `predicate` until it returns something truthy, and resolves with that. It calls again after a throw, because a
 * server that is still starting throws too. If the wait fails, the last error is its `cause`. The time-out also ends a
 * call that never settles.
 */
export async function until<T>(
  what: string,
  predicate: () => T | Promise<T>,
  { timeout = PATIENCE, every = 5 }: UntilOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeout;
  let last: unknown;
  let failure: unknown;
  for (;;) {
    try {
      const seen = await withinTime(predicate, deadline - performance.now());
      if (seen === TIMED_OUT) break;
      if (seen) return seen;
      last = seen;
      failure = undefined;
    } catch (error) {
      failure = error;
    }
    if (performance.now() + every > deadline) break;
    await new Promise((resolve) => setTimeout(resolve, every));
  }
  const detail = failure instanceof Error ? failure.message : `last seen: ${String(last)}`;
  throw new Error(`not within ${timeout} ms: ${what} (${detail})`, { cause: failure });
}

async function withinTime<T>(predicate: () => T | Promise<T>, ms: number): Promise<T | typeof TIMED_OUT> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<typeof TIMED_OUT>((resolve) => {
    timer = setTimeout(() => resolve(TIMED_OUT), Math.max(0, ms));
  });
  try {
    return await Promise.race([predicate(), expiry]);
  } finally {
    clearTimeout(timer);
  }
}
