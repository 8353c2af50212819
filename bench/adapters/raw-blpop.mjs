// The floor of a hand-over between processes: a token in a list. BLPOP takes it (Redis serves who is blocked first come first
// served), RPUSH gives it back. Two commands and no polling; a bound for hand-overs, not a lock.
export const meta = {
  name: "raw-blpop",
  floor: true,
  unsafe: true,
  client: "ioredis",
  notes: "BLPOP and RPUSH of a token: no TTL, no owner, a connection for each waiter",
};

export async function create(env) {
  const main = await env.connect(0);
  const idle = [];
  return {
    prepare: (key) => main.rpush(key, "token"),
    async acquire(key) {
      const redis = idle.pop() ?? (await env.connect(0));
      await redis.blpop(key, 0);
      idle.push(redis);
      return { key };
    },
    release: ({ key }) => main.rpush(key, "token"),
    close() {
      for (const redis of [main, ...idle]) redis.disconnect();
    },
  };
}
