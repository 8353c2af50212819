/** Tells how a hold lives to those who listen for it. */
import { type HoldContext, holdChannel, isHeard } from "../base/channels.js";
import { outside } from "../base/outside.js";
import type { Env } from "../env.js";
import type { Wanted } from "../waiting/wanted.js";
import type { HoldRecord } from "./hold-record.js";

/**
 * From now on, subscribers of the channel hear of the end of the hold, and listeners of `longHold` if it lasts long.
 */
export function follow(wanted: Wanted, hold: HoldRecord): void {
  for (const env of wanted.envs) if (env.settings.warnAfter > 0) tellIfLong(env, wanted, hold);
  if (isHeard(holdChannel)) publish(wanted, hold);
}

/** Tells listeners of `longHold`, once, if the hold lasts longer than the option `warnAfter`. */
function tellIfLong({ clock, events, settings }: Env, about: Wanted, hold: HoldRecord): void {
  const tell = () => {
    const held = clock.wall() - hold.acquiredAt;
    if (hold.isHeld) events.emit("longHold", { held }, about, hold.grant);
  };
  outside(() => hold.whenEnded(clock.after(settings.warnAfter, tell)));
}

function publish({ env, lockName, kind }: Wanted, hold: HoldRecord): void {
  const context: HoldContext = { clientId: env.clientId, lockName, kind, ownerId: hold.grant.wireId };
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
