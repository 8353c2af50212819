/** Gives holds back and moves their deadlines. */
import { elapsedSince, type Instant, instant } from "../base/clock.js";
import { isLockError, LockNotOwnerError } from "../base/errors.js";
import { trace } from "../base/trace.js";
import { noop, quietly } from "../base/work.js";
import { type Backend, DONE, type Side, TOMBSTONE_TTL } from "./backend.js";
import { changed, commandDone, inOrder, letGo, once, queueCommand } from "./commands.js";
import { type ChooseSuccessor, concludeHandoff, handoffOf, NO_HANDOFF } from "./handoff.js";
import { extendedRest, isKnown, keepHolds, pushOpen, removeOpen, restOf } from "./holds.js";
import { dropExpired, lose, loseAll, whyNotHeld } from "./loss.js";
import { forgetIfIdle, type Grant, type OwnerLock } from "./owner-lock.js";

/**
 * Gives a hold back. A second call shares the first one's outcome; after UNAVAILABLE the work goes on, and a further call
 * asks again. `choose`: picks the successor, in place of the lock's own queue.
 */
export function release(grant: Grant, choose?: ChooseSuccessor): Promise<void> {
  const { own } = grant;
  const { env } = own.table;
  dropExpired(own);
  if (grant.outcome) return env.runner.withTimeout(grant.lockName, grant.outcome);
  removeOpen(own, grant);
  if (grant.state !== "lost") return startRelease(grant, choose);
  grant.outcome = reportLoss(grant);
  env.settle(grant.outcome);
  return grant.outcome;
}

/**
 * Gives back the innermost hold that `lock()` or `tryLock()` took on this side; undefined if there is none.
 * @throws NOT_OWNER if such a call is still under way: unlock() never waits for a lock() that was not awaited
 */
export function releaseInnermost(own: OwnerLock, { lockName, side }: Backend): Promise<void> | undefined {
  let grant = own.openHold;
  while (grant && grant.side !== side) grant = grant.below;
  if (grant) return takeBack(grant);
  if (!isWanted(own, side)) return undefined;
  const message = `lock "${lockName}": a lock() or tryLock() of this owner is still under way; await it before unlock()`;
  return Promise.reject(new LockNotOwnerError(lockName, message));
}

function isWanted(own: OwnerLock, side: Side): boolean {
  for (const call of own.calls ?? []) {
    if (call.isBare && call.backend.side === side) return true;
  }
  return false;
}

/**
 * Sets a hold's deadline to `lease` ms from now; a renewed hold keeps at least the watchdog's lease.
 * @throws LOCK_LOST if it is lost, NOT_OWNER if it was given back before this call
 */
export async function extend(grant: Grant, lease: number): Promise<void> {
  const { own } = grant;
  dropExpired(own);
  grant.assertUsable();
  const work = inOrder(own, () => setTerm(grant, lease));
  return own.table.env.runner.withTimeout(grant.lockName, work);
}

/** Ends the renewals: from now on the hold has `lease` milliseconds. */
export function limit(grant: Grant, lease: number): Promise<void> {
  grant.renewed = false;
  return extend(grant, lease);
}

function takeBack(grant: Grant): Promise<void> {
  const { own } = grant;
  // At a second call the hold is still among the open holds.
  const isAgain = grant.outcome !== undefined;
  grant.takenBack = true;
  return release(grant).catch((error: unknown) => {
    if (!isAgain && isLockError(error, "UNAVAILABLE") && grant.outcome && isKnown(own, grant)) {
      // The release goes on in the background; until it is done a further unlock() finds this hold again.
      pushOpen(own, grant);
      void quietly(grant.outcome).then(() => {
        removeOpen(own, grant);
        forgetIfIdle(own);
      });
    }
    throw error;
  });
}

/** Resolves as the outcome does, or rejects UNAVAILABLE as soon as the release got no answer in time. */
function startRelease(grant: Grant, choose: ChooseSuccessor | undefined): Promise<void> {
  const { own } = grant;
  const { env } = own.table;
  grant.end();
  // Before the release is sent, so that no renewal follows it.
  changed(own);
  const isQueued = own.lastCommand !== undefined || own.unsure !== undefined;
  let onSilence = noop;
  env.workBegun();
  grant.outcome = queueCommand(own, () => giveBack(grant, () => onSilence(), choose));
  // Behind an unanswered command the release is not even sent, so the command would never tell of its silence.
  if (isQueued) return env.runner.withTimeout(grant.lockName, grant.outcome);
  return new Promise((resolve, reject) => {
    onSilence = () => reject(env.runner.unavailable(grant.lockName));
    grant.outcome?.then(resolve, reject);
  });
}

/** A close of the client was told by the hold's signal already, so its unlock resolves. */
async function reportLoss(grant: Grant): Promise<void> {
  changed(grant.own);
  if (grant.loss && grant.loss.reason !== "closed") throw grant.loss;
}

function giveBack(grant: Grant, onSilence: () => void, choose?: ChooseSuccessor): Promise<void> {
  const { own, backend, wireId } = grant;
  const { env } = own.table;
  const begun = instant(env.clock);
  const rest = () => restOf(own, backend, grant);
  const { left } = rest();
  const handoff = left === 0 ? handoffOf(env, backend, choose) : NO_HANDOFF;
  const { successor } = handoff;
  const silence = () => {
    onSilence();
    successor?.silent();
  };
  const done = (lost = false) => {
    keepHolds(own, (other) => other !== grant);
    changed(own);
    concludeHandoff(env, handoff, lost);
    commandDone(own, grant.outcome);
    env.workDone();
  };
  return letGo(own, backend, wireId, left, { rest, onSilence: silence, successor }).then(
    (word) => {
      try {
        confirm(grant, word, begun, left);
      } finally {
        done(word !== DONE);
      }
    },
    (error: unknown) => {
      done();
      throw error;
    },
  );
}

/** The server answered a release that was sent at `begun`; the owner's other holds last `left` more milliseconds. */
function confirm(grant: Grant, word: number, begun: Instant, left: number): void {
  const { own } = grant;
  const { clock, events } = own.table.env;
  // The command ran, its answer was lost, its tombstone (or the last hold) lapsed, and the second run found nothing.
  const isLate = () =>
    elapsedSince(clock, begun) > (left > 0 ? Math.min(left, TOMBSTONE_TTL) : TOMBSTONE_TTL);
  if (word !== DONE && !isLate()) throw loseHere(grant, word);
  trace('lock "%s": given back by %s', grant.lockName, grant);
  if (grant.announced) events.tellRelease(grant.backend, grant);
  // After a stall replies are handled before timers: other holds may have expired, and are given back now.
  dropExpired(own);
}

/** The server says that the owner holds nothing on this side. */
function loseHere(grant: Grant, word: number): Error {
  const { own, side } = grant;
  const reason = whyNotHeld(own, word, side);
  loseAll(own, reason, side);
  return lose(grant, reason);
}

async function setTerm(grant: Grant, lease: number): Promise<void> {
  const { own, backend, wireId } = grant;
  const { env } = own.table;
  dropExpired(own);
  if (grant.loss) throw grant.loss;
  const term = grant.renewed ? Math.max(lease, env.settings.watchdogTimeout) : lease;
  const sent = instant(env.clock);
  // If the outcome stays unknown, only the earlier of the two deadlines is sure.
  grant.lowerTerm(sent, term);
  changed(own);
  const callId = env.callId(wireId);
  const word = await once(own, backend, callId, async () => {
    // The hold may have been lost while earlier commands were settled.
    if (grant.loss) throw grant.loss;
    return backend.extend(wireId, callId, extendedRest(own, grant, term));
  });
  if (word !== DONE) throw loseHere(grant, word);
  dropExpired(own);
  // An unlock() that was called meanwhile came later, so it is no reason to fail.
  if (grant.loss) throw grant.loss;
  grant.setTerm(sent, term);
  changed(own);
}
