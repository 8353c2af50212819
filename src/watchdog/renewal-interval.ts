/** How often what is renewed is renewed. */

/** Renewals come this often in a lease. */
const RENEWALS = 3;
/** Parts of the time between two renewals after which a failed one is tried again. */
const RETRIES = 10;

/** Milliseconds from one renewal of a lease to the next. */
export function renewalInterval(lease: number): number {
  return lease / RENEWALS;
}

/** Milliseconds from a renewal that failed to the next try. */
export function retryInterval(lease: number): number {
  return renewalInterval(lease) / RETRIES;
}
