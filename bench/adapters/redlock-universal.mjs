import { drop, hold } from "../lib/using.mjs";

export const meta = {
  name: "redlock-universal",
  package: "redlock-universal",
  client: "ioredis",
  can: ["masters", "renew"],
  notes:
    "defaults (tries every 100 ms, 200 ms on several masters), 1e9 attempts; one lock object a key, which is kept. It asks for Node 22",
};

export async function create(env) {
  const { createLock, createRedlock, IoredisAdapter } = await import("redlock-universal");
  const redises = await env.connectAll();
  const adapters = redises.map((redis) => new IoredisAdapter(redis));
  const locks = new Map();
  const lockOf = (key, ttl) => {
    let lock = locks.get(key);
    if (!lock) {
      const options = { key, ttl, retryAttempts: 1e9 };
      const [adapter] = adapters;
      lock =
        adapters.length === 1 ? createLock({ adapter, ...options }) : createRedlock({ adapters, ...options });
      locks.set(key, lock);
    }
    return lock;
  };
  return {
    async acquire(key, ttl) {
      const lock = lockOf(key, ttl);
      return { lock, handle: await lock.acquire() };
    },
    release: ({ lock, handle }) => lock.release(handle),
    hold: (key, ttl) => hold((routine) => lockOf(key, ttl).using(routine)),
    drop,
    close() {
      for (const redis of redises) redis.disconnect();
    },
  };
}
