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
   * Calls back once after `ms` (any size; a time that is over is none), without keeping the process alive. Returns the
   * way to cancel it.
   */
  after(ms: number, callback: () => void): () => void;
}

export function instant(clock: Clock): Instant {
  return { mono: clock.mono(), wall: clock.wall() };
}

/**
 * Milliseconds since `start`, the larger of what the two clocks say: the monotonic one misses a suspend, the wall
 * clock a step back, and a lease that is believed to be longer than it is would be two holders.
 */
export function elapsedSince(clock: Clock, start: Instant): number {
  return elapsed(start, instant(clock));
}

/** As {@link elapsedSince}, for who has read the clocks. */
export function elapsed(start: Instant, now: Instant): number {
  return Math.max(now.mono - start.mono, now.wall - start.wall);
}

/**
 * Milliseconds since `start`, the smaller of what the two clocks say: the wall clock may have been set forth, and a time
 * that is believed to be later than it is would let what is too late be done.
 */
export function leastElapsedSince(clock: Clock, start: Instant): number {
  return Math.min(clock.mono() - start.mono, clock.wall() - start.wall);
}

/** An instant on the monotonic clock, earlier if the wall clock says that more time has passed since. */
export function onMono(moment: Instant, now: Instant): number {
  return now.mono - elapsed(moment, now);
}

/** Milliseconds by which a timer is late if the event loop stalled: what has arrived meanwhile is to be read first. */
const STALL = 10;

export const systemClock: Clock = {
  mono: monotonic,
  wall: wallTime,
  after(time, callback) {
    // Node warns of a negative one.
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
