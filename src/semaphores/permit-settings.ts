/**
 * Calls that set something anew: the lease of a permit, or how many permits there are.
 *
 * Of such calls of one client the last one counts. They go on in the background if Redis gives no answer, each by
 * itself, so an earlier one may come through after a later one. Therefore they share a marker: it has the number of the
 * last call that was done, and a call with a lower number does nothing.
 */
import { callTombstone } from "../base/names.js";
import { permitsSet, permitsUpdate } from "../scripts/generated.js";
import type { KeptPermits } from "./kept-permits.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";
import { keysOf } from "./permit-want.js";

/** Sets the lease of a permit to `lease` milliseconds from now. Resolves with whether there is such a permit. */
export async function setLease(
  number: SharedNumber,
  permits: KeptPermits,
  id: string,
  lease: number,
): Promise<boolean> {
  const keys = { marker: sharedMarker(number, id), ...keysOf(number) };
  const call = number.env.mint();
  const kept = permits.get(number, id);
  const word = await number.give(
    (latest) => {
      kept?.updateSent(lease);
      const args = { id, lease, call, markerTtl: MARKER_TTL, latest, publish: number.publish };
      return { script: permitsUpdate, keys, args };
    },
    (work) => kept?.update(work),
    // A renewal that came through later would raise a lease that was made shorter.
    kept?.renewalOver(),
  );
  // A permit that was lost while there was no answer is on its way back.
  return word === 1 && !kept?.isLost;
}

/** Sets how many permits there are, free and out. */
export async function setLimit(number: SharedNumber, count: number): Promise<void> {
  const keys = { marker: sharedMarker(number, "limit"), ...keysOf(number) };
  const call = number.env.mint();
  await number.give((latest) => ({
    script: permitsSet,
    keys,
    args: { count, call, markerTtl: MARKER_TTL, latest, publish: number.publish },
  }));
}

/** The marker of all calls of this client that set the same. */
function sharedMarker({ key, env }: SharedNumber, what: string): string {
  return callTombstone(key, `${env.clientId}:${what}`);
}
