/** The two clocks and the timers of a client, moved by the test alone: no time passes that nobody asked for. */
import { TestClock } from "../../src/entries/testing/clock.js";

const EPOCH = 1_700_000_000_000;

export class VirtualClock extends TestClock {
  constructor(now = 0) {
    super(EPOCH);
    this.now = now;
  }

  /** How many timers run. */
  get timers(): number {
    return this.running.size;
  }

  /** When the next timer is due; Infinity without one. */
  get nextAt(): number {
    return this.next()?.at ?? Number.POSITIVE_INFINITY;
  }

  /** Moves the clocks as a stalled process sees them: timers wait for {@link fire}. */
  moveTo(now: number): void {
    this.now = now;
  }

  /** Fires all timers that are due, in the order of their times. */
  fire(): void {
    const due = [...this.running].filter(({ at }) => at <= this.now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.running.delete(timer)) timer.callback();
  }

  /** As that of a server in memory; what each timer sets off is done before the next one fires, and what was there before the first. */
  override async advance(ms: number): Promise<void> {
    await settled();
    await super.advance(ms, settled);
  }
}

/** Resolves when everything has been done that waits for no timer, no socket and no message. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
