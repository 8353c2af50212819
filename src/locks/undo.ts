/** What undoes a grant that nobody wants any more, or that may still come: a wire id is ended, and never used again. */

import { quietly } from "../base/work.js";
import { type Backend, NOTHING_LEFT } from "./backend.js";
import type { OwnerLock } from "./owner-lock.js";

/** In the background: gives back whatever the server has, or may still get, under a wire id. */
export function endWireId(own: OwnerLock, backend: Backend, wireId: string): Promise<unknown> {
  const undone = quietly(backend.undo(wireId, undefined, () => NOTHING_LEFT));
  own.table.env.settle(undone);
  return undone;
}

/** A call; `behind`: the command that undoes the try which was on its way when the call ended, until its answer. */
interface Undoable {
  readonly own: OwnerLock;
  readonly backend: Backend;
  readonly wireId: string | undefined;
  behind: Promise<unknown> | undefined;
}

/**
 * Undoes a try that is on its way, by a command right behind it. The call keeps its wire id: if the try is granted after
 * that command's tombstone has lapsed, the grant is undone by a further command.
 */
export function undoSent(call: Undoable): void {
  call.behind = endWireId(call.own, call.backend, call.wireId as string).then(() => {
    call.behind = undefined;
  });
}

/** Undoes whatever the tries of a call got or may still get, unless the command for that is under way. */
export function undoTry({ own, backend, wireId, behind }: Undoable): Promise<unknown> {
  return behind ?? (wireId ? endWireId(own, backend, wireId) : Promise.resolve());
}
