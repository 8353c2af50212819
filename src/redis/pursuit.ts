/** One call on its way to an answer: sent, and sent again while failures may pass, until it is answered or given up. */
import type { Clock } from "../base/clock.js";
import { ClientClosedError, type LockError, type RedisUnavailableError } from "../base/errors.js";
import type { Limited } from "../base/time-limit.js";
import type { KeyValues } from "../scripts/script.js";
import type { Connection } from "./connection.js";
import { finalError, forbidsKey, isMissingScript, scrubbed } from "./failures.js";
import { forbiddenKeys } from "./forbidden.js";

/** Milliseconds before a failed call is sent again, the first time; doubled up to the longest. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/** Who keeps the pursuits. */
export interface PursuitHost {
  readonly clock: Clock;
  readonly connected: boolean;
  readonly connection: Connection;
  unavailable(lockName: string, cause: Error | undefined): RedisUnavailableError;
  /** An answer came that could be used. */
  answered(): void;
  /** No answer came in time. */
  silent(): void;
  /** The pursuit has ended, in whatever way. */
  over(pursuit: AnyPursuit): void;
  /** Its time is up, but it goes on. */
  goOn(pursuit: AnyPursuit): void;
}

/** What is pursued, and how. */
export interface Pursued<T> {
  readonly lockName: string;
  /** Sends it once. `anew`: the server did not know the script. */
  readonly send: (anew: boolean) => Promise<unknown>;
  /** The keys of a script. */
  readonly keys?: KeyValues | undefined;
  /** Reads the reply. */
  readonly read: (reply: unknown) => T;
  /** What a failure for good means, if it is not to be thrown. */
  readonly recover?: ((error: LockError) => T | undefined) | undefined;
  /** Goes on after its time is up, until it is answered; told each time, for who waits for the outcome. */
  readonly onSilence?: (() => void) | undefined;
  /** Milliseconds after which it does not go on. */
  readonly patience?: number | undefined;
}

/** A pursuit of any result. */
export interface AnyPursuit extends Limited {
  /** Ends the timer of one that does not run under the common limit. */
  cancel: (() => void) | undefined;
  send(): void;
  close(): void;
}

export class Pursuit<T> implements AnyPursuit {
  next: this | undefined;
  prev: this | undefined;
  list: object | undefined;
  endsAt = 0;
  cancel: (() => void) | undefined;
  readonly #host: PursuitHost;
  readonly #pursued: Pursued<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  #open = true;
  #cause: Error | undefined;
  #pause = FIRST_PAUSE;
  #cancelPause: (() => void) | undefined;
  readonly #givenUpAt: number;

  constructor(
    host: PursuitHost,
    pursued: Pursued<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#pursued = pursued;
    this.#resolve = resolve;
    this.#reject = reject;
    const { patience } = pursued;
    this.#givenUpAt = patience === undefined ? Number.POSITIVE_INFINITY : host.clock.mono() + patience;
  }

  /** Sends the command; also while an earlier sending is unanswered, since running it twice is as good as once. */
  send(anew = false): void {
    this.#pursued.send(anew).then(
      (reply) => this.#succeeded(reply),
      (error: unknown) => this.#failed(error),
    );
  }

  /** Its time is up with the outcome unknown. */
  expire(): void {
    const { lockName, onSilence } = this.#pursued;
    this.#host.silent();
    onSilence?.();
    if (onSilence && !this.#givenUp) {
      this.#host.goOn(this);
      // Without a connection ioredis has what was sent before: more of it would only pile up.
      if (this.#host.connected) this.send();
    } else if (this.#end()) this.#reject(this.#host.unavailable(lockName, this.#cause));
  }

  /** The link was closed. */
  close(): void {
    if (this.#end()) this.#reject(new ClientClosedError(this.#pursued.lockName));
  }

  #succeeded(reply: unknown): void {
    this.#host.answered();
    if (!this.#end()) return;
    try {
      this.#resolve(this.#pursued.read(reply));
    } catch (error) {
      this.#reject(error);
    }
  }

  #failed(error: unknown): void {
    if (!this.#open) return;
    if (isMissingScript(error)) return this.send(true);
    const { lockName, keys } = this.#pursued;
    const final = finalError(error, lockName);
    if (final && keys && forbidsKey(error)) return this.#nameKeys(error, keys);
    if (final) return this.#refused(final);
    this.#cause = scrubbed(error);
    this.#cancelPause?.();
    if (this.#givenUp) return this.#refused(this.#host.unavailable(lockName, this.#cause));
    this.#cancelPause = this.#host.clock.after(this.#pause, () => this.send());
    this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
  }

  /** It will not pass; the user is told which keys are forbidden. */
  #nameKeys(error: unknown, keys: KeyValues): void {
    void forbiddenKeys(this.#host.connection, keys).then((forbidden) => {
      this.#refused(finalError(error, this.#pursued.lockName, forbidden) as LockError);
    });
  }

  get #givenUp(): boolean {
    return this.#givenUpAt !== Number.POSITIVE_INFINITY && this.#host.clock.mono() >= this.#givenUpAt;
  }

  #refused(error: LockError): void {
    if (!this.#end()) return;
    const value = this.#pursued.recover?.(error);
    if (value === undefined) this.#reject(error);
    else this.#resolve(value);
  }

  /** True the first time. */
  #end(): boolean {
    if (!this.#open) return false;
    this.#open = false;
    this.#cancelPause?.();
    this.cancel?.();
    this.#host.over(this);
    return true;
  }
}
