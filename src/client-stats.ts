/** The figures of a client: what was counted, and what its parts have now. */
import type { LockClientStats } from "./base/figures.js";
import type { ClientParts } from "./client-parts.js";
import { liveHolds } from "./locks/holds.js";

export function statsOf({ env, table, permits }: ClientParts): LockClientStats {
  const { engine, events, replicas, runner } = env;
  const holds = table.live.all().reduce((count, own) => count + liveHolds(own).length, 0);
  return events.figures.snapshot({
    commands: runner.sender.sent + (replicas?.sent ?? 0),
    held: holds + permits.live.all().length,
    waiting: engine.waiting.length,
  });
}
