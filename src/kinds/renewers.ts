/** How grants are renewed on the wire, many at a time. Renewals leave the counts as they are. */
import { plainKeep, readWriteKeep } from "../scripts/generated.js";
import type { Renewal, RenewalScript } from "../watchdog/watchdog.js";

const ownersOf = (batch: readonly Renewal[]) => batch.map(({ field }) => field);
const unchanged = (batch: readonly Renewal[]) => batch.map(() => "");

export const renewPlain: RenewalScript = (batch, lease) => ({
  script: plainKeep,
  keys: { locks: batch.map(({ key }) => key) },
  args: { lease, owners: ownersOf(batch), counts: unchanged(batch) },
});

export const renewReadWrite: RenewalScript = (batch, lease) => ({
  script: readWriteKeep,
  keys: { locks: [...batch.map(({ key }) => key), ...batch.flatMap(({ extraKeys }) => extraKeys)] },
  args: { lease, owners: ownersOf(batch), reads: unchanged(batch), writes: unchanged(batch) },
});
