/** What a lease means in time: how often it is renewed, and when what was granted for it ends here. */

/** Renewals come this often in a lease. */
const RENEWALS = 3;
/** Parts of the time between two renewals after which a failed one is tried again. */
const RETRIES = 10;
/** Taken off each local deadline besides the drift: timers and PTTL are exact to a millisecond or so. */
const MARGIN = 2;

/** Milliseconds from one renewal of a lease to the next. */
export function renewalInterval(lease: number): number {
  return lease / RENEWALS;
}

/** Milliseconds from a renewal that failed to the next try. */
export function retryInterval(lease: number): number {
  return renewalInterval(lease) / RETRIES;
}

/**
 * Milliseconds to the local deadline of a lease whose command was sent `elapsed` milliseconds ago; not below 0. It lies before
 * the server's, whatever the clocks do.
 */
export function untilDeadline(lease: number, drift: number, elapsed: number): number {
  return Math.max(0, lease * (1 - drift) - MARGIN - elapsed);
}

/** The drift with which the local deadline of a lease comes `ms` after its command was sent. */
export function driftThatLeaves(lease: number, ms: number): number {
  return 1 - (ms + MARGIN) / lease;
}
