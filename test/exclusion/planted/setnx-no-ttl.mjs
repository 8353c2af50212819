// Wrong: the lock has no TTL. A process that dies inside closes it for ever.
import { deleteOwn, newToken, poll } from "./shared.mjs";

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis) {
  return {
    take: (name, wait) =>
      poll(wait, async () => {
        const token = newToken();
        if ((await redis.setnx(name, token)) === 0) return null;
        return { remaining: 60_000, isHeld: true, unlock: () => deleteOwn(redis, name, token) };
      }),
  };
}
