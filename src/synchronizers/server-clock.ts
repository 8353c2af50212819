/**
 * What time it is by the server's clock, as its last answer told: so that a script can be told until when it may be run.
 * Before the first answer this machine's own clock has to do; a server that thinks otherwise says so.
 */
import { type Clock, elapsedSince, type Instant, instant } from "../base/clock.js";

export class ServerClock {
  readonly #clock: Clock;
  #heard: { readonly at: Instant; readonly time: number } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The server's epoch milliseconds, `ms` from now. However late an answer came, a time too early is the safe side. */
  in(ms: number): number {
    const now = this.#heard
      ? this.#heard.time + elapsedSince(this.#clock, this.#heard.at)
      : this.#clock.wall();
    return Math.max(1, Math.floor(now + ms));
  }

  /** What an answer told, in seconds. */
  hear(seconds: number): void {
    this.#heard = { at: instant(this.#clock), time: seconds * 1_000 };
  }
}
