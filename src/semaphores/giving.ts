/** Changes the free permits of a semaphore of either kind. */
import { checkInteger } from "../base/arguments.js";
import { noop } from "../base/work.js";
import { semaphoreRelease } from "../scripts/generated.js";
import { MARKER_TTL, type OnWork, type SharedNumber } from "./number.js";

/** Sets the number of permits, unless that was done before. */
export async function trySetPermits(number: SharedNumber, permits: number): Promise<boolean> {
  const count = checkInteger(permits, "permits", 0);
  return number.trySet(count, String(count));
}

/** Makes more permits. */
export async function addPermits(number: SharedNumber, permits: number): Promise<void> {
  const count = checkInteger(permits, "permits", 1);
  number.env.assertOpen(number.lockName);
  // Redisson's message for new permits with a lease is how many are new; for all others it is how many are free.
  await add(number, count, number.kind === "permits" ? String(count) : "");
}

/**
 * Gives back permits that were taken. The event `released` comes when Redis has answered, however late; `held`:
 * milliseconds since the grant.
 */
export function giveBack(number: SharedNumber, count: number, held?: number): Promise<void> {
  const released = () => number.emit("released", held === undefined ? {} : { held });
  return add(number, count, "", (work) => void work.then(released, noop));
}

/**
 * Adds permits, given back or new: Redis does not tell these apart. `message`: what waiters are told; empty for the
 * total.
 */
export async function add(
  number: SharedNumber,
  count: number,
  message: string,
  onWork?: OnWork,
): Promise<void> {
  const marker = number.marker();
  const make = (latest: number) => ({
    script: semaphoreRelease,
    keys: { permits: number.key, channel: number.channel, marker },
    args: { count, message, markerTtl: MARKER_TTL, latest, publish: number.publish },
  });
  await number.give(make, onWork);
}
