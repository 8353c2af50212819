/** Undoing what was or may yet be granted under a wire id that is over. */
import { elapsedSince, type Instant, instant } from "../base/clock.js";
import { type Backend, NOTHING_LEFT, TOMBSTONE_TTL } from "./backend.js";
import type { OwnerLock } from "./owner-lock.js";
import { quietly } from "./work.js";

/** In the background: whatever the server has of a wire id, or may still get, is nobody's. */
export function endWireId(own: OwnerLock, backend: Backend, wireId: string): Promise<unknown> {
  const undone = quietly(backend.undo(wireId, undefined, () => NOTHING_LEFT));
  own.table.env.settle(undone);
  return undone;
}

/** The undoing of a try that was given up on its way, by a command right behind it. */
export interface Undo {
  readonly done: Promise<unknown>;
  readonly sent: Instant;
}

export function undoBehind(own: OwnerLock, backend: Backend, wireId: string): Undo {
  return { done: endWireId(own, backend, wireId), sent: instant(own.table.env.clock) };
}

/** What undoes a grant that was heard of just now; undefined if it may have come once the tombstone had lapsed. */
export function undoneBy(own: OwnerLock, behind: Undo | undefined): Promise<unknown> | undefined {
  const stands = behind && elapsedSince(own.table.env.clock, behind.sent) < TOMBSTONE_TTL;
  return stands ? behind.done : undefined;
}
