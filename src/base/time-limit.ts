/** Many time-outs of one length on one timer: a timer for each command would cost more than the command. */
import type { Clock } from "./clock.js";

interface Limited {
  readonly endsAt: number;
  readonly callback: () => void;
}

export class TimeLimit {
  readonly ms: number;
  readonly #clock: Clock;
  readonly #outside: (fn: () => void) => void;
  /** In the order they end. */
  readonly #running = new Set<Limited>();
  #armed = false;

  constructor(clock: Clock, ms: number, outside: (fn: () => void) => void) {
    this.#clock = clock;
    this.ms = ms;
    this.#outside = outside;
  }

  /** Calls back after the limit, unless it is ended before by the returned function. */
  start(callback: () => void): () => void {
    const limited = { endsAt: this.#clock.mono() + this.ms, callback };
    this.#running.add(limited);
    if (!this.#armed) this.#arm(this.ms);
    return () => this.#running.delete(limited);
  }

  #arm(ms: number): void {
    this.#armed = true;
    this.#outside(() => this.#clock.after(Math.max(1, Math.ceil(ms)), () => this.#check()));
  }

  /** The timer is left to fire when nothing runs: stopping and starting it is what this class saves. */
  #check(): void {
    this.#armed = false;
    const now = this.#clock.mono();
    for (const limited of this.#running) {
      if (limited.endsAt > now) {
        this.#arm(limited.endsAt - now);
        return;
      }
      this.#running.delete(limited);
      limited.callback();
    }
  }
}
