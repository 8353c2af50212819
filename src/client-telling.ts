/** What a client has and waits for now, in the forms in which it tells others, and its figures. */
import { hostname } from "node:os";
import type { LockClientStats } from "./base/figures.js";
import { clientId } from "./base/ids.js";
import type { Now } from "./base/now.js";
import type { ClientParts } from "./client-parts.js";
import type { Env } from "./env.js";
import { bounded, type ClientInfo, MOST, type Told } from "./presence/told.js";
import type { LivePermits } from "./semaphores/live-permits.js";

/** Describes a new client for people, and gives it an id. */
export function describeSelf(label: string): ClientInfo {
  const [host, { pid }] = [hostname(), process];
  return { id: clientId(), label: label || `${host}:${pid}`, host, pid };
}

/** Returns a function that looks at what the client has and waits for: at most at as much as a client may tell. */
export function lookOf(
  env: Env,
  permits: LivePermits,
): () => { readonly holds: Told[]; readonly waits: Told[] } {
  const numbers = new WeakMap<object, number>();
  let last = 0;
  const numberOf = (owner: object) => {
    const known = numbers.get(owner) ?? ++last;
    numbers.set(owner, known);
    return known;
  };
  return () => ({ holds: holdsOf(env, permits, numberOf), waits: waitsOf(env, numberOf) });
}

/** The number of an owner: readers see by it which holds and waits have the same owner. */
type NumberOf = (owner: object) => number;

function holdsOf({ live, clock, settings }: Env, permits: LivePermits, numberOf: NumberOf): Told[] {
  const told: Told[] = [];
  for (const grant of live.all(MOST)) {
    // The owner has the lock since its first live hold, on either side.
    const [first] = grant.holds;
    if (!first) continue;
    const { key, kind } = grant.kind;
    const { acquiredAt: since, callSite } = first;
    const owners = [numberOf(grant.knownOwner ?? grant)];
    told.push({
      key,
      kind,
      ownerId: grant.wireId,
      since,
      owners,
      callSite: settings.traceHolds && callSite ? bounded(callSite.text) : undefined,
    });
  }
  for (const { number, id, held } of permits.live.all(MOST)) {
    const since = clock.wall() - held;
    told.push({ key: number.key, kind: number.kind, ownerId: id, since, owners: [] });
  }
  return told;
}

function waitsOf({ sites, clock }: Env, numberOf: NumberOf): Told[] {
  return sites.waiting.slice(0, MOST).flatMap((call): Told[] => {
    const since = Math.round(clock.wall() - (clock.mono() - (call.waitsSince ?? 0)));
    return call.wanted.parts
      .filter(({ env }) => env.sites === sites)
      .map(({ key, kind, side }) => ({
        key,
        kind,
        ownerId: call.toldId,
        since,
        owners: [...new Set(call.owners())].map(numberOf),
        mode: side === "only" ? undefined : side,
      }));
  });
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
