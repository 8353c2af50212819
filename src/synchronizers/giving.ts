/** What is done alike to the free permits of a semaphore of either kind. */
import { checkInteger } from "../base/arguments.js";
import { counterTrySet, semaphoreRelease } from "../scripts/generated.js";
import { MARKER_TTL, type SharedNumber } from "./number.js";

/** Sets the number of permits, unless that was done before. */
export async function trySetPermits(number: SharedNumber, permits: number): Promise<boolean> {
  const count = checkInteger(permits, "permits", 0);
  number.env.assertOpen(number.name);
  const marker = number.marker();
  const set = await number.give(() => ({
    script: counterTrySet,
    keys: { number: number.key, channel: number.channel, marker },
    args: { count, message: String(count), markerTtl: MARKER_TTL, publish: number.publish },
  }));
  return set === 1;
}

/** Makes more permits. */
export async function addPermits(number: SharedNumber, permits: number): Promise<void> {
  const count = checkInteger(permits, "permits", 1);
  number.env.assertOpen(number.name);
  await giveBack(number, count);
}

/** To Redis, new permits are as good as those that are given back. */
export async function giveBack(number: SharedNumber, count: number): Promise<void> {
  const marker = number.marker();
  await number.give(() => ({
    script: semaphoreRelease,
    keys: { permits: number.key, channel: number.channel, marker },
    args: { count, markerTtl: MARKER_TTL, publish: number.publish },
  }));
}
