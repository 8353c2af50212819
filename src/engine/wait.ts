/**
 * The wait of one call: its time-out, its signal, and the one place where it sleeps.
 *
 * The call awaits everything through {@link during} or {@link park}, so that an abort, the time-out or a close ends the
 * call at once.
 */

import { onAbort } from "../base/abort-hub.js";
import type { Clock } from "../base/clock.js";

/** Thrown inside the engine when the call's `wait` is over. */
const TIME_IS_UP: unique symbol = Symbol("time is up");

export interface WaitOptions {
  readonly clock: Clock;
  /** Milliseconds; Infinity without limit. */
  readonly wait: number;
  readonly signal: AbortSignal | undefined;
}

export class Wait {
  #ended: { reason: unknown } | undefined;
  #interrupt: ((reason: unknown) => void) | undefined;
  #wake: (() => void) | undefined;
  /** The call was resumed while it was not parked: its next park returns at once. */
  #resumed = false;
  readonly #clock: Clock;
  readonly #cancelTimer: (() => void) | undefined;
  readonly #stopListening: (() => void) | undefined;

  constructor({ clock, wait, signal }: WaitOptions) {
    this.#clock = clock;
    if (wait > 0 && wait !== Number.POSITIVE_INFINITY) {
      this.#cancelTimer = clock.after(wait, () => this.end(TIME_IS_UP));
    }
    if (signal) this.#stopListening = onAbort(signal, () => this.end(signal.reason));
  }

  get ended(): boolean {
    return this.#ended !== undefined;
  }

  /** Ends the call with this reason, now or at its next wait. The first end counts. */
  end(reason: unknown): void {
    this.#ended ??= { reason };
    this.#interrupt?.(this.#ended.reason);
  }

  /** Wakes the call if it is parked; otherwise its next park returns at once. */
  resume(): void {
    if (this.#wake) this.#wake();
    else this.#resumed = true;
  }

  /** Sleeps until {@link resume}, at most `ms`. */
  park(ms: number = Number.POSITIVE_INFINITY): Promise<void> {
    if (this.#resumed) {
      this.#resumed = false;
      return this.#check();
    }
    let cancel: (() => void) | undefined;
    const sleep = new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (ms !== Number.POSITIVE_INFINITY) cancel = this.#clock.after(ms, resolve);
    });
    return this.during(sleep).finally(() => {
      this.#wake = undefined;
      cancel?.();
    });
  }

  /** Awaits a promise, unless the call ends first: then the maker of the promise handles its outcome. */
  during<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#ended) reject(this.#ended.reason);
      this.#interrupt = reject;
      promise.then(resolve, reject);
    });
  }

  dispose(): void {
    this.#cancelTimer?.();
    this.#stopListening?.();
  }

  async #check(): Promise<void> {
    if (this.#ended) throw this.#ended.reason;
  }
}
