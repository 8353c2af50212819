/** One call on its way to an answer: sent, and sent again while failures may pass, until it is answered or given up. */
import type { Clock } from "../base/clock.js";
import { ClientClosedError, RedisUnavailableError } from "../base/errors.js";
import { finalError, passingCause } from "./failures.js";

const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

export interface PursuitOptions<T> {
  readonly clock: Clock;
  readonly lockName: string;
  readonly send: () => Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
  /** Called once, when the call is over in any way. */
  readonly over: () => void;
  /** Called at each answer that could be used. */
  readonly answered: () => void;
}

export class Pursuit<T> {
  readonly #options: PursuitOptions<T>;
  #open = true;
  #cause: Error | undefined;
  #pause = FIRST_PAUSE;
  #cancelPause: (() => void) | undefined;

  constructor(options: PursuitOptions<T>) {
    this.#options = options;
  }

  /** Sends the command; also while an earlier sending is unanswered, since running it twice is as good as once. */
  send(): void {
    const { send, resolve, answered } = this.#options;
    send().then(
      (value) => {
        answered();
        if (this.#end()) resolve(value);
      },
      (error: unknown) => this.#failed(error),
    );
  }

  /** Nobody waits any longer: the outcome is unknown. */
  giveUp(): void {
    const { lockName, reject } = this.#options;
    if (this.#end()) reject(new RedisUnavailableError(lockName, this.#cause));
  }

  /** The link was closed. */
  close(): void {
    const { lockName, reject } = this.#options;
    if (this.#end()) reject(new ClientClosedError(lockName));
  }

  #failed(error: unknown): void {
    if (!this.#open) return;
    const { clock, lockName, reject } = this.#options;
    const final = finalError(error, lockName);
    if (final) {
      if (this.#end()) reject(final);
      return;
    }
    this.#cause = passingCause(error);
    this.#cancelPause?.();
    this.#cancelPause = clock.after(this.#pause, () => this.send());
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** True the first time. */
  #end(): boolean {
    if (!this.#open) return false;
    this.#open = false;
    this.#cancelPause?.();
    this.#options.over();
    return true;
  }
}
