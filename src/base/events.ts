/** The events of a client, and their delivery: a listener that throws disturbs no lock. */
import { EventEmitter } from "eventemitter3";
import { checkFunction, received } from "./arguments.js";
import type { LossReason } from "./errors.js";
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
  readonly lockName: string;
  readonly kind: LockKind;
  readonly ownerId?: string;
  readonly permitId?: string;
}

/** Durations in milliseconds. */
export interface LockEvents {
  /** A hold or permits were granted, `waited` after the call. */
  acquired: LockEvent & { readonly waited: number };
  /** A hold or permits were given back; `held` after the grant, where this client knows of it. */
  released: LockEvent & { readonly held?: number };
  /** A call was refused, or stands behind others, and waits. */
  waiting: LockEvent;
  /** The watchdog renewed an owner's holds on a lock, or a permit. */
  renewed: LockEvent;
  /** A renewal failed; the hold is still good and is tried again until its deadline. */
  suspended: LockEvent & { readonly cause: unknown };
  /** A hold, or a permit that the watchdog keeps, ended before it was given back. */
  lost: LockEvent & { readonly reason: LossReason; readonly held?: number };
  /** Something failed in the background that no call can report. */
  error: Partial<LockEvent> & { readonly cause: unknown };
}

export type LockEventName = keyof LockEvents;

const NAMES: Record<LockEventName, true> = {
  acquired: true,
  released: true,
  waiting: true,
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
export type LockListener<E extends LockEventName> = (event: LockEvents[E]) => void;

/** Delivers events outside every scope (`outside` runs a function so). */
export class Events {
  readonly #emitter = new EventEmitter();
  readonly #outside: (fn: () => void) => void;

  constructor(outside: (fn: () => void) => void) {
    this.#outside = outside;
  }

  on<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.on(event, listener);
  }

  once<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.once(event, listener);
  }

  off<E extends LockEventName>(event: E, listener: LockListener<E>): void {
    checkListener(event, listener);
    this.#emitter.off(event, listener);
  }

  /** Whether anybody listens: lets hot paths skip building the event. */
  heard(event: LockEventName): boolean {
    return this.#emitter.listenerCount(event) > 0;
  }

  emit<E extends LockEventName>(event: E, payload: LockEvents[E]): void {
    if (!this.heard(event)) return;
    this.#outside(() => {
      try {
        this.#emitter.emit(event, payload);
      } catch (error) {
        // eventemitter3 lets a listener's throw out of emit(): it would stop the watchdog.
        trace("a listener of %s threw: %s", event, error instanceof Error ? error.name : typeof error);
      }
    });
  }
}
