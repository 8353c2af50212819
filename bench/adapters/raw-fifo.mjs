// This is the floor of a hand-over in one process, with a local FIFO before the two scripts. A hand-over is one give
// back and then one take, and nobody polls. A library may beat it by handing over in one script.
import { GIVE_BACK, load, ownerId, run, TAKE } from "../lib/raw.mjs";
import { sleep } from "../lib/stats.mjs";

export const meta = {
  name: "raw-fifo",
  floor: true,
  client: "ioredis",
  notes: "a FIFO for each key in the process, then raw's two scripts, one after the other",
};

/** A list whose first is taken in constant time. */
class Fifo {
  #items = [];
  #first = 0;
  push(item) {
    this.#items.push(item);
  }
  shift() {
    const item = this.#items[this.#first];
    this.#items[this.#first++] = undefined;
    if (this.#first > 1_000 && this.#first * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#first);
      this.#first = 0;
    }
    return item;
  }
}

export async function create(env) {
  const redis = await env.connect(0);
  await load([redis]);
  // By key, while somebody of this process has the turn.
  const queues = new Map();
  return {
    async acquire(key, ttl) {
      const queue = queues.get(key);
      if (queue) await new Promise((resolve) => queue.push(resolve));
      else queues.set(key, new Fifo());
      const value = ownerId();
      while ((await run(redis, TAKE, key, value, ttl)) !== 1) await sleep(1);
      return { key, value };
    },
    async release({ key, value }) {
      await run(redis, GIVE_BACK, key, value);
      const next = queues.get(key).shift();
      if (next) next();
      else queues.delete(key);
    },
    close: () => redis.disconnect(),
  };
}
