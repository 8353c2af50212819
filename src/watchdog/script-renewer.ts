/** Renews holds by a script that takes many keys of one slot, and answers with one word for each lock. */
import type { CommandRunner } from "../redis/command-runner.js";
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import type { Renewal, Renewer } from "./watchdog.js";

export interface RenewCall<K, A> {
  readonly keys: K;
  readonly args: A;
}

export class ScriptRenewer<K extends KeyValues, A extends ArgumentValues> implements Renewer {
  readonly #runner: CommandRunner;
  readonly #lease: number;
  readonly #script: Script<K, A>;
  readonly #call: (renewals: readonly Renewal<unknown>[], lease: number) => RenewCall<K, A>;

  /** `lease`: milliseconds; `call` makes the script's keys and arguments of a batch. */
  constructor(
    runner: CommandRunner,
    lease: number,
    script: Script<K, A>,
    call: (renewals: readonly Renewal<unknown>[], lease: number) => RenewCall<K, A>,
  ) {
    this.#runner = runner;
    this.#lease = lease;
    this.#script = script;
    this.#call = call;
  }

  renew(renewals: readonly Renewal<unknown>[]): Promise<readonly number[]> {
    const { keys, args } = this.#call(renewals, this.#lease);
    // A renewal without an answer is given up early enough for another try within the lease.
    const within = Math.min(this.#runner.commandTimeout, this.#lease / 3);
    // An error of this command concerns all locks of the batch, so the call names none.
    const sent = { lockName: "", script: this.#script, keys, args, within, vital: true };
    return this.#runner.call(sent, (reply) => (reply as unknown[]).map(Number));
  }
}
