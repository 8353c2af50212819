import { GIVE_BACK, load, ownerId, run, TAKE } from "../lib/raw.mjs";

export const meta = {
  name: "raw-8-in-parallel",
  floor: true,
  client: "ioredis",
  notes: "all the keys of one call by raw's two scripts, all at once",
};

export async function create(env) {
  const redis = await env.connect(0);
  await load([redis]);
  const value = ownerId();
  const each = async (keys, ask) => {
    const answers = await Promise.all(keys.map(ask));
    if (answers.some((answer) => answer !== 1)) throw new Error("not free");
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
