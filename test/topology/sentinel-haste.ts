/** When sentinels take a master for dead: not before a test ends it, however busy the machine is, and soon afterwards. */
import type { RedisSentinel } from "../support/index.js";

/** Milliseconds of silence that mean nothing. */
export const CALM = 15_000;
const HASTY = 500;

/** From now on the sentinels replace a master that is gone, as soon as they may. */
export async function makeHasty({ sentinels, name }: RedisSentinel): Promise<void> {
  const command = ["SENTINEL", "SET", name, "down-after-milliseconds", HASTY];
  await Promise.all(sentinels.map((sentinel) => sentinel.call(...command)));
}
