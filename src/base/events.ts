/** The events of a client, and their delivery: a listener that throws disturbs no lock. */
import { EventEmitter } from "eventemitter3";
import { checkFunction, received } from "./arguments.js";
import { isLockError, type LossReason } from "./errors.js";
import { Figures } from "./figures.js";
import { outside } from "./outside.js";

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

/** What every event tells. Holds have an `ownerId`, `clientId:n`; permits with a lease have a `permitId`. */
export interface LockEvent {
  /** The name of the lock or synchronizer, without the prefix. */
  readonly lockName: string;
  /** The kind of lock or synchronizer. */
  readonly kind: LockKind;
  /**
   * The owner that the event is about: `clientId:n`. Of a group it is the first member's. A call may give members back,
   * so that it waits without a hold. It takes them again under another id than that of its `waiting`.
   */
  readonly ownerId?: string;
  /** The id of the permit, if it has one. */
  readonly permitId?: string;
}

/** Durations in milliseconds. */
export interface LockEvents {
  /**
   * A hold or permits were granted, `waited` after the call; `nested` if the owner had the lock already. A permit with
   * a `lease` may end by itself, or be given back elsewhere, without a further event.
   */
  acquired: LockEvent & { readonly waited: number; readonly nested: boolean; readonly lease?: number };
  /** A hold or permits were given back, `held` after the grant, if this client knows of the grant. */
  released: LockEvent & { readonly held?: number };
  /** A call waits, because it was refused or stands behind other calls. */
  waiting: LockEvent;
  /**
   * A call that does not wait was refused, because others have the lock: `tryLock()` without a wait resolves with null.
   */
  rejected: LockEvent;
  /**
   * A call ended without a grant after it had `waited`: its wait was over, its signal aborted, or the client was
   * closed.
   */
  gaveUp: LockEvent & { readonly reason: "timeout" | "abort" | "closed"; readonly waited: number };
  /** A hold is older than the option `warnAfter`; this event comes once for each hold. */
  longHold: LockEvent & { readonly held: number };
  /** The watchdog renewed an owner's holds on a lock, or a permit. */
  renewed: LockEvent;
  /** A renewal failed. The hold is still good, and the watchdog tries again until its deadline. */
  suspended: LockEvent & { readonly cause: unknown };
  /** A hold, or a permit that the watchdog keeps, ended before it was given back. */
  lost: LockEvent & {
    /** Why it was lost, as far as that is known: see {@link LossReason}. */
    readonly reason: LossReason;
    /** Milliseconds since the grant, if this client knows of it. */
    readonly held?: number;
  };
  /** Something failed in the background that no call can report. */
  error: Partial<LockEvent> & { readonly cause: unknown };
}

/** What {@link LockClient.on} listens for. */
export type LockEventName = keyof LockEvents;

/** What an event tells in addition to what it is about. */
export type Details<E extends LockEventName> = Omit<LockEvents[E], "lockName" | "kind">;

/** Called with each event of one name. */
export type LockListener<E extends LockEventName> = (event: LockEvents[E]) => void;

/**
 * What the emitter calls, with the user's listener as its `this`. It catches what the listener throws. The emitter would let
 * the error out of emit(): that would stop the watchdog, and later listeners would miss the event.
 */
function tell(this: (payload: unknown) => void, payload: unknown): void {
  try {
    this(payload);
  } catch {
    // A mistake of the listener.
  }
}

/** What has a wire id, which is made only if somebody listens. */
export interface Identified {
  readonly wireId: string;
}

/** Delivers events outside every scope. */
export class Events {
  readonly figures: Figures = new Figures();
  readonly #emitter = new EventEmitter();

  /** Adds or removes a listener. @throws TypeError for an unknown event, and for a listener that is no function */
  listen<E extends LockEventName>(how: "on" | "once" | "off", event: E, listener: LockListener<E>): void {
    const { events } = this.figures;
    if (!events.has(event)) {
      throw new TypeError(`event must be one of ${[...events.keys()].join(", ")}, not ${received(event)}`);
    }
    checkFunction(listener, "listener");
    this.#emitter[how](event, tell, listener);
  }

  /** Counts an event, and tells it to listeners; `about`: the lock that it is about, `of`: whose wire id is its owner's. */
  emit<E extends LockEventName>(event: E, details: Details<E>, about?: LockEvent, of?: Identified): void {
    this.figures.count(event, details as object);
    if (this.#emitter.listenerCount(event) === 0) return;
    const owner = of && { ownerId: of.wireId };
    const told = about ? { lockName: about.lockName, kind: about.kind, ...owner, ...details } : details;
    outside(() => void this.#emitter.emit(event, told));
  }
}

/** What ended a call from outside: its signal, or the close of the client; undefined for any other error. */
export function reasonOf(error: unknown, signal: AbortSignal | undefined): "abort" | "closed" | undefined {
  if (signal?.aborted && error === signal.reason) return "abort";
  return isLockError(error, "CLIENT_CLOSED") ? "closed" : undefined;
}
