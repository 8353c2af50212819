/** The command of a grant that goes on: it raises the TTL, notes the counts, or ends the write side. */
import type { Instant } from "../base/clock.js";
import { LockLostError } from "../base/errors.js";
import type { Downgrading, Kind } from "../kinds/kind.js";
import type { Grant } from "./grant.js";

/**
 * Is sent at `sent`. `lease`: milliseconds to grant; without it the TTL stays. `isDowngrade`: it ends the write side.
 * @throws LOCK_LOST if the grant turns out to be gone, UNAVAILABLE without an answer
 */
export function keep(grant: Grant, sent: Instant, lease?: number, isDowngrade = false): Promise<void> {
  const { env, kind, lockName, clock, term } = grant;
  const { runner } = env;
  const request = () => {
    const { wireId, reads } = grant;
    // A TTL is never lowered, so the least lease changes nothing.
    if (!isDowngrade) return kind.keep(wireId, grant, lease ?? 1);
    const left = Math.max(1, Math.ceil(grant.remaining));
    return (kind as Kind & Downgrading).downgrade(wireId, Math.max(1, reads), left);
  };
  const read = (reply: unknown, now: Instant) => {
    const found = Number(Array.isArray(reply) ? reply.at(-1) : reply);
    grant.check(now);
    const isFound = grant.has(found);
    if (!isFound && grant.state === "held") throw grant.gone(found);
    if (isFound && lease !== undefined) grant.raise(sent, lease, term);
    if (isFound && grant.state !== "over") return undefined;
    // Its own END was executed first: that one's answer counts.
    if (grant.end) return grant.end.again();
    throw grant.loss ?? new LockLostError(lockName, "expired", clock.wall());
  };
  if (!isDowngrade) return runner.callUntilAnswered(lockName, request, read, 0, sent);
  // It is sent until it is answered, for other readers wait for it.
  return runner.withTimeout(lockName, runner.callUntilAnswered(lockName, request, read));
}
