/** A client's clocks and timers, moved by the test. As many timers as are due fire together, in the order of their times. */
import type { Clock } from "../../src/base/clock.js";

const EPOCH = 1_700_000_000_000;

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class VirtualClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  constructor(now: number) {
    this.#now = now;
  }

  mono(): number {
    return this.#now;
  }

  wall(): number {
    return EPOCH + this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: Math.ceil(this.#now + ms), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** When the next timer is due; Infinity without one. */
  get nextAt(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { at } of this.#timers) next = Math.min(next, at);
    return next;
  }

  /** Moves the clocks; timers wait for {@link fire}. */
  moveTo(now: number): void {
    this.#now = now;
  }

  fire(): void {
    const due = [...this.#timers].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.#timers.delete(timer)) timer.callback();
  }
}
