/**
 * The lease of a group begins with the last member's grant. A long one is asked for with each member all the same, which
 * saves a command for each: it is set anew only if too much of it has passed by then.
 */
import type { Instant } from "../base/clock.js";
import type { Env } from "../locks/env.js";
import type { Grant } from "../locks/owner-lock.js";

/** The share of a lease that may have passed when the last member is granted, and its bound in milliseconds. */
const SHARE_OF_LEASE = 1 / 100;
const MOST_OF_LEASE = 50;
/** A lease of so many `commandTimeout`s outlives all that follows the first grant: the other tries, and setting the lease anew. */
const LONG = 3;

/** The lease that each member is taken with; undefined if the watchdog keeps the members until the last grant. */
export function leaseOfTries(lease: number | undefined, envs: readonly Env[]): number | undefined {
  // With `replicas` a grant may take longer: its WAIT is added.
  const isLong = envs.every(
    ({ settings, replicas }) => !replicas && (lease ?? 0) >= LONG * settings.commandTimeout,
  );
  return isLong ? lease : undefined;
}

/** Whether nearly all of the lease that these members were taken with is left. */
export function isWhole(lease: number | undefined, grants: readonly Grant[], now: Instant): boolean {
  if (lease === undefined) return false;
  const whole = lease - Math.min(lease * SHARE_OF_LEASE, MOST_OF_LEASE);
  return grants.every((grant) => grant.serverLeftAt(now) >= whole);
}
