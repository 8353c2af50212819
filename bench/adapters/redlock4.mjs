export const meta = {
  name: "redlock4",
  package: "redlock4",
  client: "ioredis",
  can: ["masters"],
  // It polls as redlock5 does.
  slow: ["hand-over", "between-processes", "idle-waiters", "redlock-contended"],
  notes: "defaults (tries every 200 ± 100 ms), endless tries; has no renewal of its own",
};

export async function create(env) {
  const { default: Redlock } = await import("redlock4");
  const redises = await env.connectAll();
  const redlock = new Redlock(redises, { retryCount: -1 });
  redlock.on("clientError", () => {});
  return {
    acquire: (key, ttl) => redlock.lock(key, ttl),
    release: (lock) => lock.unlock(),
    close() {
      for (const redis of redises) redis.disconnect();
    },
  };
}
