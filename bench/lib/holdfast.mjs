// The adapters of this library: the build of this checkout, or of the one that HOLDFAST names.
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const home = resolve(process.env.HOLDFAST ?? fileURLToPath(new URL("../..", import.meta.url)));
export const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));

export const load = () => import(pathToFileURL(join(home, "dist/index.js")).href);

/** Lock objects that are kept for their next use, as in a service that has some; memory is measured with more. */
const KEPT = 1_024;

/** An adapter over `lockOf(clients, key, library, mode)`, the lock that is meant by a key. */
export const make = (lockOf) => async (env) => {
  const library = await load();
  const redises = await env.connectAll();
  const clients = redises.map(
    (redis) => new library.LockClient(redis, { watchdogTimeout: env.ttl ?? 30_000 }),
  );
  const locks = new Map();
  const get = (key, mode) => {
    const id = mode === undefined ? key : `${mode}:${key}`;
    let lock = locks.get(id);
    if (!lock) {
      lock = lockOf(clients, key, library, mode);
      if (locks.size < KEPT) locks.set(id, lock);
    }
    return lock;
  };
  return {
    acquire: (key, ttl, mode) => get(key, mode).lock({ lease: ttl }),
    release: (hold) => hold.unlock(),
    hold: (key) => get(key).lock(),
    drop: (hold) => hold.unlock(),
    /** `act(take, giveBack)` runs where the lock is held already, so that each take is a nested one. */
    inside: (key, ttl, act) =>
      clients[0].scope(async () => {
        const lock = get(key);
        const outer = await lock.lock({ lease: ttl });
        await act(
          () => lock.lock({ lease: ttl }),
          (hold) => hold.unlock(),
        );
        await outer.unlock();
      }),
    async close() {
      await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
      for (const redis of redises) redis.disconnect();
    },
  };
};
