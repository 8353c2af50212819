import { create as one } from "./wire.mjs";

export const meta = {
  name: "wire-8-in-parallel",
  floor: true,
  client: "ioredis",
  notes: "all the keys of one call by wire's two scripts, all at once",
};

export async function create(env) {
  const wire = await one(env);
  return {
    acquire: (keys, ttl) => Promise.all(keys.split(" ").map((key) => wire.acquire(key, ttl))),
    release: (holds) => Promise.all(holds.map(wire.release)),
    close: wire.close,
  };
}
