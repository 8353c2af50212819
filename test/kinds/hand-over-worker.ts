/** A process whose tasks take one lock in a loop; each grant is counted by a read and a write under the lock. */
import { Redis } from "ioredis";
import { LockClient } from "../../src/index.js";

export interface Loops {
  readonly port: number;
  readonly name: string;
  readonly tasks: number;
  /** The number of takes in all processes together. */
  readonly takes: number;
}

let redis: Redis | undefined;
let client: LockClient | undefined;
let loops: Loops | undefined;

async function loop(): Promise<number> {
  if (!redis || !client || !loops) throw new Error("this worker has not been started");
  const { name, takes } = loops;
  const lock = client.getLock(name);
  const counter = `${name}-count`;
  for (let taken = 0; ; taken++) {
    const hold = await lock.lock();
    const count = Number(await redis.get(counter));
    if (count < takes) await redis.set(counter, count + 1);
    await hold.unlock();
    if (count >= takes) return taken;
  }
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  start: async (start: Loops) => {
    loops = start;
    redis = new Redis({ port: start.port, host: "127.0.0.1" });
    redis.on("error", () => {});
    client = new LockClient(redis);
    await client.ready();
  },
  /** Returns how often each task had the lock. */
  loop: () => Promise.all(Array.from({ length: loops?.tasks ?? 0 }, loop)),
  close: async () => {
    await client?.close({ timeout: 0 });
    redis?.disconnect();
  },
};
