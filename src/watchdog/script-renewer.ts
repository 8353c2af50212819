/** Renewals by a script that takes many keys of one slot, and answers with one word for each. */
import type { Link } from "../redis/link.js";
import type { ArgumentValues, KeyValues, Script } from "../scripts/script.js";
import type { Renewal, Renewer } from "./watchdog.js";

export interface Laid<K, A> {
  readonly keys: K;
  readonly args: A;
}

export class ScriptRenewer<K extends KeyValues, A extends ArgumentValues> implements Renewer {
  readonly #link: Link;
  readonly #lease: number;
  readonly #script: Script<K, A>;
  readonly #lay: (renewals: readonly Renewal[], lease: number) => Laid<K, A>;

  /** `lease`: milliseconds; `lay` makes the script's keys and arguments of a batch. */
  constructor(
    link: Link,
    lease: number,
    script: Script<K, A>,
    lay: (renewals: readonly Renewal[], lease: number) => Laid<K, A>,
  ) {
    this.#link = link;
    this.#lease = lease;
    this.#script = script;
    this.#lay = lay;
  }

  renew(renewals: readonly Renewal[]): Promise<readonly number[]> {
    const { keys, args } = this.#lay(renewals, this.#lease);
    // Given up in time for another try within the lease.
    const within = Math.min(this.#link.commandTimeout, this.#lease / 3);
    const call = { lockName: renewals[0]?.key ?? "", script: this.#script, keys, args, within, vital: true };
    return this.#link.call(call, (reply) => (reply as unknown[]).map(Number));
  }
}
