/**
 * Gives back bare holds that the user has dropped, and warns the process. Nothing else is left to give such a hold
 * back, and the watchdog would renew it for the life of the process.
 */
import { outside } from "../base/outside.js";
import { quietly } from "../base/work.js";
import type { Grant } from "./grant.js";
import type { HoldRecord } from "./hold-record.js";

/** So many calls of a client note where they were made, for the warning, in so many milliseconds: noting costs microseconds. */
const NOTED = 100;
const NOTED_AGAIN = 60_000;

/** By it a listener of the event `warning` recognises the warning. */
const WARNING = { type: "HoldfastWarning", code: "HOLDFAST_DROPPED_HOLD" };

/** The places that the process was warned of. */
const warned = new Set<string>();

/** Where in the user's code a call was made: its stack of one frame, of which V8 makes the text when it is read. */
export interface Place {
  readonly stack?: unknown;
}

/** Notes where bare calls were made. */
export class Places {
  #left = NOTED;
  #since = Number.NEGATIVE_INFINITY;

  /** The place of a call that is made now, by the function that the user called; undefined for most calls. */
  note(now: number, called: (...args: never[]) => unknown): Place | undefined {
    if (this.#left === 0 && now - this.#since < NOTED_AGAIN) return undefined;
    if (this.#left === 0) this.#left = NOTED;
    this.#since = now;
    this.#left--;
    const place: Place = {};
    const limit = Error.stackTraceLimit;
    // A frozen Error keeps its own limit, so more frames are captured then.
    Reflect.set(Error, "stackTraceLimit", 1);
    Error.captureStackTrace(place, called);
    Reflect.set(Error, "stackTraceLimit", limit);
    return place;
  }
}

/** Whether the only hold of a grant was dropped. From the first renewal on such a hold is known weakly. */
export function isDropped({ holds: [only, another] }: Grant): boolean {
  const hold = only?.group ?? only;
  if (!hold || another || !hold.grant.isGarbage) return false;
  outside(() => void quietly(hold.release()));
  warn(hold);
  return true;
}

/** Once per place in the user's code. */
function warn({ grant, place }: HoldRecord): void {
  const [, where = ""] = /\n\s+at (?:async )?(.*)/.exec(String(place?.stack)) ?? [];
  if (warned.has(where)) return;
  warned.add(where);
  const text =
    `lock "${grant.lockName}": a bare hold without a lease was garbage-collected before its unlock, and was given back. ` +
    "Keep what lock() resolves with and call its unlock(), or use run() or client.scope().";
  process.emitWarning(where ? `${text} At ${where}` : text, WARNING);
}
