/** How grants are renewed on the wire, many at a time. */

import type { Renewers } from "../env.js";
import type { CommandRunner } from "../redis/command-runner.js";
import { plainKeep, readWriteKeep } from "../scripts/generated.js";
import { ScriptRenewer } from "../watchdog/script-renewer.js";
import type { Renewal } from "../watchdog/watchdog.js";

type Batch = readonly Renewal<unknown>[];

const ownersOf = (batch: Batch) => batch.map(({ field }) => field);
/** Renewals leave the counts as they are. */
const unchanged = (batch: Batch) => batch.map(() => "");

export function makeRenewers(runner: CommandRunner, lease: number): Renewers {
  return {
    plain: new ScriptRenewer(runner, lease, plainKeep, (batch) => ({
      keys: { locks: batch.map(({ key }) => key) },
      args: { lease, owners: ownersOf(batch), counts: unchanged(batch) },
    })),
    readWrite: new ScriptRenewer(runner, lease, readWriteKeep, (batch) => ({
      keys: { locks: [...batch.map(({ key }) => key), ...batch.flatMap(({ extraKeys }) => extraKeys)] },
      args: { lease, owners: ownersOf(batch), reads: unchanged(batch), writes: unchanged(batch) },
    })),
  };
}
