/** Renews holds by a script that takes many keys of one slot, and answers with one word for each lock. */
import type { CommandRunner } from "../redis/command-runner.js";
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import type { Renewal, Renewer, Words } from "./watchdog.js";

/** Makes the script's keys and arguments of a batch. */
type CallOf<K, A> = (
  renewals: readonly Renewal<unknown>[],
  lease: number,
) => { readonly keys: K; readonly args: A };

export class ScriptRenewer<K extends KeyValues, A extends ArgumentValues> implements Renewer {
  readonly #runner: CommandRunner;
  readonly #lease: number;
  readonly #script: Script<K, A>;
  readonly #callOf: CallOf<K, A>;

  /** `lease`: milliseconds. */
  constructor(runner: CommandRunner, lease: number, script: Script<K, A>, callOf: CallOf<K, A>) {
    this.#runner = runner;
    this.#lease = lease;
    this.#script = script;
    this.#callOf = callOf;
  }

  renew(renewals: readonly Renewal<unknown>[], late: (words: Words) => void): Promise<Words> {
    const { keys, args } = this.#callOf(renewals, this.#lease);
    // A renewal without an answer is given up early enough for another try within the lease.
    const within = Math.min(this.#runner.commandTimeout, this.#lease / 3);
    // An error of this command concerns all locks of the batch, so the call names none.
    const call = { lockName: "", script: this.#script, keys, args, within, vital: true };
    const read = (reply: unknown) => {
      // A proxy may answer anything, and this answer has no call that could reject.
      if (Array.isArray(reply)) late(wordsOf(reply));
    };
    return this.#runner.call({ ...call, late: read }, wordsOf);
  }
}

function wordsOf(reply: unknown): Words {
  return (reply as unknown[]).map(Number);
}
