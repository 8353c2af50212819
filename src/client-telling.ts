/** What a client has and waits for now, in the forms in which it tells others, and its figures. */
import type { LockClientStats, Now } from "./base/figures.js";
import type { Env } from "./env.js";
import { grantsAround } from "./owner/context.js";
import { type ClientState, MOST, type Told } from "./presence/told.js";
import type { Waiter } from "./waiting/waiter.js";

/** The most keys of what the owners of a wait hold meanwhile. */
const MOST_HELD = 100;

/** At most as much as a client may tell. */
export function stateOf(env: Env): ClientState {
  const { live, permits, sites, clock } = env;
  const grants = live.all().slice(0, MOST);
  const holds = grants.flatMap(({ holds: [first], kind: { key, kind }, wireId: ownerId }): Told[] => {
    // The owner has the lock since its first live hold, on either side.
    return first ? [{ key, kind, ownerId, since: first.acquiredAt }] : [];
  });
  const given = permits.live.all().slice(0, MOST);
  const kept = given.map(({ number: { key, kind }, id: ownerId, held }): Told => {
    return { key, kind, ownerId, since: clock.wall() - held };
  });
  const waits = sites.waiting.slice(0, MOST).flatMap((call) => waitsOf(env, call));
  return { holds: [...holds, ...kept], waits };
}

/** What one call waits for: of a group each member that is this client's. */
function waitsOf(env: Env, call: Waiter): Told[] {
  const { clock } = env;
  const since = Math.round(clock.wall() - (clock.mono() - (call.waitsSince ?? 0)));
  const ownerId = call.toldId;
  // What the call's owner, and the owners of the scopes and runs around it, hold until it ends.
  const grants = grantsAround(call.asked).filter((grant) => grant.env === env);
  const holds = [...new Set(grants.map(({ kind }) => kind.key))].slice(0, MOST_HELD);
  const parts = call.wanted.parts.filter((part) => part.env === env);
  return parts.map(({ key, kind, traits: { side } }) => {
    return { key, kind, ownerId, since, mode: side === "only" ? undefined : side, holds };
  });
}

export function statsOf(env: Env): LockClientStats {
  const { events, runner } = env;
  const { held, waiting } = nowOf(env);
  return events.figures.snapshot({
    commands: runner.sent,
    held: held.length,
    waiting: waiting.length,
  });
}

/** A hold on a group is not counted, but the holds on its members are. */
export function nowOf({ live, permits, sites }: Env): Now {
  const holds = live.all().flatMap(({ holds, kind }) => holds.map(() => kind));
  const kept = permits.live.all().map(({ number }) => number);
  return { held: [...holds, ...kept], waiting: sites.waiting.map(({ wanted }) => wanted) };
}
