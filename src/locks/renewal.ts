/** The watchdog's rules for locks: when an owner's holds must be renewed or have ended, and what an answer means. */
import { type Instant, instant, onMono } from "../base/clock.js";
import { renewalInterval, retryInterval } from "../base/lease.js";
import { trace } from "../base/trace.js";
import type { Renewal, RenewalRules } from "../watchdog/watchdog.js";
import { DONE, eventOf } from "./backend.js";
import { changed, turnsOf } from "./commands.js";
import { countOn, holdUnder } from "./holds.js";
import { dropExpired, loseAll, whyNotHeld } from "./loss.js";
import { type Grant, NEVER, type OwnerLock } from "./owner-lock.js";

const NOTHING: readonly Renewal<OwnerLock>[] = [];

/** A hold was granted at `now`, by a command sent at `sent`: begins its turn, and schedules its renewal and deadline. */
export function register(grant: Grant, sent: Instant, now: Instant): void {
  const { own, backend, frame, renewed } = grant;
  trace('lock "%s": granted to %s', grant.lockName, grant);
  if (frame) turnsOf(own).begin(frame, backend.traits.shared);
  if (renewed) {
    if (!own.firstHold?.next) own.renewAt = NEVER;
    renewBy(own, onMono(sent, now) + renewalInterval(own.table.env.settings.watchdogTimeout));
  }
  changed(own);
}

export const renewal: RenewalRules<OwnerLock> = {
  nextDue(own) {
    let next = Number.POSITIVE_INFINITY;
    let now: Instant | undefined;
    for (let grant = own.firstHold; grant; grant = grant.next) {
      if (grant.state !== "live") continue;
      now ??= instant(own.table.env.clock);
      next = Math.min(next, now.mono + grant.remainingAt(now));
      if (grant.renewed && own.renewing === 0 && own.renewAt !== NEVER) next = Math.min(next, own.renewAt);
    }
    return next;
  },

  due(own, now) {
    dropExpired(own);
    if (own.renewing > 0 || own.renewAt === NEVER || own.renewAt > now) return NOTHING;
    const renewals: Renewal<OwnerLock>[] = [];
    for (let grant = own.firstHold; grant; grant = grant.next) {
      if (grant.state !== "live" || !grant.renewed) continue;
      const { backend, wireId, field } = grant;
      if (renewals.some((other) => other.field === field)) continue;
      const extraKeys = backend.extraKeys(wireId, countOn(own, backend.side));
      renewals.push({ watched: own, renewer: backend.renewer, key: backend.key, field, extraKeys });
    }
    own.renewing = renewals.length;
    own.renewAt = NEVER;
    return renewals;
  },

  renewed({ watched: own, field }, word, sent) {
    // A hold past its deadline is lost, whatever the server says: after a stall, replies are handled before timers.
    dropExpired(own);
    own.renewing--;
    const { env, watchdog } = own.table;
    const first = holdUnder(own, field);
    // The holds may have been given back by now, or replaced by others.
    if (!first) return watchdog.watch(own);
    const { side } = first;
    if (word !== DONE) return loseAll(own, whyNotHeld(own, word, side), side);
    if (own.troubles) own.troubles = { ...own.troubles, suspended: false };
    raise(first, sent);
    const lease = env.settings.watchdogTimeout;
    renewBy(own, onMono(sent, instant(env.clock)) + renewalInterval(lease));
    if (env.events.heard("renewed")) {
      env.events.emit("renewed", { ...eventOf(first.backend), ownerId: first.wireId });
    } else env.events.figures.renewed();
    watchdog.watch(own);
  },

  notRenewed({ watched: own }, cause) {
    trace("a renewal got no answer");
    own.renewing--;
    const { env, watchdog } = own.table;
    renewBy(own, env.clock.mono() + retryInterval(env.settings.watchdogTimeout));
    let first = own.firstHold;
    while (first && first.state !== "live") first = first.next;
    if (first && !own.troubles?.suspended) {
      own.troubles = { ...own.troubles, suspended: true };
      env.events.emit("suspended", { ...eventOf(first.backend), ownerId: first.wireId, cause });
    }
    watchdog.watch(own);
  },

  renewedLate({ watched: own, field }, sent) {
    dropExpired(own);
    const first = holdUnder(own, field);
    if (first) raise(first, sent);
    own.table.watchdog.watch(own);
  },
};

/** The server has renewed, by a command sent at `sent`, the side of this hold: the owner's first there. */
function raise(first: Grant, sent: Instant): void {
  const lease = first.own.table.env.settings.watchdogTimeout;
  for (let grant: Grant | undefined = first; grant; grant = grant.next) {
    if (grant.state === "live" && grant.renewed && grant.side === first.side) grant.raiseTerm(sent, lease);
  }
}

/** The two sides of a read-write lock are renewed together, so the earlier time counts. */
function renewBy(own: OwnerLock, at: number): void {
  const due = Math.floor(at);
  own.renewAt = own.renewAt === NEVER ? due : Math.min(own.renewAt, due);
}
