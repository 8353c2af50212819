// Wrong: the renewal does not check the owner. A holder that stood still past its lease takes the lock from another.
import { Deadline, deleteOwn, newToken, poll } from "./shared.mjs";

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis) {
  return {
    take: (name, wait, lease) =>
      poll(wait, async () => {
        const token = newToken();
        let deadline = new Deadline(lease);
        if ((await redis.set(name, token, "PX", lease, "NX")) === null) return null;
        const timer = setInterval(async () => {
          const renewed = new Deadline(lease);
          await redis.set(name, token, "PX", lease);
          deadline = renewed;
        }, lease / 3);
        return {
          get remaining() {
            return deadline.remaining;
          },
          get isHeld() {
            return deadline.remaining > 0;
          },
          unlock: () => {
            clearInterval(timer);
            return deleteOwn(redis, name, token);
          },
        };
      }),
  };
}
