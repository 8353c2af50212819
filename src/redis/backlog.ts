/**
 * Limits how much an outage piles up: a call that is given up while Redis does not answer has to be kept until it does.
 */
import { RedisUnavailableError } from "../base/errors.js";
import type { CommandRunner } from "./command-runner.js";

/** So many calls of one client may be given up and unfinished in the background; with more, new calls are refused. */
export const MOST_UNFINISHED = 10_000;

export class Backlog {
  /** Commands that were given up but are still with ioredis, which cannot be told to drop them. */
  readonly abandoned: Set<object> = new Set();
  readonly #runner: CommandRunner;
  #fullSince: number | undefined;

  constructor(runner: CommandRunner) {
    this.#runner = runner;
  }

  /**
   * The error that refuses one more call; undefined if there is room for it. Asked before the call is sent, since a
   * call that was not sent leaves nothing to undo. For `commandTimeout` there may be more, as long as Redis answers.
   */
  refusal(lockName: string): RedisUnavailableError | undefined {
    const { cleanUp, clock, commandTimeout, servers } = this.#runner;
    const unfinished = Math.max(this.abandoned.size, cleanUp.size);
    if (unfinished < MOST_UNFINISHED) {
      this.#fullSince = undefined;
      return undefined;
    }
    const now = clock.mono();
    this.#fullSince ??= now;
    if (!servers.away && now - this.#fullSince <= commandTimeout) return undefined;
    const why = `not sent, since ${unfinished} calls that were given up are still unfinished`;
    return new RedisUnavailableError(lockName, new Error(why));
  }
}
