/** Tells how a hold lives to those who listen for it. */
import { type HoldContext, holdChannel, isHeard } from "../base/channels.js";
import type { LockEvent } from "../base/events.js";
import { outside } from "../base/outside.js";
import type { Env } from "../env.js";
import type { HoldRecord } from "./hold-record.js";

/**
 * From now on, subscribers of the channel hear of the end of the hold, and listeners of `longHold` if it lasts long.
 */
export function follow(env: Env, about: LockEvent, hold: HoldRecord): void {
  tellIfLong(env, about, hold);
  if (isHeard(holdChannel)) publish(env.clientId, about, hold);
}

/** Tells listeners of `longHold`, once, if the hold lasts longer than the option `warnAfter`. */
export function tellIfLong({ clock, events, settings }: Env, about: LockEvent, hold: HoldRecord): void {
  const { warnAfter } = settings;
  if (warnAfter === 0) return;
  const tell = () => {
    const held = clock.wall() - hold.acquiredAt;
    if (hold.isHeld) events.emit("longHold", { ownerId: hold.grant.wireId, held }, about);
  };
  outside(() => hold.whenEnded(clock.after(warnAfter, tell)));
}

function publish(clientId: string, { lockName, kind }: LockEvent, hold: HoldRecord): void {
  const context: HoldContext = { clientId, lockName, kind, ownerId: hold.grant.wireId };
  holdChannel.start.publish(context);
  holdChannel.end.publish(context);
  hold.whenEnded(() => {
    context.outcome = hold.loss ? "lost" : "released";
    if (hold.loss) {
      context.error = hold.loss;
      holdChannel.error.publish(context);
    }
    holdChannel.asyncStart.publish(context);
    holdChannel.asyncEnd.publish(context);
  });
}
