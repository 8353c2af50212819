/**
 * Time as this library sees it. Owns the two clocks, injected so that tests can run in virtual time.
 */
import {
  clearImmediate,
  clearTimeout,
  LONGEST_TIMER,
  monotonic,
  setImmediate,
  setTimeout,
  wallTime,
} from "./platform.js";

/** A moment on both clocks. */
export interface Instant {
  readonly mono: number;
  readonly wall: number;
}

export interface Clock {
  /** Milliseconds that never step back, but stand still while the machine sleeps. */
  mono(): number;
  /** Epoch milliseconds. */
  wall(): number;
  /**
   * Calls back once after `ms` (of any size; below 0 counts as 0), without keeping the process alive. Returns a
   * function that cancels the call.
   */
  after(ms: number, callback: () => void): () => void;
}

export function instant(clock: Clock): Instant {
  return { mono: clock.mono(), wall: clock.wall() };
}

/**
 * Milliseconds since `start`: the larger of what the two clocks say. The monotonic clock stands still while the machine
 * sleeps, and the wall clock can step back. If too little time seemed to have passed, a hold would seem to last beyond
 * its lease, and the lock could have two holders.
 */
export function elapsedSince(clock: Clock, start: Instant): number {
  return elapsed(start, instant(clock));
}

/** As {@link elapsedSince}, for a caller that has read both clocks already. */
export function elapsed(start: Instant, now: Instant): number {
  return Math.max(now.mono - start.mono, now.wall - start.wall);
}

/**
 * Milliseconds since `start`: the smaller of what the two clocks say, because the wall clock can be set forward. If too
 * much time seemed to have passed, a command could be run after its deadline.
 */
export function leastElapsedSince(clock: Clock, start: Instant): number {
  return Math.min(clock.mono() - start.mono, clock.wall() - start.wall);
}

/**
 * A timer that is so many milliseconds late shows that the event loop stalled: answers that arrived meanwhile are then
 * read before its callback runs.
 */
const STALL = 10;

export const systemClock: Clock = {
  mono: monotonic,
  wall: wallTime,
  after(time, callback) {
    // Node warns of a negative delay.
    const ms = Math.max(0, time);
    if (ms <= LONGEST_TIMER) {
      const due = monotonic() + ms;
      let immediate: NodeJS.Immediate | undefined;
      const timer = setTimeout(() => {
        if (monotonic() - due < STALL) callback();
        else immediate = setImmediate(callback);
      }, ms);
      timer.unref();
      return () => {
        clearTimeout(timer);
        if (immediate) clearImmediate(immediate);
      };
    }
    let cancel = systemClock.after(LONGEST_TIMER, () => {
      cancel = systemClock.after(ms - LONGEST_TIMER, callback);
    });
    return () => cancel();
  },
};
