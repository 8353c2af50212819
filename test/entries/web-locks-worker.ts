/** A separate process that requests locks. */
import { Redis } from "ioredis";
import { createLockManager, type LockManager } from "../../src/entries/web-locks.js";
import { LockClient } from "../../src/index.js";

let manager: LockManager;

type Emit = (type: string, payload?: unknown) => void;

export const handlers = {
  connect({ url, watchdogTimeout }: { url: string; watchdogTimeout: number }): string {
    const redis = new Redis(url).on("error", () => {});
    const client = new LockClient(redis, { commandTimeout: 20_000, watchdogTimeout });
    manager = createLockManager(client);
    return client.id;
  },

  /** Holds a lock for ever; resolves when it is granted, and emits the request's error. */
  hold(name: string, emit: Emit): Promise<void> {
    return new Promise((resolve) => {
      const granted = () => {
        resolve();
        return new Promise<never>(() => {});
      };
      manager
        .request(name, granted)
        .catch(({ name: error, cause }: Error & { cause?: { reason?: string } }) => {
          emit("rejected", { name: error, reason: cause?.reason });
        });
    });
  },

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
};
