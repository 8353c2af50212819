/** Loses the holds of one owner on one lock: by the clock, the server's word, force, or the end of the client. */
import { type Instant, instant } from "../base/clock.js";
import { isLockError, type LockLostError, type LossReason } from "../base/errors.js";
import { trace } from "../base/trace.js";
import { noop, quietly } from "../base/work.js";
import { outside } from "../owners/context.js";
import { type Backend, eventOf, NOTHING_LEFT, type Rest, type Side, TAKEN } from "./backend.js";
import { changed, inOrder, letGo, once } from "./commands.js";
import { anyLive, holdsOf, keepHolds, liveHolds, restOf } from "./holds.js";
import type { Grant, OwnerLock } from "./owner-lock.js";
import { endWireId } from "./undo.js";

/** Loses every hold whose local deadline has passed. */
export function dropExpired(own: OwnerLock): void {
  let now: Instant | undefined;
  let expired: Grant[] | undefined;
  for (let grant = own.firstHold; grant; grant = grant.next) {
    if (grant.state !== "live") continue;
    now ??= instant(own.table.env.clock);
    if (grant.remainingAt(now) > 0) continue;
    expired ??= [];
    expired.push(grant);
  }
  if (expired) drop(own, expired, undefined);
}

/** Whether the owner has a live hold, so that a further call re-enters. */
export function holds(own: OwnerLock): boolean {
  dropExpired(own);
  return anyLive(own);
}

/** The wire id under which the owner's live holds stand in Redis; undefined without a live hold. */
export function wireIdOf(own: OwnerLock | undefined): string | undefined {
  return own && holds(own) ? own.firstHold?.wireId : undefined;
}

/** Loses holds by a decision of this process. Whatever the server still has of them is given back in the background. */
function drop(own: OwnerLock, grants: readonly Grant[], reason: LossReason | undefined): void {
  const wireId = own.firstHold?.wireId as string;
  for (const grant of grants) {
    const isUnheard = grant.renewed && (own.troubles?.suspended || own.renewing > 0);
    lose(grant, reason ?? (isUnheard ? "unreachable" : "expired"));
  }
  forgetLost(own);
  for (const backend of new Map(grants.map(({ backend }) => [backend.side, backend])).values()) {
    const giveBack = (rest: () => Rest) =>
      letGo(own, backend, wireId, rest().left, { rest, onSilence: noop });
    // With no hold left the wire id is over, so the release need not wait for other commands. A hold that the owner takes
    // meanwhile has another wire id.
    const release = own.firstHold
      ? dropInOrder(own, () => giveBack(() => restOf(own, backend)))
      : giveBack(() => NOTHING_LEFT);
    own.table.env.settle(release);
  }
}

/** The release counts in the owner's `drops` until it begins. */
function dropInOrder(own: OwnerLock, giveBack: () => Promise<number>): Promise<number> {
  own.drops = (own.drops ?? 0) + 1;
  return inOrder(own, () => {
    own.drops = (own.drops ?? 0) - 1;
    return giveBack();
  });
}

/**
 * The server does not know the owner any more, on `side` or on any: every live hold there is lost. A hold on its way
 * back learns that from the answer to its release.
 */
export function loseAll(own: OwnerLock, reason: LossReason, side?: Side): void {
  const lost = liveHolds(own).filter((grant) => side === undefined || grant.side === side);
  for (const grant of lost) lose(grant, reason);
  forgetLost(own);
  // No release is sent, so no other command leaves the tombstone that refuses a late copy of the acquire.
  if (!own.troubles?.resent || own.firstHold) return;
  for (const { backend, wireId } of lost) void endWireId(own, backend, wireId);
}

function forgetLost(own: OwnerLock): void {
  keepHolds(own, (grant) => grant.state !== "lost");
  changed(own);
}

export function lose(grant: Grant, reason: LossReason): LockLostError {
  if (grant.loss) return grant.loss;
  const { heldFor } = grant;
  const loss = grant.lose(reason);
  trace('lock "%s": lost by %s, %s', grant.lockName, grant, reason);
  outside(() => grant.tellLoss());
  // Else it is told right behind the grant.
  if (grant.announced) emitLoss(grant, reason, heldFor);
  return loss;
}

/** Sends the event of a hold that was lost after `held` milliseconds. */
export function emitLoss({ backend, own, wireId }: Grant, reason: LossReason, held: number): void {
  own.table.env.events.emit("lost", { ...eventOf(backend), ownerId: wireId, reason, held });
}

/** Why the server says that the owner has no hold, on a side or on any. */
export function whyNotHeld(own: OwnerLock, word: number, side: Side | undefined): LossReason {
  const forced = own.troubles?.forced;
  if (forced && (side === undefined || forced.includes(side))) return "forced";
  // The key may exist because the owner has a hold on the other side.
  const hasOther = side !== undefined && liveHolds(own).some((grant) => grant.side !== side);
  return word === TAKEN && !hasOther ? "taken" : "expired";
}

// What happens to the whole lock or the whole client

/** The owner's wire id, if it has a live hold on this side of the lock. */
export function wireIdOn(own: OwnerLock, backend: Backend): string | undefined {
  return holdOn(own, backend)?.wireId;
}

function holdOn(own: OwnerLock, backend: Backend): Grant | undefined {
  return liveHolds(own).find((grant) => isOn(grant, backend));
}

function isOn(grant: Grant, { key, side }: Backend): boolean {
  return grant.backend.key === key && grant.side === side;
}

/** This client gave the lock back by force while the owner held it under this wire id. */
export function loseByForce(own: OwnerLock, backend: Backend, wireId: string): void {
  if (wireIdOn(own, backend) !== wireId) return;
  loseAll(own, "forced", backend.side);
  if (backend.side === "read") own.table.env.settle(shortenToWrites(own));
}

/** The server took the read holds of a writer but left the lock their TTL: it gets that of the holds left. */
function shortenToWrites(own: OwnerLock): Promise<void> {
  return inOrder(own, async () => {
    const write = liveHolds(own).find(({ side }) => side === "write");
    if (!write) return;
    const { backend, wireId } = write;
    const callId = own.table.env.callId(wireId);
    await once(own, backend, callId, () => backend.extend(wireId, callId, restOf(own, backend)));
  });
}

/**
 * A client of this process gave back by force this side of a lock of the same key, perhaps on another server. Resolves
 * when the owner's own server has told whether it was this lock, or has not answered in time. After a silence, the server
 * is asked again when it next answers.
 */
export async function askWhetherForced(own: OwnerLock, forced: Backend): Promise<void> {
  if (![...holdsOf(own)].some((grant) => isOn(grant, forced))) return;
  const { side, key } = forced;
  suspect(own, side);
  const asked = inOrder(own, async () => {
    const grant = holdOn(own, forced);
    const state = await grant?.backend.state(grant.wireId);
    if (grant && state?.count === 0) loseByForce(own, forced, grant.wireId);
  });
  try {
    await asked;
    await returned(own, forced);
  } catch (error) {
    const { servers } = own.table.env.runner;
    // By then that side may have been given back, and nothing is left to be asked about.
    const again = () => (holdOn(own, forced) ? void askWhetherForced(own, forced) : unsuspect(own, side));
    if (isLockError(error, "UNAVAILABLE")) return void servers.healthOf(key).onAnswer(again);
  }
  unsuspect(own, side);
}

/**
 * Resolves when the holds on this side that are on their way back have been answered: the force may have ended a group, and
 * the group's other holds learn from these answers that they were forced, too.
 */
async function returned(own: OwnerLock, forced: Backend): Promise<void> {
  const onTheirWay = [...holdsOf(own)].filter((grant) => grant.state === "ended" && isOn(grant, forced));
  await Promise.all(onTheirWay.map(({ outcome }) => quietly(outcome ?? Promise.resolve())));
}

/** From now on, force by this process is the likely cause if the holds on this side are gone. */
export function suspect(own: OwnerLock, side: Side): void {
  own.troubles = { ...own.troubles, forced: [...otherSuspects(own, side), side] };
}

/** Ends {@link suspect}, once the commands under way have been answered. */
export function unsuspect(own: OwnerLock, side: Side): void {
  const done = () => clear(own, side);
  if (own.lastCommand) own.lastCommand.then(done, done);
  else done();
}

function clear(own: OwnerLock, side: Side): void {
  if (own.troubles) own.troubles = { ...own.troubles, forced: otherSuspects(own, side) };
}

function otherSuspects(own: OwnerLock, side: Side): readonly Side[] {
  return own.troubles?.forced?.filter((other) => other !== side) ?? [];
}

/** Loses all holds of the owner and gives them back, for a reason that concerns the whole client. */
export function loseWithClient(own: OwnerLock, reason: LossReason): void {
  const live = liveHolds(own);
  if (live.length > 0) drop(own, live, reason);
}
