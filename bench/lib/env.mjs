// What an adapter gets: connections to the servers of its scenario.

const ready = (redis) =>
  redis.status === "ready"
    ? Promise.resolve()
    : new Promise((resolve) => {
        redis.once("ready", resolve);
      });

/** `config`: `servers`, a list of `{ host, port }`, and what the variant says (`ttl` of renewed locks). */
export function makeEnv(config, loadRedis) {
  const env = {
    ...config,
    /** A ready ioredis client of server i; the adapter may pass options. */
    async connect(i = 0, options = {}) {
      const Redis = await loadRedis();
      const redis = new Redis({ ...config.servers[i], ...options });
      redis.on("error", () => {});
      await ready(redis);
      return redis;
    },
    /** One of each server. */
    connectAll: (options) => Promise.all(config.servers.map((_, i) => env.connect(i, options))),
  };
  return env;
}
