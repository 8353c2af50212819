/** The figures of a client: what was counted, and what its parts have now. */
import type { LockClientStats } from "./base/figures.js";
import type { About, Now } from "./base/now.js";
import type { ClientParts } from "./client-parts.js";
import type { Acquisition } from "./engine/acquisition.js";
import { LockAcquisition } from "./locks/acquire.js";
import { eventOf } from "./locks/backend.js";
import { liveHolds } from "./locks/holds.js";
import { Request } from "./synchronizers/request.js";

export function statsOf(parts: ClientParts): LockClientStats {
  const { events, replicas, runner } = parts.env;
  const { held, waiting } = nowOf(parts);
  return events.figures.snapshot({
    commands: runner.sender.sent + (replicas?.sent ?? 0),
    held: held.length,
    waiting: waiting.length,
  });
}

/** A hold on a group is not counted, but the holds on its members are. */
export function nowOf({ env, table, permits }: ClientParts): Now {
  const holds = table.live.all().flatMap((own) => liveHolds(own).map(({ backend }) => eventOf(backend)));
  const kept = permits.live.all().map(({ number }) => ({ lockName: number.name, kind: number.kind }));
  return { held: [...holds, ...kept], waiting: env.engine.waiting.map(aboutOf) };
}

function aboutOf(call: Acquisition<unknown>): About {
  if (call instanceof LockAcquisition) return eventOf(call.backend);
  // Otherwise the call is a RedLock's: a MultiLock waits by calls for its members.
  return { lockName: call.lockName, kind: call instanceof Request ? call.number.kind : "red" };
}
