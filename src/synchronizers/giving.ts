/** What is done alike to the free permits of a semaphore of either kind. */
import { checkInteger } from "../base/arguments.js";
import { semaphoreRelease } from "../scripts/generated.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";

/** Sets the number of permits, unless that was done before. */
export async function trySetPermits(number: SharedNumber, permits: number): Promise<boolean> {
  const count = checkInteger(permits, "permits", 0);
  return number.trySet(count, String(count));
}

/** Makes more permits. */
export async function addPermits(number: SharedNumber, permits: number): Promise<void> {
  const count = checkInteger(permits, "permits", 1);
  number.env.assertOpen(number.name);
  // What Redisson tells of new permits with a lease is how many they are, of all others how many are free.
  await giveBack(number, count, number.kind === "permits" ? String(count) : "");
}

/** To Redis, new permits are as good as those that are given back. `message`: what waiters are told, if not the total. */
export async function giveBack(number: SharedNumber, count: number, message: string = ""): Promise<void> {
  const marker = number.marker();
  await number.give((latest) => ({
    script: semaphoreRelease,
    keys: { permits: number.key, channel: number.channel, marker },
    args: { count, message, markerTtl: MARKER_TTL, latest, publish: number.publish },
  }));
}
