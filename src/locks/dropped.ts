/**
 * Bare holds whose `Hold` is garbage: nobody can give them back any more, and the watchdog would renew them for the life
 * of the process. They are given back, and the process is warned.
 */

import type { CallSite } from "../base/call-site.js";
import type { Item, List } from "../base/list.js";
import { warnOnce } from "../base/warnings.js";
import { outside } from "../owners/context.js";
import type { HoldParts, HoldRecord } from "./hold-record.js";
import { quietly } from "./work.js";

/** A hold that only its view can give back. */
interface Taken extends HoldParts {
  /** Where it was taken, if that was noted. */
  readonly callSite: CallSite | undefined;
}

/** A bare hold that was granted a moment ago: it goes without a trace if it is given back soon, as most are. */
export class YoungHold implements Item {
  declare next: this | undefined;
  declare prev: this | undefined;
  declare list: object | undefined;
  readonly among: List<YoungHold>;
  readonly view: object;
  readonly parts: HoldParts;
  readonly callSite: CallSite | undefined;

  constructor(among: List<YoungHold>, view: object, parts: HoldParts, callSite: CallSite | undefined) {
    this.among = among;
    this.view = view;
    this.parts = parts;
    this.callSite = callSite;
    parts.record.drop = this;
    among.add(this);
  }

  forget(): void {
    this.among.remove(this);
  }
}

const registry = new FinalizationRegistry(giveBack);
const WATCHED = { forget: (record: HoldRecord): void => void registry.unregister(record) };

/** Gives a hold back should its view, the user's only way to do so, become garbage before. */
export function watchForDrop(young: YoungHold): void {
  young.forget();
  const { view, parts, callSite } = young;
  registry.register(view, { ...parts, callSite }, parts.record);
  parts.record.drop = WATCHED;
}

/** It was given back, or is in use by more than its view: by its signal or its owner. */
export function leaveAlone(record: HoldRecord): void {
  record.drop?.forget(record);
  record.drop = undefined;
}

function giveBack({ record, verbs, callSite }: Taken): void {
  if (!record.isHeld) return;
  outside(() => void quietly(verbs.release(record)));
  warnOnce(
    callSite,
    "HOLDFAST_DROPPED_HOLD",
    `lock "${record.lockName}": a bare hold without a lease was garbage-collected before its unlock, and was given back. ` +
      "Keep what lock() resolves with and call its unlock(), or use run() or client.scope().",
  );
}
