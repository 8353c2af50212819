/** How holds are renewed on the wire, many at a time. */
import type { Link } from "../redis/link.js";
import { lockRenew, readRenew } from "../scripts/generated.js";
import type { Renewal, Renewer } from "../watchdog/watchdog.js";

/** Renews by a script that takes locks and their owners, and answers with one word for each. */
class ScriptRenewer implements Renewer {
  readonly #link: Link;
  readonly #lease: number;
  readonly #script: typeof lockRenew;

  /** `lease`: milliseconds. */
  constructor(link: Link, lease: number, script: typeof lockRenew) {
    this.#link = link;
    this.#lease = lease;
    this.#script = script;
  }

  renew(renewals: readonly Renewal[]): Promise<readonly number[]> {
    const locks = renewals.map(({ key }) => key);
    const keys = { locks: locks.concat(renewals.flatMap(({ besides }) => besides)) };
    const args = { lease: this.#lease, owners: renewals.map(({ field }) => field) };
    // Given up in time for another try within the lease.
    const within = Math.min(this.#link.commandTimeout, this.#lease / 3);
    const call = { lockName: renewals[0]?.key ?? "", script: this.#script, keys, args, within };
    return this.#link.call(call, (reply) => (reply as unknown[]).map(Number));
  }
}

/** The renewers of one client: batches of them are sent together. */
export interface Renewers {
  /** Of holds that live as long as their lock: plain, fenced, fair, and the write side. */
  readonly lock: Renewer;
  /** Of read holds, which have leases of their own. */
  readonly read: Renewer;
}

export function makeRenewers(link: Link, lease: number): Renewers {
  return {
    lock: new ScriptRenewer(link, lease, lockRenew),
    read: new ScriptRenewer(link, lease, readRenew),
  };
}
