/** One call to the server: sent, and sent again after failures that may pass, until it is answered or given up. */
import type { Clock } from "../base/clock.js";
import {
  ClientClosedError,
  isLockError,
  type LockError,
  type RedisUnavailableError,
} from "../base/errors.js";
import type { Timed } from "../base/shared-timeout.js";
import type { KeyValues } from "../scripts/script.js";
import type { AnyScriptCall, PlainCommand, Reader } from "./call.js";
import type { Connection } from "./connection.js";
import { finalError, forbidsKey, isMissingScript, isReply, isTimedOut, scrubbed } from "./failures.js";
import { forbiddenKeys } from "./forbidden.js";
import type { Sender } from "./sender.js";
import type { ServerHealth } from "./server-health.js";
import type { Servers } from "./servers.js";

/** Milliseconds before a failed call is sent again, the first time; doubled up to the longest. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

/** The runner, as its commands see it. */
export interface CommandHost {
  readonly clock: Clock;
  readonly connection: Connection;
  /** `commandTimeout`. */
  readonly limit: { readonly ms: number };
  /** Calls that have ended while ioredis still has their commands. */
  readonly backlog: { readonly abandoned: Set<object> };
  /** The error of a call that got no answer. */
  unavailable(lockName: string, cause: Error | undefined): RedisUnavailableError;
  readonly servers: Servers;
  readonly sender: Sender;
  /** No answer came in time. */
  silent(): void;
  /** The command has ended, in whatever way. */
  over(command: AnyCommand): void;
  /** The command goes on for another `commandTimeout`. */
  goOn(command: AnyCommand): void;
}

/** What is sent, and what becomes of the answer. */
export interface CommandSpec<T> {
  readonly call: AnyScriptCall | PlainCommand;
  readonly read: Reader<T>;
  /** Makes the script's call anew for each further sending. */
  readonly again?: () => AnyScriptCall;
  /** Turns a final failure into a result; undefined throws it. */
  readonly recover?: ((error: LockError) => T | undefined) | undefined;
  /** Makes the command go on after its time is up, until it is answered; called after each time-out. */
  readonly onSilence?: (() => void) | undefined;
  /** Milliseconds after which the command does not go on. */
  readonly giveUpAfter?: number | undefined;
}

/** A command of any result. */
export interface AnyCommand extends Timed {
  /** Cancels the timer of a command with a time-out of its own. */
  cancel: (() => void) | undefined;
  send(): void;
  close(): void;
}

/** What a command needs until it ends. */
interface Work<T> {
  readonly spec: CommandSpec<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** What a command needs after its first failure. */
interface Failures {
  cause: Error;
  /** Milliseconds until the command is sent again. */
  pause: number;
  cancelPause: (() => void) | undefined;
}

export class RetryingCommand<T> implements AnyCommand {
  declare next: this | undefined;
  declare prev: this | undefined;
  declare list: object | undefined;
  declare endsAt: number;
  declare cancel: (() => void) | undefined;
  /** See {@link AnyScriptCall.late}; the only thing that outlives the command's end. */
  declare readonly late?: (reply: unknown) => void;
  readonly #host: CommandHost;
  /** Undefined once the command has ended, since ioredis may keep this object for long after that. */
  #work: Work<T> | undefined;
  /** How often the command was sent. */
  #sent = 0;
  /** ioredis has the command. */
  #inFlight = false;
  /** The health of the server that owes the answer. */
  #health: ServerHealth | undefined;
  #failures: Failures | undefined;
  /** See {@link PlainCommand.blocks}. */
  readonly #blocks: boolean;
  #givenUpAt = Number.POSITIVE_INFINITY;

  constructor(
    host: CommandHost,
    spec: CommandSpec<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#host = host;
    this.#work = { spec, resolve, reject };
    this.#blocks = "blocks" in spec.call && spec.call.blocks === true;
    if ("late" in spec.call && spec.call.late) this.late = spec.call.late;
    if (spec.giveUpAfter !== undefined) this.#givenUpAt = host.clock.mono() + spec.giveUpAfter;
  }

  /** Sends the command, even while an earlier sending is unanswered: the script may run twice without harm. */
  send(anew = false): void {
    if (!this.#work) return;
    const { call: first, again } = this.#work.spec;
    this.#inFlight = true;
    const health = this.#host.servers.of(first.keys);
    if (health !== this.#health) {
      // Another server than before owes the answer.
      if (!this.#blocks) {
        this.#health?.callEnded();
        health.callBegun();
      }
      this.#health = health;
    }
    try {
      const call = this.#sent++ > 0 && again ? again() : first;
      const answer =
        "send" in call ? call.send() : this.#host.sender.send(call.script, call.keys, call.args, anew);
      answer.then(
        (reply) => this.#succeeded(reply),
        (error: unknown) => this.#failed(error),
      );
    } catch (error) {
      // The call cannot be sent, by a mistake of the caller. Thrown in a timer it would end the process.
      this.#end()?.reject(error);
    }
  }

  /** The command's time is up, its outcome unknown. */
  expire(): void {
    if (!this.#work) return;
    const { call, onSilence } = this.#work.spec;
    this.#health?.gaveUp();
    this.#host.silent();
    onSilence?.();
    if (onSilence && !this.#givenUp) {
      this.#host.goOn(this);
      // ioredis keeps the command until the connection breaks, and then sends it again or rejects it, so further sendings
      // would pile up. But if the key has another master by now, the command has to go there.
      if (this.#host.servers.of(call.keys) !== this.#health) this.send();
      return;
    }
    const ended = this.#end();
    if (!ended) return;
    if (this.#inFlight) this.#host.backlog.abandoned.add(this);
    ended.reject(this.#host.unavailable(call.lockName, this.#failures?.cause));
  }

  /** The runner was closed. */
  close(): void {
    const ended = this.#end();
    ended?.reject(new ClientClosedError(ended.spec.call.lockName));
  }

  #succeeded(reply: unknown): void {
    this.#health?.answered();
    const ended = this.#end();
    if (!ended) {
      this.#host.backlog.abandoned.delete(this);
      this.late?.(reply);
      return;
    }
    try {
      ended.resolve(ended.spec.read(reply));
    } catch (error) {
      // A proxy, or a server that is not Redis, may answer anything.
      const strange = new Error("the reply is none that this script gives");
      ended.reject(isLockError(error) ? error : this.#host.unavailable(ended.spec.call.lockName, strange));
    }
  }

  #failed(error: unknown): void {
    this.#inFlight = false;
    if (!this.#work) {
      this.#host.backlog.abandoned.delete(this);
      return;
    }
    if (isMissingScript(error)) return this.send(true);
    const { call, onSilence } = this.#work.spec;
    const { lockName, keys } = call;
    const final = finalError(error, lockName, onSilence !== undefined);
    if (final && keys && forbidsKey(error)) return this.#nameKeys(error, keys);
    if (final) return this.#refused(final);
    this.#failures?.cancelPause?.();
    this.#failures ??= { cause: scrubbed(error), pause: FIRST_PAUSE, cancelPause: undefined };
    const failures = this.#failures;
    failures.cause = scrubbed(error);
    if (this.#health && isReply(error)) this.#health.refusal = failures.cause;
    if (this.#givenUp) return this.#refused(this.#host.unavailable(lockName, failures.cause));
    failures.cancelPause = this.#host.clock.after(failures.pause, () => this.send());
    // A command that ioredis timed out is still on the connection, where fast retries would pile up.
    const longest = isTimedOut(error) ? this.#host.limit.ms : LONGEST_PAUSE;
    failures.pause = Math.min(2 * failures.pause, longest);
  }

  /** The user lacks rights for good; the error tells which keys are forbidden. */
  #nameKeys(error: unknown, keys: KeyValues): void {
    void forbiddenKeys(this.#host.connection, keys).then((forbidden) => {
      if (!this.#work) return;
      const { call, onSilence } = this.#work.spec;
      this.#refused(finalError(error, call.lockName, onSilence !== undefined, forbidden) as LockError);
    });
  }

  get #givenUp(): boolean {
    return this.#givenUpAt !== Number.POSITIVE_INFINITY && this.#host.clock.mono() >= this.#givenUpAt;
  }

  #refused(error: LockError): void {
    const ended = this.#end();
    if (!ended) return;
    const value = ended.spec.recover?.(error);
    if (value === undefined) ended.reject(error);
    else ended.resolve(value);
  }

  /** Ends the command; undefined if it had ended before. */
  #end(): Work<T> | undefined {
    const work = this.#work;
    if (!work) return undefined;
    this.#work = undefined;
    const failures = this.#failures;
    failures?.cancelPause?.();
    if (failures) failures.cancelPause = undefined;
    this.cancel?.();
    if (this.cancel) this.cancel = undefined;
    if (!this.#blocks) this.#health?.callEnded();
    this.#host.over(this);
    return work;
  }
}
