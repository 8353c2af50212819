import { drop, hold } from "../lib/using.mjs";

export const meta = {
  name: "redlock5",
  package: "redlock5",
  client: "ioredis",
  can: ["masters", "renew"],
  notes: "defaults (tries every 200 ± 100 ms), endless tries to take; using() renews 500 ms before the end",
};

// For taking alone: set in the constructor they would hold for giving back, too, which then never settles when the
// lock was lost.
const ENDLESS = { retryCount: -1 };

export async function create(env) {
  const { default: Redlock } = await import("redlock5");
  const redises = await env.connectAll();
  const redlock = new Redlock(redises);
  return {
    acquire: (key, ttl) => redlock.acquire([key], ttl, ENDLESS),
    release: (lock) => lock.release(),
    hold: (key, ttl) => hold((routine) => redlock.using([key], ttl, ENDLESS, routine)),
    drop,
    close() {
      for (const redis of redises) redis.disconnect();
    },
  };
}
