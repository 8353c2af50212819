// Wrong: the unlock deletes the key without checking the owner. A late unlock frees the lock of another owner.
import { Deadline, newToken, poll } from "./shared.mjs";

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis) {
  return {
    take: (name, wait, lease) =>
      poll(wait, async () => {
        const deadline = new Deadline(lease);
        if ((await redis.set(name, newToken(), "PX", lease, "NX")) === null) return null;
        return {
          get remaining() {
            return deadline.remaining;
          },
          get isHeld() {
            return deadline.remaining > 0;
          },
          unlock: () => redis.del(name),
        };
      }),
  };
}
