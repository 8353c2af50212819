/**
 * Watches the calls of a client for two mistakes that no error can report: a bare hold whose `Hold` the user drops, and a
 * call that waits for a bare hold of its own async tree.
 *
 * Watching must cost much less than locking. So the call site is noted for some calls only, and a hold is watched only
 * after it has lived for a moment: most holds are given back by then.
 */
import { CallSite } from "../base/call-site.js";
import type { Clock } from "../base/clock.js";
import { List } from "../base/list.js";
import { warnOnce } from "../base/warnings.js";
import { type OwnerRecord, outside } from "../owners/context.js";
import { DropWatch, YoungHold } from "./dropped.js";
import type { HoldParts, HoldRecord } from "./hold-record.js";
import { forgetMarks, type Mark, markBareCall, ownHold, type Wanted } from "./own-holds.js";

/** Milliseconds after which the library warns of a call that waits for a bare hold of its own async tree. */
const WARN_AFTER = 10_000;
/** How many bare calls of a client are noted, and milliseconds after which as many are noted again. */
const NOTED = 100;
const NOTED_AGAIN = 60_000;
/** Milliseconds that a hold lives, at least, before it is watched. */
const YOUTH = 250;

/** The function that the user called. */
export type Called = (...args: never[]) => unknown;

/** What the watcher must know of a call. */
export interface WatchedCall {
  /** The call is a `lock()` or `tryLock()`. */
  readonly isBare: boolean;
  /** Milliseconds; undefined for a hold that the watchdog renews. */
  readonly lease: number | undefined;
  readonly owner: OwnerRecord | undefined;
  /** When the call was made, in monotonic milliseconds. */
  readonly begun: number;
  /** There for noted calls only. */
  noted?: Noted;
}

export interface Noted {
  readonly callSite: CallSite;
  readonly mark: Mark;
}

/** How many clients note their calls now. */
let noting = 0;

export class BareCalls {
  readonly #clock: Clock;
  /** How many more calls are noted. Above 0, {@link noting} counts this client. */
  #left = 0;
  #notedSince = Number.NEGATIVE_INFINITY;
  /** Holds that will be watched if they are not given back soon. */
  readonly #young = new List<YoungHold>();
  readonly #watched = new DropWatch();
  /** A timer for the young holds runs. */
  #watchesSoon = false;
  #cancelWatch: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A call that wants this begins. To be called before the call's first `await`. `called`: the function that the
   * user called. Returns a bare hold of the call's own async tree for which the call may have to wait.
   */
  begin(call: WatchedCall, wanted: Wanted, called: Called): HoldRecord | undefined {
    const own = noting > 0 ? ownHold(wanted) : undefined;
    if (call.isBare && (this.#left > 0 || call.begun - this.#notedSince >= NOTED_AGAIN)) {
      call.noted = this.#note(call.begun, wanted, called);
    }
    // A call of the hold's owner re-enters, and does not wait.
    return own && (call.owner === undefined || own.owner !== call.owner) ? own : undefined;
  }

  /** Warns if the call has waited for long and `own`, for which it may wait, is still held. */
  warnIfStuck<T>(own: HoldRecord, called: Called, work: Promise<T>): Promise<T> {
    const callSite = new CallSite(called);
    const cancel = this.#clock.after(WARN_AFTER, () => {
      if (!own.isHeld) return;
      warnOnce(
        callSite,
        "HOLDFAST_OWN_HOLD",
        `lock "${own.lockName}": a call has waited ${WARN_AFTER / 1_000} s for a bare hold of its own async tree, which may ` +
          "be waiting for itself. Bare calls do not re-enter: use run() or client.scope(), or name { owner: hold }.",
      );
    });
    return work.finally(cancel);
  }

  /** A bare call is about to resolve with this hold. */
  granted({ noted, owner, lease }: WatchedCall, hold: object, parts: HoldParts): void {
    if (noted) noted.mark.held = new WeakRef(parts.record);
    // Not watched: an owner can give its hold back without the `Hold`, and a lease ends by itself.
    if (owner !== undefined || lease !== undefined) return;
    new YoungHold(this.#young, hold, parts, noted?.callSite);
    if (!this.#watchesSoon) this.#watchSoon();
  }

  /** The client is closed. */
  close(): void {
    // A later call is refused, and must not begin to note again: nothing would stop that.
    this.#notedSince = Number.POSITIVE_INFINITY;
    this.#cancelWatch?.();
    for (const young of this.#young.all()) this.#young.remove(young);
    this.#stopNoting();
  }

  #note(now: number, wanted: Wanted, called: Called): Noted {
    if (this.#left === 0) {
      this.#notedSince = now;
      this.#left = NOTED;
      noting++;
    }
    const noted = { callSite: new CallSite(called), mark: markBareCall(wanted) };
    if (--this.#left === 0) this.#countOut();
    return noted;
  }

  #stopNoting(): void {
    if (this.#left === 0) return;
    this.#left = 0;
    this.#countOut();
  }

  #countOut(): void {
    if (--noting === 0) forgetMarks();
  }

  #watchSoon(): void {
    this.#watchesSoon = true;
    outside(() => {
      this.#cancelWatch = this.#clock.after(YOUTH, () => {
        this.#watchesSoon = false;
        for (const young of this.#young.all()) this.#watched.add(young);
      });
    });
  }
}
