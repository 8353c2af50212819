/** The two clocks and the timers of a client. Only the test moves them: no time passes by itself. */
import type { Clock } from "../../src/base/clock.js";
import { TestClock } from "../../src/entries/testing/clock.js";

const EPOCH = 1_700_000_000_000;

export class VirtualClock extends TestClock {
  constructor(now = 0) {
    super(EPOCH);
    this.now = now;
  }

  /** The number of running timers. */
  get timers(): number {
    return this.running.size;
  }

  /** Moves the clocks as a stalled process sees them: due timers wait for {@link fire}. */
  moveTo(now: number): void {
    this.now = now;
  }

  /** Fires all timers that are due, in the order of their times. */
  fire(): void {
    const due = [...this.running].filter(({ at }) => at <= this.now).sort((a, b) => a.at - b.at);
    for (const timer of due) if (this.running.delete(timer)) timer.callback();
  }

  /** Like the clock of the server in memory; ready work is done before the first timer, and after each one. */
  override async advance(ms: number): Promise<void> {
    await settled();
    await super.advance(ms, settled);
  }
}

/** The same clock with another time of day, which is off by as many milliseconds as `shift` says. */
export function skewed(clock: Clock, shift: () => number): Clock {
  return {
    mono: () => clock.mono(),
    wall: () => clock.wall() + shift(),
    after: (ms, callback) => clock.after(ms, callback),
  };
}

/** Resolves when all work is done that waits for no timer, no socket and no message. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
