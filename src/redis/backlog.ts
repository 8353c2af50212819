/** How much an outage may pile up: what is given up while Redis does not answer has to be kept until it does. */
import type { Clock } from "../base/clock.js";
import { RedisUnavailableError } from "../base/errors.js";

/** Calls of one client that were given up and have not been finished in the background; beyond it new ones are refused. */
export const MOST_UNFINISHED = 10_000;

export interface BacklogOptions {
  readonly clock: Clock;
  /** Milliseconds for which there may be more, as long as Redis answers. */
  readonly grace: number;
  /** Redis does not answer. */
  readonly away: () => boolean;
  /** Calls that are not undone yet. */
  readonly undoing: { readonly size: number };
}

export class Backlog {
  /** Commands that ioredis has, though nobody waits for them any more: it cannot be told to drop them. */
  readonly abandoned: Set<object> = new Set();
  readonly #options: BacklogOptions;
  #fullSince: number | undefined;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /** Asked before a call is sent, since what is not sent leaves nothing to undo: why there is no room for one more, if so. */
  refusal(lockName: string): RedisUnavailableError | undefined {
    if (this.abandoned.size < MOST_UNFINISHED && this.#options.undoing.size < MOST_UNFINISHED) {
      this.#fullSince = undefined;
      return undefined;
    }
    const { clock, grace, away, undoing } = this.#options;
    const now = clock.mono();
    this.#fullSince ??= now;
    if (!away() && now - this.#fullSince <= grace) return undefined;
    const unfinished = Math.max(this.abandoned.size, undoing.size);
    const why = `not sent, since ${unfinished} calls that were given up are still unfinished`;
    return new RedisUnavailableError(lockName, new Error(why));
  }
}
