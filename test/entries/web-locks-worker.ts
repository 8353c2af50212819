/** A separate process that requests locks. */
import { Redis } from "ioredis";
import { createLockManager, type LockManager } from "../../src/entries/web-locks.js";
import { LockClient } from "../../src/index.js";

let redis: Redis;
let client: LockClient;
let manager: LockManager;

type Emit = (type: string, payload?: unknown) => void;

export const handlers = {
  connect({ url, ...options }: { url: string; watchdogTimeout?: number }): string {
    redis = new Redis(url);
    redis.on("error", () => {});
    client = new LockClient(redis, { commandTimeout: 20_000, ...options });
    manager = createLockManager(client);
    return client.id;
  },

  /** Holds a lock for ever; resolves with the client's id when it is granted, and emits the request's error. */
  hold(name: string, emit: Emit): Promise<string> {
    return new Promise((resolve) => {
      const never = () => {
        resolve(client.id);
        return new Promise<never>(() => {});
      };
      manager
        .request(name, never)
        .catch(({ name: error, cause }: Error & { cause?: { reason?: string } }) => {
          emit("rejected", { name: error, reason: cause?.reason });
        });
    });
  },

  request: (name: string): Promise<string> => manager.request(name, () => "granted"),

  isPending: async (name: string): Promise<boolean> =>
    (await manager.query()).pending.some((info) => info.name === name),

  async stealOften({ name, times }: { name: string; times: number }): Promise<number> {
    let ended = 0;
    for (let i = 0; i < times; i++) {
      const work = () => new Promise((resolve) => setImmediate(resolve));
      await manager.request(name, { steal: true }, work).catch((error: Error) => {
        if (error.name !== "AbortError") throw error;
      });
      ended++;
    }
    return ended;
  },

  /** Reads a count and then writes the next one, `times` times, each time under the lock. */
  async count({ name, key, times }: { name: string; key: string; times: number }): Promise<void> {
    const next = async () => {
      const count = Number(await redis.get(key));
      await new Promise((resolve) => setImmediate(resolve));
      await redis.set(key, count + 1);
    };
    await Promise.all(Array.from({ length: times }, () => manager.request(name, next)));
  },

  /** Reads two counts that writers change one after the other; resolves with how often the two differed. */
  async compare({
    name,
    keys,
    times,
  }: {
    name: string;
    keys: [string, string];
    times: number;
  }): Promise<number> {
    let different = 0;
    const look = async () => {
      const [one, two] = await redis.mget(...keys);
      if (one !== two) different++;
    };
    for (let i = 0; i < times; i++) await manager.request(name, { mode: "shared" }, look);
    return different;
  },

  close: (timeout: number): Promise<void> => client.close({ timeout }),
};
