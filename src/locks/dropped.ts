/**
 * Bare holds whose `Hold` is garbage: nobody can give them back any more, and the watchdog would renew them for the life
 * of the process. They are given back, and the process is warned.
 */
import { type Place, warnOnce } from "../base/warnings.js";
import { outside } from "../owners/context.js";
import type { HoldParts, HoldRecord } from "./hold-record.js";
import { quietly } from "./work.js";

/** A hold that only its view can give back. */
interface Taken extends HoldParts {
  /** Where it was taken, if that was noted. */
  readonly place: Place | undefined;
}

const registry = new FinalizationRegistry(giveBack);

/** Gives a hold back should its view, the user's only way to do so, become garbage before. */
export function watchForDrop(view: object, parts: HoldParts, place: Place | undefined): void {
  registry.register(view, { ...parts, place }, parts.record);
  parts.record.drop = "watched";
}

/** It was given back, or is in use by more than its view: by its signal or its owner. */
export function leaveAlone(record: HoldRecord): void {
  if (record.drop === "watched") registry.unregister(record);
  record.drop = "unwatched";
}

function giveBack({ record, verbs, place }: Taken): void {
  if (!record.isHeld) return;
  outside(() => void quietly(verbs.release(record)));
  warnOnce(
    place,
    "HOLDFAST_DROPPED_HOLD",
    `lock "${record.lockName}": a bare hold without a lease was garbage-collected before its unlock, and was given back. ` +
      "Keep what lock() resolves with and call its unlock(), or use run() or client.scope().",
  );
}
