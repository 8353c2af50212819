/** The watchdog's rules for grants: when one is to be renewed or has ended, and what an answer means. */
import { type Instant, instant, onMono } from "../base/clock.js";
import { renewalInterval, retryInterval } from "../base/lease.js";
import { trace } from "../base/trace.js";
import type { Renewal, RenewalRules } from "../watchdog/watchdog.js";
import { isDropped } from "./dropped.js";
import type { Grant } from "./grant.js";

const NEVER = Number.POSITIVE_INFINITY;

/** A command that granted or renewed was sent at `sent`: the next renewal is due a third of the lease later. */
export function renewAfter(grant: Grant, sent: Instant, now: Instant): void {
  grant.renewAt = onMono(sent, now) + renewalInterval(grant.env.settings.watchdogTimeout);
}

/** The connection is back: by a renewal each grant learns whether the server still has it. */
export function renewNow(grants: readonly Grant[]): void {
  for (const grant of grants) {
    if (!grant.isRenewed || grant.renewAt === NEVER) continue;
    grant.renewAt = grant.clock.mono();
    grant.env.watchdog.watch(grant);
  }
}

export const renewal: RenewalRules<Grant> = {
  nextDue(grant) {
    if (grant.state !== "held") return NEVER;
    return grant.isRenewed ? Math.min(grant.endsAt, grant.renewAt) : grant.endsAt;
  },

  due(grant, now) {
    grant.check();
    if (grant.state !== "held" || !grant.isRenewed || grant.renewAt > now || isDropped(grant))
      return undefined;
    const { kind, wireId, reads, term } = grant;
    grant.renewAt = NEVER;
    grant.renewing++;
    const extraKeys = kind.extraKeys(wireId, reads);
    return { watched: grant, renewer: kind.renewer, key: kind.key, field: wireId, extraKeys, term };
  },

  renewed(renewed, found, sent) {
    const { watched: grant } = renewed;
    // A grant past its deadline is lost, whatever the server says: after a stall, replies are read before timers.
    grant.check();
    grant.renewing--;
    if (grant.state !== "held") return;
    if (!grant.has(found)) return void grant.gone(found);
    grant.isSuspended = false;
    renewAfter(grant, sent, instant(grant.clock));
    raise(renewed, sent);
    const { events } = grant.env;
    if (events.heard("renewed")) events.emit("renewed", { ...grant.kind.about, ownerId: grant.wireId });
    else events.figures.count("renewals");
  },

  notRenewed({ watched: grant }, cause) {
    trace?.("a renewal got no answer");
    grant.renewing--;
    if (!grant.isHeld) return;
    const { clock, events, settings, watchdog } = grant.env;
    grant.renewAt = clock.mono() + retryInterval(settings.watchdogTimeout);
    watchdog.watch(grant);
    if (grant.isSuspended) return;
    grant.isSuspended = true;
    events.emit("suspended", { ...grant.kind.about, ownerId: grant.wireId, cause });
  },

  renewedLate(renewed, sent) {
    if (renewed.watched.isHeld) raise(renewed, sent);
  },
};

function raise({ watched: grant, term }: Renewal<Grant>, sent: Instant): void {
  grant.raise(sent, grant.env.settings.watchdogTimeout, term ?? grant.term);
}
