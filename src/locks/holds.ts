/** The list of holds that one owner has on one lock, and the time that a command leaves to each of them. */
import { type Instant, instant } from "../base/clock.js";
import { type Backend, NOTHING_LEFT, type Rest, type Side } from "./backend.js";
import type { Grant, OpenCall, OwnerLock } from "./owner-lock.js";

/** All holds in the order of their grants, also those on their way back. */
export function* holdsOf(own: OwnerLock): IterableIterator<Grant> {
  for (let grant = own.firstHold; grant; grant = grant.next) yield grant;
}

/** Holds that are neither lost nor on their way back. */
export function liveHolds(own: OwnerLock): Grant[] {
  const live: Grant[] = [];
  for (let grant = own.firstHold; grant; grant = grant.next) if (grant.state === "live") live.push(grant);
  return live;
}

export function anyLive(own: OwnerLock): boolean {
  for (let grant = own.firstHold; grant; grant = grant.next) if (grant.state === "live") return true;
  return false;
}

/** Whether the owner has another live hold of the lock. */
export function hasAnother(own: OwnerLock, grant: Grant): boolean {
  for (let other = own.firstHold; other; other = other.next) {
    if (other.state === "live" && other !== grant) return true;
  }
  return false;
}

/** The innermost live hold on this side. */
export function innermostOn(own: OwnerLock, side: Side): Grant | undefined {
  let innermost: Grant | undefined;
  for (let grant = own.firstHold; grant; grant = grant.next) {
    if (grant.isHeld && grant.side === side) innermost = grant;
  }
  return innermost;
}

/** The outermost live hold that stands under this field. */
export function holdUnder(own: OwnerLock, field: string): Grant | undefined {
  for (let grant = own.firstHold; grant; grant = grant.next) {
    if (grant.state === "live" && grant.field === field) return grant;
  }
  return undefined;
}

/** How many holds are on a side, also those on their way back. */
export function countOn(own: OwnerLock, side: Side): number {
  let count = 0;
  for (let grant = own.firstHold; grant; grant = grant.next) if (grant.side === side) count++;
  return count;
}

export function isKnown(own: OwnerLock, grant: Grant): boolean {
  for (let other = own.firstHold; other; other = other.next) if (other === grant) return true;
  return false;
}

/** A hold was granted. `resent`: its acquire may arrive once more; `isBare`: `lock.unlock()` gives it back. */
export function addHold(grant: Grant, resent: boolean, isBare: boolean): void {
  const { own } = grant;
  if (isBare) pushOpen(own, grant);
  let last = own.firstHold;
  if (!last) {
    if (resent || own.troubles) own.troubles = resent ? { resent } : undefined;
    own.firstHold = grant;
    return;
  }
  while (last.next) last = last.next;
  last.next = grant;
}

/** Removes the holds that are not wanted from the list. */
export function keepHolds(own: OwnerLock, wanted: (grant: Grant) => boolean): void {
  let last: Grant | undefined;
  for (let grant = own.firstHold; grant; grant = grant.next) {
    if (wanted(grant)) last = grant;
    else if (last) last.next = grant.next;
    else own.firstHold = grant.next;
  }
  if (!own.firstHold && own.unsure) own.unsure = undefined;
}

// Holds that `lock.unlock()` gives back

export function pushOpen(own: OwnerLock, grant: Grant): void {
  grant.below = own.openHold;
  own.openHold = grant;
}

export function removeOpen(own: OwnerLock, grant: Grant): void {
  if (own.openHold === grant) own.openHold = grant.below;
  else {
    let above = own.openHold;
    while (above && above.below !== grant) above = above.below;
    if (above) above.below = grant.below;
  }
  grant.below = undefined;
}

/** Whether a live hold that `lock()` or `tryLock()` took is on this side of the lock. */
export function hasOpenHold(own: OwnerLock, { key, side }: Backend): boolean {
  for (let grant = own.openHold; grant; grant = grant.below) {
    if (grant.isHeld && grant.backend.key === key && grant.side === side) return true;
  }
  return false;
}

// Calls that want a hold

/** The call is under way. */
export function openCall(own: OwnerLock, call: OpenCall): void {
  if (!own.calls) {
    own.calls = new Set();
    own.held = anyLive(own);
  }
  own.calls.add(call);
}

// What a command leaves

/** All holds but `without`, as a command on this side must leave them. */
export function restOf(own: OwnerLock, backend: Backend, without?: Grant): Rest {
  if (own.firstHold === without && !without?.next) return NOTHING_LEFT;
  return terms(own, backend, (grant, now) => (grant === without ? undefined : leftOf(own, grant, now)));
}

/** All holds, with `term` milliseconds for `extended`, and at least its present time for each other hold. */
export function extendedRest(own: OwnerLock, extended: Grant, term: number): Rest {
  return terms(own, extended.backend, (grant, now) => (grant === extended ? term : leftOf(own, grant, now)));
}

/**
 * Milliseconds that a command leaves to a hold. A hold that is renewed gets its full lease, because a renewal may have
 * been executed whose answer is on its way:
 *   server   executes the renewal
 *   server   executes this command, which cuts the TTL
 *   client   gets the renewal's answer, and believes in more time than the key has: another owner could get in
 */
function leftOf(own: OwnerLock, grant: Grant, now: Instant): number {
  const { watchdogTimeout } = own.table.env.settings;
  const serverLeft = grant.serverLeftAt(now);
  return grant.renewed && serverLeft > 0 ? Math.max(serverLeft, watchdogTimeout) : serverLeft;
}

function terms(
  own: OwnerLock,
  { side }: Backend,
  termOf: (grant: Grant, now: Instant) => number | undefined,
): Rest {
  const rest: number[] = [];
  const now = instant(own.table.env.clock);
  let left = 0;
  for (let grant = own.firstHold; grant; grant = grant.next) {
    const term = termOf(grant, now);
    if (term === undefined) continue;
    if (grant.side === side) rest.push(term);
    left = Math.max(left, term);
  }
  return { terms: rest, left };
}
