/** Whether a server answers, as the calls to it tell. */
import type { Clock } from "../base/clock.js";

/** Of `commandTimeout`, for which a server with calls to answer may be silent before it counts as away. */
const SHARE_OF_TIMEOUT = 1 / 10;

export class ServerHealth {
  readonly #clock: Clock;
  readonly #commandTimeout: number;
  /** Calls under way. */
  #unanswered = 0;
  /** Monotonic milliseconds. */
  #silentSince = 0;
  /** The last call was given up without an answer. */
  #gaveUp = false;
  readonly #onAnswer = new Set<() => void>();

  /** `commandTimeout`: milliseconds. */
  constructor(clock: Clock, commandTimeout: number) {
    this.#clock = clock;
    this.#commandTimeout = commandTimeout;
  }

  /** True while it owes an answer and has been silent for a tenth of `commandTimeout`. */
  get away(): boolean {
    if (this.#unanswered === 0) return false;
    return this.#clock.mono() - this.#silentSince > this.#commandTimeout * SHARE_OF_TIMEOUT;
  }

  get owesAnswer(): boolean {
    return this.#unanswered > 0;
  }

  /** Not worth waiting for: away, or its last call was given up without an answer, however short that one's time was. */
  get unresponsive(): boolean {
    return this.away || (this.#gaveUp && this.#unanswered > 0);
  }

  /** Calls back once, at the next answer, however late it comes. Returns the way to stop that. */
  onAnswer(callback: () => void): () => void {
    this.#onAnswer.add(callback);
    return () => this.#onAnswer.delete(callback);
  }

  /** A call to it has begun. */
  callBegun(): void {
    if (this.#unanswered++ === 0 && !this.#gaveUp) this.#silentSince = this.#clock.mono();
  }

  /** It has given an answer that can be used. */
  answered(): void {
    this.#gaveUp = false;
    this.#silentSince = this.#clock.mono();
    if (this.#onAnswer.size === 0) return;
    const callbacks = [...this.#onAnswer];
    this.#onAnswer.clear();
    for (const callback of callbacks) callback();
  }

  /** No answer came in time. */
  gaveUp(): void {
    this.#gaveUp = true;
  }

  /** A call to it has ended, in whatever way. */
  callEnded(): void {
    this.#unanswered--;
  }
}
