// Wrong: one command takes the lock, and another one sets its TTL. A process that dies in between closes it for ever.
import { Deadline, deleteOwn, newToken, poll } from "./shared.mjs";

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis) {
  return {
    take: (name, wait, lease) =>
      poll(wait, async () => {
        const token = newToken();
        const deadline = new Deadline(lease);
        if (await redis.exists(name)) return null;
        if ((await redis.getset(name, token)) !== null) return null;
        await redis.pexpire(name, lease);
        return {
          get remaining() {
            return deadline.remaining;
          },
          get isHeld() {
            return deadline.remaining > 0;
          },
          unlock: () => deleteOwn(redis, name, token),
        };
      }),
  };
}
