/** Tells of calls and holds by events and diagnostics channels: a wait, a grant, the end of a hold, a long hold. */
import type { CallSite } from "../base/call-site.js";
import { type HoldContext, holdChannel, isHeard } from "../base/channels.js";
import type { LockEvent } from "../base/events.js";
import { trace } from "../base/trace.js";
import { type Backend, eventOf } from "./backend.js";
import type { Env } from "./env.js";
import type { HoldRecord } from "./hold-record.js";
import { emitLoss, wireIdOf } from "./loss.js";
import type { Grant, OwnerLock } from "./owner-lock.js";

/** Tells that a call waits, under the wire id of its owner's live holds, or else under that of this number. */
export function tellWaiting(own: OwnerLock, backend: Backend, number: number): void {
  const { env } = own.table;
  const { events } = env;
  const ownerId = wireIdOf(own) ?? env.wireId(number);
  trace('lock "%s": %s waits', backend.lockName, ownerId);
  if (events.heard("waiting")) events.emit("waiting", { ...eventOf(backend), ownerId });
}

/** Tells of a grant, just before its call resolves. The call was made at `callSite`, `waited` milliseconds ago. */
export function tellGrant(
  env: Env,
  backend: Backend,
  grant: Grant,
  waited: number,
  callSite: CallSite | undefined,
): void {
  const { events, settings } = env;
  grant.announced = true;
  if (callSite && settings.traceHolds) grant.callSite = callSite;
  events.tellGrant(backend, grant, waited, grant.nested ?? false);
  if (grant.loss) emitLoss(grant, grant.loss.reason, 0);
  follow(env, backend, grant);
}

/** From now on, subscribers of the channel hear of the end of the hold, and listeners of `longHold` if it lasts long. */
export function follow(env: Env, about: Pick<LockEvent, "lockName" | "kind">, record: HoldRecord): void {
  env.longHolds?.watch(record, about);
  if (isHeard(holdChannel)) publish(env.clientId, about, record);
}

function publish(
  clientId: string,
  { lockName, kind }: Pick<LockEvent, "lockName" | "kind">,
  record: HoldRecord,
): void {
  const context: HoldContext = { clientId, lockName, kind, ownerId: record.ownerId };
  holdChannel.start.publish(context);
  holdChannel.end.publish(context);
  record.whenEnded(() => {
    context.outcome = record.loss ? "lost" : "released";
    if (record.loss) {
      context.error = record.loss;
      holdChannel.error.publish(context);
    }
    holdChannel.asyncStart.publish(context);
    holdChannel.asyncEnd.publish(context);
  });
}
