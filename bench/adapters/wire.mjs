// The least scripts, sent by plain ioredis, give the bound of the format. They leave in Redis what a take and give back
// of this library leaves, and reply what its scripts reply.
import { createHash } from "node:crypto";
import { ownerId, quorum } from "../lib/raw.mjs";
import { sleep } from "../lib/stats.mjs";

export const meta = {
  name: "wire",
  floor: true,
  client: "ioredis",
  notes:
    "a hash with the owner's count, a message at the release, a tombstone: the effects and replies of this library's scripts, by EVALSHA; on several masters to all at once, up to a quorum. Refused: again after 1 ms",
  can: ["masters"],
};

const script = (text) => ({ text, sha: createHash("sha1").update(text).digest("hex") });

const TAKE = script(`if redis.call('exists', KEYS[1], KEYS[2]) == 0 then
  redis.call('hset', KEYS[1], ARGV[1], '1')
  redis.call('pexpire', KEYS[1], ARGV[2])
  return 1
end
if redis.call('exists', KEYS[2]) == 1 then return {2, 0} end
if redis.call('hexists', KEYS[1], ARGV[1]) == 1 then return 1 end
return {0, redis.call('pttl', KEYS[1])}`);
const GIVE_BACK = script(`if redis.call('hdel', KEYS[1], ARGV[1]) == 1 then
  redis.call('set', KEYS[3], '1', 'PX', ARGV[2])
  redis.call('publish', KEYS[2], '0')
  return 1
end
if redis.call('exists', KEYS[3]) == 1 then return 1 end
return -redis.call('exists', KEYS[1])`);
/** A nested take and its give back: the count and the TTL, unless this call is over. */
const NEST =
  script(`if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -redis.call('exists', KEYS[1]) end
redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
redis.call('pexpire', KEYS[1], ARGV[3])
return 1`);

const TOMBSTONE_MS = 60_000;

export async function create(env) {
  const redises = await env.connectAll();
  const [redis] = redises;
  await Promise.all(
    redises.flatMap((each) => [TAKE, GIVE_BACK, NEST].map(({ text }) => each.script("LOAD", text))),
  );
  const need = (redises.length >> 1) + 1;
  const all = async (...args) =>
    redises.length === 1
      ? (await redis.evalsha(...args)) === 1
      : quorum(
          redises.map((each) => each.evalsha(...args)),
          need,
        );
  const keysOf = (key) => ({
    key,
    channel: `redisson_lock__channel:{${key}}`,
    over: `redisson_unlock_latch:{${key}}:`,
  });
  const giveBack = ({ key, channel, tombstone, owner }) =>
    all(GIVE_BACK.sha, 3, key, channel, tombstone, owner, TOMBSTONE_MS);
  return {
    async acquire(key, ttl) {
      const { channel, over } = keysOf(key);
      for (;;) {
        const owner = ownerId();
        const held = { key, channel, tombstone: over + owner, owner };
        if (await all(TAKE.sha, 2, key, held.tombstone, owner, ttl)) return held;
        // On one master a refusal leaves nothing.
        if (redises.length > 1) await giveBack(held);
        await sleep(1);
      }
    },
    release: giveBack,
    async inside(key, ttl, act) {
      const owner = ownerId();
      const { over } = keysOf(key);
      const count = (n) => redis.evalsha(NEST.sha, 2, key, `${over}${owner}:${n}`, owner, n, ttl);
      await redis.hset(key, owner, 1);
      await redis.pexpire(key, ttl);
      await act(
        () => count(2),
        () => count(1),
      );
    },
    close() {
      for (const each of redises) each.disconnect();
    },
  };
}
