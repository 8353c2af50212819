/** The lines of a client, by their names. One comes with its first call, and goes a moment after its last. */
import type { Clock } from "../base/clock.js";
import { TimeLimit } from "../base/time-limit.js";
import type { Contender } from "./contender.js";
import { Line } from "./line.js";

/**
 * Milliseconds for which a line that has become empty is kept with what it knows, and listens: those who share a lock in a
 * loop are back at once.
 */
const LINGER = 10;

export interface LinesOptions {
  readonly clock: Clock;
  /** Milliseconds. */
  readonly pollCap: number;
  /** Runs a function outside every scope. */
  readonly outside: (fn: () => void) => void;
}

export class Lines {
  readonly #options: LinesOptions;
  readonly #lines = new Map<string, Line>();
  readonly #linger: TimeLimit<Line>;

  constructor(options: LinesOptions) {
    this.#options = options;
    this.#linger = new TimeLimit(options.clock, LINGER, options.outside);
  }

  get(name: string): Line | undefined {
    return this.#lines.get(name);
  }

  [Symbol.iterator](): Iterator<Line> {
    return this.#lines.values();
  }

  /** The line of a call that begins; {@link leave} is to follow. */
  join({ line: name }: Contender<unknown>): Line {
    let line = this.#lines.get(name);
    if (!line) {
      const { clock, pollCap } = this.#options;
      const idle = (over: Line) => this.#forgetIfIdle(over);
      line = new Line({ name, clock, refreshEvery: pollCap / 2, linger: this.#linger, idle });
      this.#lines.set(name, line);
    }
    line.calls++;
    return line;
  }

  leave(line: Line): void {
    line.calls--;
    this.#forgetIfIdle(line);
  }

  #forgetIfIdle(line: Line): void {
    if (line.calls === 0 && !line.list) this.#lines.delete(line.name);
  }
}
