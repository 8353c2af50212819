/** Collects what a client has and waits for now, in the form in which it tells others. */
import { hostname } from "node:os";
import type { Clock } from "./base/clock.js";
import { clientId } from "./base/ids.js";
import type { Acquisition } from "./engine/acquisition.js";
import type { Engine } from "./engine/engine.js";
import { MemberAcquisition } from "./groups/member-acquisition.js";
import { LockAcquisition } from "./locks/acquire.js";
import { liveHolds } from "./locks/holds.js";
import { wireIdOf } from "./locks/loss.js";
import type { LockTable } from "./locks/owner-lock.js";
import { bounded, type ClientInfo, MOST, type Told } from "./presence/told.js";
import type { KeptPermits } from "./synchronizers/kept-permits.js";
import { Request } from "./synchronizers/request.js";

export interface TellingParts {
  readonly table: LockTable;
  readonly permits: KeptPermits;
  readonly engine: Engine;
  readonly clock: Clock;
}

/** Describes a new client for people, and gives it an id. */
export function describeSelf(label: string): ClientInfo {
  const [host, { pid }] = [hostname(), process];
  return { id: clientId(), label: label || `${host}:${pid}`, host, pid };
}

/** Returns a function that looks at what the client has and waits for: at most at as much as a client may tell. */
export function lookOf(parts: TellingParts): () => { readonly holds: Told[]; readonly waits: Told[] } {
  const numbers = new WeakMap<object, number>();
  let last = 0;
  const numberOf = (owner: object) => {
    const known = numbers.get(owner) ?? ++last;
    numbers.set(owner, known);
    return known;
  };
  return () => ({ holds: holdsOf(parts, numberOf), waits: waitsOf(parts, numberOf) });
}

/** The number of an owner: readers see by it which holds and waits have the same owner. */
type NumberOf = (owner: object) => number;

function holdsOf({ table, permits, clock }: TellingParts, numberOf: NumberOf): Told[] {
  const told: Told[] = [];
  for (const own of table.live.all(MOST)) {
    // The owner has the lock since its first live hold, on either side.
    const [first] = liveHolds(own);
    if (!first) continue;
    const { backend, ownerId, acquiredAt: since, callSite } = first;
    const { key, kind } = backend;
    const owners = [numberOf(own.owner ?? own)];
    told.push({ key, kind, ownerId, since, owners, callSite: callSite && bounded(callSite.text) });
  }
  for (const { number, id, held } of permits.live.all(MOST)) {
    told.push({
      key: number.key,
      kind: number.kind,
      ownerId: id,
      since: clock.wall() - held,
      owners: [],
    });
  }
  return told;
}

function waitsOf({ engine, clock }: TellingParts, numberOf: NumberOf): Told[] {
  // A RedLock's call has members by several clients: each client tells of its own ones.
  const parts = engine.parts.all().filter((part) => waiterOf(part).announced && !waiterOf(part).over);
  return [...engine.waiting, ...parts].slice(0, MOST).flatMap((call) => {
    const since = Math.round(clock.wall() - (clock.mono() - waiterOf(call).waitsSince));
    if (call instanceof Request) {
      const { key, kind } = call.number;
      return { key, kind, ownerId: undefined, since, owners: [] };
    }
    if (!(call instanceof LockAcquisition)) return [];
    const { own, backend, wireId } = call;
    const { key, kind } = backend;
    const mode = backend.side === "only" ? undefined : backend.side;
    const owners = [...new Set(ownersOf(call))].map(numberOf);
    return { key, kind, ownerId: wireIdOf(own) ?? wireId, since, owners, mode };
  });
}

function waiterOf(call: Acquisition<unknown>): Acquisition<unknown> {
  return call instanceof MemberAcquisition ? call.waiter : call;
}

/** The owner of a call, and the owners of the scopes and runs around it, which go on only when the call ends. */
function* ownersOf({ own, caller }: LockAcquisition): IterableIterator<object> {
  yield own.owner ?? own;
  for (let frame = caller; frame?.open; frame = frame.parent) {
    yield frame.owner;
    yield* frame.owner.actors?.values() ?? [];
  }
}
