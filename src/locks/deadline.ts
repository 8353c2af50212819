/** When what was granted for a lease ends here: before it ends with the server, whatever the clocks do. */
import { type Clock, elapsedSince, type Instant } from "../base/clock.js";

/** Taken off each local deadline besides the drift: timers and PTTL are exact to a millisecond or so. */
const MARGIN = 2;

/** Milliseconds to the local deadline of a lease whose command was sent at `sent`; not below 0. */
export function untilDeadline(clock: Clock, drift: number, sent: Instant, lease: number): number {
  return Math.max(0, lease * (1 - drift) - MARGIN - elapsedSince(clock, sent));
}

/** The drift with which the local deadline of a lease comes `ms` after its command was sent. */
export function driftThatLeaves(lease: number, ms: number): number {
  return 1 - (ms + MARGIN) / lease;
}
