/** How grants are renewed on the wire, many at a time. Renewals leave the counts as they are. */
import { plainKeep, readWriteKeep } from "../scripts/generated.js";
import type { RenewalScript } from "../watchdog/watchdog.js";

export const renewPlain: RenewalScript = (batch, lease) =>
  plainKeep.with(
    batch.map(({ key }) => key),
    [lease, ...batch.flatMap(({ field }) => [field, ""])],
  );

export const renewReadWrite: RenewalScript = (batch, lease) =>
  readWriteKeep.with(
    [...batch.map(({ key }) => key), ...batch.flatMap(({ extraKeys }) => extraKeys)],
    [lease, ...batch.flatMap(({ field }) => [field, "", ""])],
  );
