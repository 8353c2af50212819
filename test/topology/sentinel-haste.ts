/** When sentinels take a master for dead: never before a test ends it, however busy the machine is; soon after that. */
import type { RedisSentinel } from "../support/index.js";

/** Milliseconds of silence that sentinels tolerate. */
export const CALM = 15_000;
const HASTY = 500;

/** From now on the sentinels replace a missing master as soon as possible. */
export async function makeHasty({ sentinels, name }: RedisSentinel): Promise<void> {
  const command = ["SENTINEL", "SET", name, "down-after-milliseconds", HASTY];
  await Promise.all(sentinels.map((sentinel) => sentinel.call(...command)));
}
