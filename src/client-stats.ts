/** The figures of a client: what was counted, and what its parts have now. */
import type { LockClientStats } from "./base/figures.js";
import type { Now } from "./base/now.js";
import type { ClientParts } from "./client-parts.js";

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
export function nowOf({ env, permits }: ClientParts): Now {
  const holds = env.live.all().flatMap(({ holds, kind }) => holds.map(() => kind.about));
  const kept = permits.live.all().map(({ number }) => number.about);
  return { held: [...holds, ...kept], waiting: env.sites.waiting.map(({ wanted }) => wanted.about) };
}
