/**
 * Bare holds whose `Hold` is garbage: nobody can give them back any more, and the watchdog would renew them for the life
 * of the process. They are given back, and the process is warned.
 */
import { Place, warnOnce } from "../base/warnings.js";
import { outside } from "../owners/context.js";
import type { HoldParts } from "./hold-record.js";
import { quietly } from "./work.js";

/** Where a hold was taken that only its view can give back, and what was granted there. */
export class Taking extends Place {
  hold: HoldParts | undefined;
}

const registry = new FinalizationRegistry(giveBack);

/** Gives what was taken back should its view, the user's only way to do so, become garbage before. */
export function watchForDrop(view: object, taking: Taking): void {
  registry.register(view, taking, view);
}

/** It was given back, or is in use by more than its view: by its signal or its owner. */
export function leaveAlone(view: object): void {
  registry.unregister(view);
}

function giveBack(taking: Taking): void {
  const { record, verbs } = taking.hold ?? {};
  if (!record?.isHeld || !verbs) return;
  outside(() => void quietly(verbs.release(record)));
  warnOnce(
    taking,
    "HOLDFAST_DROPPED_HOLD",
    `lock "${record.lockName}": a bare hold without a lease was garbage-collected before its unlock, and was given back. ` +
      "Keep what lock() resolves with and call its unlock(), or use run() or client.scope().",
  );
}
