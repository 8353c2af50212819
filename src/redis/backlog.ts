/**
 * Limits how much an outage piles up: a call that is given up while Redis does not answer has to be kept until it does.
 */
import type { Clock } from "../base/clock.js";
import { RedisUnavailableError } from "../base/errors.js";

/** So many calls of one client may be given up and unfinished in the background; with more, new calls are refused. */
export const MOST_UNFINISHED = 10_000;

export interface BacklogOptions {
  readonly clock: Clock;
  /** Milliseconds for which there may be more, as long as Redis answers. */
  readonly grace: number;
  /** True while Redis does not answer. */
  readonly away: () => boolean;
  /** The calls that were given up and are not undone yet. */
  readonly undoing: { readonly size: number };
}

export class Backlog {
  /** Commands that were given up but are still with ioredis, which cannot be told to drop them. */
  readonly abandoned: Set<object> = new Set();
  readonly #options: BacklogOptions;
  #fullSince: number | undefined;

  constructor(options: BacklogOptions) {
    this.#options = options;
  }

  /**
   * The error that refuses one more call; undefined if there is room for it. Asked before the call is sent, since a
   * call that was not sent leaves nothing to undo.
   */
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
