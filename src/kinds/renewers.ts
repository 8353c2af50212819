/** How holds are renewed on the wire, many at a time. */
import type { Renewers } from "../locks/env.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { lockRenew, readRenew } from "../scripts/generated.js";
import { ScriptRenewer } from "../watchdog/script-renewer.js";
import type { Renewal } from "../watchdog/watchdog.js";

export function makeRenewers(runner: CommandRunner, lease: number): Renewers {
  return {
    lock: new ScriptRenewer(runner, lease, lockRenew, renewCall),
    read: new ScriptRenewer(runner, lease, readRenew, renewCall),
  };
}

/** The keys are all locks, then the extra keys of their holds. The arguments name one owner for each lock. */
function renewCall(renewals: readonly Renewal<unknown>[], lease: number) {
  const locks = renewals.map(({ key }) => key);
  return {
    keys: { locks: locks.concat(renewals.flatMap(({ extraKeys }) => extraKeys)) },
    args: { lease, owners: renewals.map(({ field }) => field) },
  };
}
