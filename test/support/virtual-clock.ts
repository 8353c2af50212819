/** The two clocks and the timers of a client, moved by the test alone: no time passes that nobody asked for. */
import type { Clock } from "../../src/base/clock.js";

const EPOCH = 1_700_000_000_000;

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

export class VirtualClock implements Clock {
  #now: number;
  readonly #timers = new Set<Timer>();

  constructor(now = 0) {
    this.#now = now;
  }

  mono(): number {
    return this.#now;
  }

  wall(): number {
    return EPOCH + this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers run. */
  get timers(): number {
    return this.#timers.size;
  }

  /** When the next timer is due; Infinity without one. */
  get nextAt(): number {
    return this.#next()?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Moves the clocks as a stalled process sees them: timers wait for {@link fire}. */
  moveTo(now: number): void {
    this.#now = now;
  }

  /** Fires all timers that are due, in the order of their times. */
  fire(): void {
    const due = [...this.#timers].filter(({ at }) => at <= this.#now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.#timers.delete(timer)) timer.callback();
  }

  /** Lets `ms` pass from timer to timer; what each sets off is done before the next one fires. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settled();
    for (let next = this.#next(); next && next.at <= end; next = this.#next()) {
      this.#now = Math.max(this.#now, next.at);
      this.#timers.delete(next);
      next.callback();
      await settled();
    }
    this.#now = end;
  }

  /** Of those that are due at the same time the one that was made first. */
  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer;
    return next;
  }
}

/** Resolves when everything has been done that waits for no timer, no socket and no message. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
