/**
 * Gives back bare holds whose `Hold` is garbage, and warns the process. The user has no way left to give such a hold
 * back, and the watchdog would renew it for the life of the process.
 */

import type { CallSite } from "../base/call-site.js";
import type { Item, List } from "../base/list.js";
import { warnOnce } from "../base/warnings.js";
import { quietly } from "../base/work.js";
import { outside } from "../owners/context.js";
import type { HoldParts, HoldRecord } from "./hold-record.js";

/** A hold that only its view can give back. */
interface Taken extends HoldParts {
  /** Where the hold was taken, if that was noted. */
  readonly callSite: CallSite | undefined;
}

/** A bare hold that was granted a moment ago. Most are given back soon: these never come to a {@link DropWatch}. */
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

/** The bare holds of one client that have lived for a moment. */
export class DropWatch {
  readonly #registry = new FinalizationRegistry(giveBack);

  /** Gives the hold back if its view becomes garbage: the view is the user's only way to give the hold back. */
  add(young: YoungHold): void {
    young.forget();
    const { view, parts, callSite } = young;
    this.#registry.register(view, { callSite, ...parts }, parts.record);
    // By this the record keeps the registry, which must not be garbage before the view.
    parts.record.drop = this;
  }

  forget(record: HoldRecord): void {
    this.#registry.unregister(record);
  }
}

/** Ends the watch: the hold was given back, or the user may keep its signal or owner instead of its view. */
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
