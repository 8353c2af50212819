import { GIVE_BACK, load, ownerId, run, TAKE } from "../lib/raw.mjs";

export const meta = {
  name: "raw-8-in-series",
  floor: true,
  client: "ioredis",
  notes: "all the keys of one call by raw's two scripts, one after the other",
};

export async function create(env) {
  const redis = await env.connect(0);
  await load([redis]);
  const value = ownerId();
  const each = async (keys, ask) => {
    for (const key of keys) if ((await ask(key)) !== 1) throw new Error("not free");
  };
  return {
    async acquire(names, ttl) {
      const keys = names.split(" ");
      await each(keys, (key) => run(redis, TAKE, key, value, ttl));
      return keys;
    },
    release: (keys) => each(keys, (key) => run(redis, GIVE_BACK, key, value)),
    close: () => redis.disconnect(),
  };
}
