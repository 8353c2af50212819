/** What a lease means in time: how often the client renews it, and when a hold with this lease ends locally. */

/** How many renewal intervals a lease has. */
const RENEWALS = 3;
/** A failed renewal is tried again after this part (one tenth) of the renewal interval. */
const RETRIES = 10;
/**
 * Milliseconds taken off each local deadline in addition to the drift: timers and PTTL are exact to about a
 * millisecond.
 */
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
 * Milliseconds to the local deadline of a lease whose command was sent `elapsed` milliseconds ago; not below 0. The
 * local deadline comes before the server's, whatever the clocks do.
 */
export function untilDeadline(lease: number, drift: number, elapsed: number): number {
  return Math.max(0, lease * (1 - drift) - MARGIN - elapsed);
}
