/**
 * The time of one call that may have to wait: its end, its signal, and the one place where it sleeps.
 *
 * Whatever the call awaits goes through {@link during} or {@link park}, so that abort, time-out and close end it at
 * once, wherever it is.
 */
import type { Clock } from "../base/clock.js";
import { onAbort } from "./abort-hub.js";

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
  /** A resume that came while nobody was parked: the next park returns at once. */
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

  /** Wakes who is parked, or spares the next sleep. */
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

  /** Awaits a promise, unless the call ends first; the promise is then left to its maker. */
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
