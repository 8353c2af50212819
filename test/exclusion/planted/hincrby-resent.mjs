// Wrong: a take counts up. ioredis sends a command again if its reply was lost, and then one hold counts as two.
import { Deadline, newToken, poll } from "./shared.mjs";

const TAKE = `
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`;

const GIVE = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 1 end
return redis.call('DEL', KEYS[1])`;

/** @returns {import("./shared.mjs").Adapter} */
export function connect(redis) {
  return {
    take: (name, wait, lease) =>
      poll(wait, async () => {
        const token = newToken();
        const deadline = new Deadline(lease);
        if ((await redis.eval(TAKE, 1, name, token, lease)) === 0) return null;
        return {
          get remaining() {
            return deadline.remaining;
          },
          get isHeld() {
            return deadline.remaining > 0;
          },
          unlock: () => redis.eval(GIVE, 1, name, token),
        };
      }),
  };
}
