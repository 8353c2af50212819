/** The events of a client, and their delivery: a listener that throws disturbs no lock. */
import { EventEmitter } from "eventemitter3";
import { checkFunction, received } from "./arguments.js";
import { isLockError, type LossReason } from "./errors.js";
import { Figures } from "./figures.js";
import { trace } from "./trace.js";

/** Kinds of locks and synchronizers, as events and `inspect` name them. */
export type LockKind =
  | "lock"
  | "fair"
  | "fenced"
  | "readwrite"
  | "multi"
  | "red"
  | "semaphore"
  | "permits"
  | "latch";

/** What every event tells. `ownerId` is `clientId:n`, for holds; `permitId` for permits with a lease. */
export interface LockEvent {
  /** Without the prefix. */
  readonly lockName: string;
  /** What it is a lock or synchronizer of. */
  readonly kind: LockKind;
  /** Of whom it is told: `clientId:n`. */
  readonly ownerId?: string;
  /** Of a permit that has an id. */
  readonly permitId?: string;
}

/** Durations in milliseconds. */
export interface LockEvents {
  /**
   * A hold or permits were granted, `waited` after the call; `nested` to an owner that had the lock already. A permit with a
   * `lease` may end by itself, or elsewhere, without a further event.
   */
  acquired: LockEvent & { readonly waited: number; readonly nested: boolean; readonly lease?: number };
  /** A hold or permits were given back; `held` after the grant, where this client knows of it. */
  released: LockEvent & { readonly held?: number };
  /** A call was refused, or stands behind others, and waits. */
  waiting: LockEvent;
  /** A single try stayed with others: a `tryLock()` without a wait resolves with null. */
  rejected: LockEvent;
  /** A call ended without a grant after it had `waited`, by its own wait or signal, or with the client. */
  gaveUp: LockEvent & { readonly reason: "timeout" | "abort" | "closed"; readonly waited: number };
  /** A hold is older than the option `warnAfter`; told once for each. */
  longHold: LockEvent & { readonly held: number };
  /** The watchdog renewed an owner's holds on a lock, or a permit. */
  renewed: LockEvent;
  /** A renewal failed; the hold is still good and is tried again until its deadline. */
  suspended: LockEvent & { readonly cause: unknown };
  /** A hold, or a permit that the watchdog keeps, ended before it was given back. */
  lost: LockEvent & { readonly reason: LossReason; readonly held?: number };
  /** Something failed in the background that no call can report. */
  error: Partial<LockEvent> & { readonly cause: unknown };
}

/** What {@link LockClient.on} listens for. */
export type LockEventName = keyof LockEvents;

const NAMES: Record<LockEventName, true> = {
  acquired: true,
  released: true,
  waiting: true,
  rejected: true,
  gaveUp: true,
  longHold: true,
  renewed: true,
  suspended: true,
  lost: true,
  error: true,
};

/** @throws TypeError for an event that never comes, and for what is no listener */
function checkListener(event: unknown, listener: unknown): void {
  if (typeof event !== "string" || !Object.hasOwn(NAMES, event)) {
    throw new TypeError(`event must be one of ${Object.keys(NAMES).join(", ")}, not ${received(event)}`);
  }
  checkFunction(listener, "listener");
}

/** Told of each event of one name. */
export type LockListener<E extends LockEventName> = (event: LockEvents[E]) => void;

/**
 * What the emitter calls of each event, with a listener as its context. It lets a throw out of emit(): that would stop the
 * watchdog, and keep the listeners behind from hearing the event.
 */
const TELL = Object.fromEntries(
  Object.keys(NAMES).map((event) => [
    event,
    function (this: (payload: unknown) => void, payload: unknown): void {
      try {
        this(payload);
      } catch (error) {
        trace("a listener of %s threw: %s", event, error instanceof Error ? error.name : typeof error);
      }
    },
  ]),
) as Record<LockEventName, (payload: unknown) => void>;

/** How an event counts. */
const COUNTED: { readonly [E in LockEventName]?: (figures: Figures, event: LockEvents[E]) => void } = {
  acquired: (figures, { waited, nested }) => figures.acquired(waited, nested),
  released: (figures, { held }) => figures.released(held),
  renewed: (figures) => figures.renewed(),
  rejected: (figures) => figures.rejected(),
  gaveUp: (figures, { reason }) => {
    if (reason === "timeout") figures.timedOut();
    else if (reason === "abort") figures.aborted();
  },
  lost: (figures, { held }) => figures.lost(held),
};

/** Delivers events outside every scope (`outside` runs a function so). */
export class Events {
  readonly figures: Figures = new Figures();
  readonly #emitter = new EventEmitter();
  readonly #outside: (fn: () => void) => void;

  constructor(outside: (fn: () => void) => void) {
    this.#outside = outside;
  }

  on<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.on(event, TELL[event], listener);
  }

  once<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.once(event, TELL[event], listener);
  }

  off<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.off(event, TELL[event], listener);
  }

  /** Whether anybody listens: hot paths build no event otherwise, and count by {@link figures} what it would tell. */
  heard(event: LockEventName): boolean {
    return this.#emitter.listenerCount(event) > 0;
  }

  emit<E extends LockEventName>(event: E, payload: LockEvents[E]): void {
    COUNTED[event]?.(this.figures, payload as never);
    if (!this.heard(event)) return;
    this.#outside(() => void this.#emitter.emit(event, payload));
  }

  /** Tells of a hold that was granted, `waited` milliseconds after it was asked for. No event is built that nobody hears. */
  tellGrant(about: LockEvent, hold: ToldHold, waited: number, nested: boolean): void {
    if (!this.heard("acquired")) return this.figures.acquired(waited, nested);
    const { lockName, kind } = about;
    this.emit("acquired", { lockName, kind, ownerId: hold.ownerId, waited, nested });
  }

  /** Tells that such a hold was given back, likewise. */
  tellRelease(about: LockEvent, hold: ToldHold): void {
    const { heldFor: held } = hold;
    if (!this.heard("released")) return this.figures.released(held);
    const { lockName, kind } = about;
    this.emit("released", { lockName, kind, ownerId: hold.ownerId, held });
  }

  /**
   * Tells of a call that was not granted, after it had `waited`: `error` is what it rejects with, undefined if its wait was
   * over. An error that comes from elsewhere is the call's to tell.
   */
  tellEnd(about: LockEvent, { wait, signal }: CallLimits, waited: number, error?: unknown): void {
    if (error === undefined && wait === 0) return this.emit("rejected", about);
    const reason = error === undefined ? "timeout" : reasonOf(error, signal);
    if (reason) this.emit("gaveUp", { ...about, reason, waited });
  }
}

/** A hold, as events tell of it. */
export interface ToldHold {
  readonly ownerId: string;
  /** Milliseconds. */
  readonly heldFor: number;
}

/** What ends a call from outside. */
export interface CallLimits {
  /** Milliseconds; 0 for a single try. */
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
}

/** What ended a call from outside; undefined for an error that comes from elsewhere. */
export function reasonOf(error: unknown, signal: AbortSignal | undefined): "abort" | "closed" | undefined {
  if (signal?.aborted && error === signal.reason) return "abort";
  return isLockError(error, "CLIENT_CLOSED") ? "closed" : undefined;
}
