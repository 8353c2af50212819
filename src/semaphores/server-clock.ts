/**
 * The time by each master's clock, from the master's last answer, so that a script can be told until when it may be
 * run.
 *
 * A time that is too early is safe: the script then does nothing, and its answer tells the time. A time that is too
 * late would let a late copy of a call run after its marker has lapsed. So a master that has not answered yet has no
 * time at all. The client forgets all times once it has lost a connection: the next one may lead to another machine.
 */
import { type Clock, type Instant, instant, leastElapsedSince } from "../base/clock.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { masterAddress } from "../redis/connection.js";

/** Long past, for every server; 0 would mean no limit. */
const LONG_AGO = 1;

export class ServerClock {
  readonly #clock: Clock;
  readonly #runner: CommandRunner;
  /** The times by the master's address. */
  readonly #heard = new Map<string, { readonly at: Instant; readonly time: number }>();
  /** The {@link CommandRunner.connectionEpoch} in which these times were heard. */
  #epoch = 0;

  constructor(clock: Clock, runner: CommandRunner) {
    this.#clock = clock;
    this.#runner = runner;
  }

  /**
   * The time `ms` from now by the clock of the master that has this key, in epoch milliseconds; long past if it is not
   * known.
   */
  in(key: string, ms: number): number {
    this.#forgetLost();
    const heard = this.#heard.get(this.#masterOf(key));
    if (!heard) return LONG_AGO;
    return Math.max(LONG_AGO, Math.floor(heard.time + leastElapsedSince(this.#clock, heard.at) + ms));
  }

  /** Notes the time that the answer to a call on this key told, in seconds. */
  hear(key: string, seconds: number): void {
    this.#forgetLost();
    this.#heard.set(this.#masterOf(key), { at: instant(this.#clock), time: seconds * 1_000 });
  }

  #masterOf(key: string): string {
    return masterAddress(this.#runner.connection, key);
  }

  #forgetLost(): void {
    if (this.#epoch === this.#runner.connectionEpoch) return;
    this.#epoch = this.#runner.connectionEpoch;
    this.#heard.clear();
  }
}
