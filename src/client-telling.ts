/** What a client has and waits for now, in the forms in which it tells others, and its figures. */
import { hostname } from "node:os";
import type { LockClientStats } from "./base/figures.js";
import { clientId } from "./base/ids.js";
import type { Now } from "./base/now.js";
import type { ClientParts } from "./client-parts.js";
import type { Env } from "./env.js";
import type { Grant } from "./lock/grant.js";
import { type ClientInfo, MOST, type Told } from "./presence/told.js";
import type { LivePermits } from "./semaphores/live-permits.js";
import type { Waiter } from "./waiting/waiter.js";

/** Describes a new client for people, and gives it an id. */
export function describeSelf(label: string): ClientInfo {
  const [host, { pid }] = [hostname(), process];
  return { id: clientId(), label: label || `${host}:${pid}`, host, pid };
}

/** Returns a function that looks at what the client has and waits for: at most at as much as a client may tell. */
export function lookOf(
  { live, sites, clock }: Env,
  permits: LivePermits,
): () => { readonly holds: Told[]; readonly waits: Told[] } {
  const numbers = new WeakMap<object, number>();
  let last = 0;
  /** Readers see by it which holds and waits have the same owner. */
  const numberOf = (owner: object) => {
    const known = numbers.get(owner) ?? ++last;
    numbers.set(owner, known);
    return known;
  };
  const heldBy = ({ holds: [first], kind: { key, kind }, wireId: ownerId, knownOwner }: Grant): Told[] => {
    // The owner has the lock since its first live hold, on either side.
    if (!first) return [];
    const { acquiredAt: since, grant } = first;
    const owners = [numberOf(knownOwner ?? grant)];
    return [{ key, kind, ownerId, since, owners }];
  };
  const awaitedBy = (call: Waiter): Told[] => {
    const since = Math.round(clock.wall() - (clock.mono() - (call.waitsSince ?? 0)));
    const ownerId = call.toldId;
    const owners = [...new Set(call.owners())].map(numberOf);
    return call.wanted.parts
      .filter(({ env }) => env.sites === sites)
      .map(({ key, kind, side }) => {
        return { key, kind, ownerId, since, owners, mode: side === "only" ? undefined : side };
      });
  };
  return () => {
    const kept = permits.live.all(MOST).map(({ number: { key, kind }, id: ownerId, held }): Told => {
      return { key, kind, ownerId, since: clock.wall() - held, owners: [] };
    });
    return {
      holds: [...live.all(MOST).flatMap(heldBy), ...kept],
      waits: sites.waiting.slice(0, MOST).flatMap(awaitedBy),
    };
  };
}

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
