/**
 * Node's timers and clocks, taken once at import; the rest of the library uses no others (`.oxlintrc.json` sees to
 * it).
 *
 * Test frameworks replace the global ones by fakes that stand still until a test moves them. But leases in Redis run by
 * real time, and a socket whose write waits for a fake `nextTick` would hang for the whole program.
 */
import { performance } from "node:perf_hooks";
import timers from "node:timers";
import { runInThisContext } from "node:vm";

/**
 * Jest gives modules globals of their own, which may be fakes before this module is loaded, and its own `process` however they
 * ask for it. These are Node's.
 */
const node: Pick<typeof globalThis, "process" | "Date"> = runInThisContext("({ process, Date })");

const settled = Promise.resolve();

export const nextTick: (callback: () => void) => void = node.process.nextTick.bind(node.process);
export const setTimeout: typeof timers.setTimeout = timers.setTimeout;
export const clearTimeout: typeof timers.clearTimeout = timers.clearTimeout;
export const setInterval: typeof timers.setInterval = timers.setInterval;
export const clearInterval: typeof timers.clearInterval = timers.clearInterval;
export const setImmediate: typeof timers.setImmediate = timers.setImmediate;
export const clearImmediate: typeof timers.clearImmediate = timers.clearImmediate;

/** The longest delay of setTimeout in milliseconds: with a longer one it fires at once. */
export const LONGEST_TIMER: number = 2 ** 31 - 1;

/** Does what `queueMicrotask` does, which Node has as a global only. The callback must not throw. */
export function microtask(callback: () => void): void {
  void settled.then(callback);
}

/** Milliseconds that never step back, but stand still while the machine sleeps. */
export const monotonic: () => number = performance.now.bind(performance);

/** Epoch milliseconds. */
export const wallTime: () => number = node.Date.now;

/** A moment for people, in epoch milliseconds. */
export const dateOf = (ms: number): Date => new Date(ms);
