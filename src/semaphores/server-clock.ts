/**
 * The time by each master's clock, from the master's last answer, so that a script can be told until when it may be
 * run.
 *
 * A time that is too early is safe: the script then does nothing, and its answer tells the time. A time that is too
 * late would let a late copy of a call run after its marker has lapsed. So a master that has not answered yet has no
 * time at all. No time counts once the client has lost a connection: the next one may lead to another machine.
 */
import { type Instant, instant, leastElapsedSince } from "../base/clock.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { masterAddress } from "../redis/connection.js";

/** Long past, for every server; 0 would mean no limit. */
const LONG_AGO = 1;

interface Heard {
  readonly at: Instant;
  readonly time: number;
  /** The {@link CommandRunner.connectionEpoch} in which it was heard. */
  readonly epoch: number;
}

export class ServerClock {
  readonly #runner: CommandRunner;
  /** The times by the master's address. */
  readonly #heard = new Map<string, Heard>();

  constructor(runner: CommandRunner) {
    this.#runner = runner;
  }

  /**
   * The time `ms` from now by the clock of the master that has this key, in epoch milliseconds; long past if it is not
   * known.
   */
  in(key: string, ms: number): number {
    const heard = this.#heard.get(this.#masterOf(key));
    if (heard?.epoch !== this.#runner.connectionEpoch) return LONG_AGO;
    return Math.max(LONG_AGO, Math.floor(heard.time + leastElapsedSince(this.#runner.clock, heard.at) + ms));
  }

  /** Reads the reply `{word, seconds}` of a call on this key: notes the time, and returns the word. */
  hear(key: string, reply: unknown): number {
    const [word, seconds] = (reply as unknown[]).map(Number) as [number, number];
    const heard = {
      at: instant(this.#runner.clock),
      time: seconds * 1_000,
      epoch: this.#runner.connectionEpoch,
    };
    this.#heard.set(this.#masterOf(key), heard);
    return word;
  }

  #masterOf(key: string): string {
    return masterAddress(this.#runner.connection, key);
  }
}
