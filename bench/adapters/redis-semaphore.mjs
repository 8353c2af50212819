export const meta = {
  name: "redis-semaphore",
  package: "redis-semaphore",
  client: "ioredis",
  can: ["masters", "renew"],
  notes:
    "Mutex (RedlockMutex on several masters); defaults (tries every 10 ms, renews at 80 % of the TTL), acquireTimeout 1 h",
};

const ENDLESS = 3_600_000;

export async function create(env) {
  const { default: library } = await import("redis-semaphore");
  const redises = await env.connectAll();
  const make = (key, lockTimeout) => {
    const options = { lockTimeout, acquireTimeout: ENDLESS };
    return redises.length === 1
      ? new library.Mutex(redises[0], key, options)
      : new library.RedlockMutex(redises, key, options);
  };
  const acquire = async (key, ttl) => {
    const mutex = make(key, ttl);
    await mutex.acquire();
    return mutex;
  };
  return {
    acquire,
    release: (mutex) => mutex.release(),
    hold: acquire,
    drop: (mutex) => mutex.release(),
    close() {
      for (const redis of redises) redis.disconnect();
    },
  };
}
