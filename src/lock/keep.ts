/** The command of a grant that goes on: it raises the TTL, notes the counts, or ends the write side. */
import { instant } from "../base/clock.js";
import { LockLostError } from "../base/errors.js";
import type { Downgrading, Kind } from "../kinds/kind.js";
import type { Grant } from "./grant.js";

/**
 * `lease`: milliseconds to grant; without it the TTL stays. `isDowngrade`: it ends the write side.
 * @throws LOCK_LOST if the grant turns out to be gone, UNAVAILABLE without an answer
 */
export function keep(grant: Grant, lease?: number, isDowngrade = false): Promise<void> {
  const { env, kind, lockName, clock, term } = grant;
  const { runner } = env;
  const sent = instant(clock);
  const request = () => {
    const { wireId, reads, remaining } = grant;
    // A TTL is never lowered, so the least lease changes nothing.
    if (!isDowngrade) return kind.keep(wireId, grant, lease ?? 1);
    const left = Math.max(1, Math.ceil(remaining));
    return (kind as Kind & Downgrading).downgrade(wireId, Math.max(1, reads), left);
  };
  const read = (reply: unknown) => {
    const found = Number((reply as unknown[]).at(-1));
    grant.check();
    const isFound = grant.has(found);
    if (!isFound && grant.state === "held") throw grant.gone(found);
    if (isFound && lease !== undefined) grant.raise(sent, lease, term);
    if (isFound && grant.state !== "over") return undefined;
    // Its own END was executed first: that one's answer counts.
    if (grant.end) return grant.end.again();
    throw grant.loss ?? new LockLostError(lockName, "expired", clock.wall());
  };
  if (!isDowngrade) return runner.callUntilAnswered(lockName, request, read, 0);
  // It is sent until it is answered, for other readers wait for it.
  return runner.withTimeout(lockName, runner.callUntilAnswered(lockName, request, read));
}
