/**
 * A clock that stands still until a test advances it: of a server in memory and all its clients, and of this library's
 * own tests.
 */
import type { Clock } from "../../base/clock.js";
import { wallTime } from "../../base/platform.js";

export interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class TestClock implements Clock {
  /** Milliseconds since the clock began. */
  protected now = 0;
  protected readonly running: Set<Timer> = new Set();
  readonly #epoch: number;

  /** `epoch`: epoch milliseconds at which it begins, whole ones. */
  constructor(epoch: number = wallTime()) {
    this.#epoch = epoch;
  }

  mono(): number {
    return this.now;
  }

  wall(): number {
    return this.#epoch + this.now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.now + Math.max(0, ms), callback };
    this.running.add(timer);
    return () => this.running.delete(timer);
  }

  /**
   * Lets `ms` pass, from timer to timer. All that a timer sets off is done before the next timer: `rest` waits for
   * that.
   */
  async advance(ms: number, rest: () => Promise<void>): Promise<void> {
    const end = this.now + ms;
    for (let next = this.next(); next && next.at <= end; next = this.next()) {
      this.now = Math.max(this.now, next.at);
      this.running.delete(next);
      next.callback();
      await rest();
    }
    this.now = end;
  }

  /** The next timer; of timers that are due at the same time, the one that was made first. */
  protected next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.running) if (!next || timer.at < next.at) next = timer;
    return next;
  }
}
