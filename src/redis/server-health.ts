/** Tells from the calls to a server whether it answers. */
import type { Clock } from "../base/clock.js";

/** The share of `commandTimeout` for which a server may owe an answer and be silent before it counts as away. */
const SHARE_OF_TIMEOUT = 1 / 10;

/** Milliseconds: a call is timed from a moment before it is sent. */
const TOLERANCE = 2;

export class ServerHealth {
  readonly #clock: Clock;
  readonly #commandTimeout: number;
  /** Calls to the server that are under way. */
  #unanswered = 0;
  /** Monotonic milliseconds: when it answered last, or began to owe an answer. */
  #silentSince = 0;
  /** Monotonic milliseconds: when its connection was closed last because of its silence. */
  #resetAt = 0;
  /** The last call was given up without an answer. */
  #gaveUp = false;
  /** Why the server refused a command, if it has given no usable answer since. */
  refusal: Error | undefined;
  readonly #onAnswer = new Set<() => void>();

  /** `commandTimeout`: milliseconds. */
  constructor(clock: Clock, commandTimeout: number) {
    this.#clock = clock;
    this.#commandTimeout = commandTimeout;
  }

  /** True while the server owes an answer and has been silent for a tenth of `commandTimeout`. */
  get away(): boolean {
    if (this.#unanswered === 0) return false;
    return this.#clock.mono() - this.#silentSince > this.#commandTimeout * SHARE_OF_TIMEOUT;
  }

  /** True if the server owes an answer, and this connection to it has brought none for so many milliseconds. */
  isSilentFor(ms: number): boolean {
    const since = Math.max(this.#silentSince, this.#resetAt);
    return this.#unanswered > 0 && this.#clock.mono() - since >= ms - TOLERANCE;
  }

  /** Its connection is closed because of its silence. */
  reset(): void {
    this.#resetAt = this.#clock.mono();
  }

  get owesAnswer(): boolean {
    return this.#unanswered > 0;
  }

  /**
   * True if the server is not worth waiting for. It is away, or owes an answer after its last call was given up without
   * one, however short that call's time was.
   */
  get unresponsive(): boolean {
    return this.away || (this.#gaveUp && this.#unanswered > 0);
  }

  /** Calls back once, at the next answer, however late it comes. Returns a function that stops that. */
  onAnswer(callback: () => void): () => void {
    this.#onAnswer.add(callback);
    return () => this.#onAnswer.delete(callback);
  }

  /** A call to the server has begun; `now` in monotonic milliseconds. */
  callBegun(now: number): void {
    if (this.#unanswered++ === 0 && !this.#gaveUp) this.#silentSince = now;
  }

  /** The server has given an answer that can be used; `now` in monotonic milliseconds. */
  answered(now: number = this.#clock.mono()): void {
    this.#gaveUp = false;
    this.refusal = undefined;
    this.#silentSince = now;
    if (this.#onAnswer.size === 0) return;
    const callbacks = [...this.#onAnswer];
    this.#onAnswer.clear();
    for (const callback of callbacks) callback();
  }

  /** No answer came in time. */
  gaveUp(): void {
    this.#gaveUp = true;
  }

  /** A call to the server has ended, in whatever way. */
  callEnded(): void {
    this.#unanswered--;
  }
}
