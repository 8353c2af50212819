/** What is told of a hold: its grant and its end, that it lasts for long, and its life on a channel. */
import type { CallSite } from "../base/call-site.js";
import { type HoldContext, holdChannel, isHeard } from "../base/channels.js";
import type { LockEvent } from "../base/events.js";
import { trace } from "../base/trace.js";
import { type Backend, eventOf } from "./backend.js";
import type { Env } from "./env.js";
import type { HoldRecord } from "./hold-record.js";
import { hasAnother } from "./holds.js";
import { wireIdOf } from "./loss.js";
import type { Grant, OwnerLock } from "./owner-lock.js";

/** A call waits from now on, for a hold under the wire id of this number unless its owner has one. */
export function tellWaiting(own: OwnerLock, backend: Backend, number: number): void {
  const { env } = own.table;
  const { events } = env;
  const ownerId = wireIdOf(own) ?? env.wireId(number);
  trace('lock "%s": %s waits', backend.lockName, ownerId);
  if (events.heard("waiting")) events.emit("waiting", { ...eventOf(backend), ownerId });
}

/** The call that was granted this is about to resolve, `waited` milliseconds after it was made, at `callSite`. */
export function tellGrant(
  env: Env,
  backend: Backend,
  grant: Grant,
  waited: number,
  callSite: CallSite | undefined,
): void {
  const { events, settings } = env;
  const nested = hasAnother(grant.own, grant);
  grant.announced = true;
  if (callSite && settings.traceHolds) grant.callSite = callSite;
  events.tellGrant(backend, grant, waited, nested);
  follow(env, backend, grant);
}

/** From now on subscribers of the channel are told of the end of a hold, and listeners of `longHold` if it lasts. */
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
