/** A process whose calls are given up while Redis does not answer, and which counts the bytes that this costs. */
import { Redis } from "ioredis";
import { isLockError, LockClient } from "../../src/index.js";
import { until } from "../support/until.js";

let redis: Redis | undefined;
let client: LockClient | undefined;

/** The bytes in use after garbage collection. */
async function bytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export const handlers = {
  async connect({ port, commandTimeout }: { port: number; commandTimeout: number }): Promise<void> {
    redis = new Redis(port, "127.0.0.1");
    redis.on("error", () => {});
    client = new LockClient(redis, { commandTimeout });
    // Repeated, because on a busy machine a client with a short time-out may fail at first.
    await until("it is warm", () => client?.getLock("warm-up").run(() => true), { timeout: 15_000 });
  },

  /** Gives up `count` calls; resolves with the bytes that they cost. */
  async giveUp({ count, name }: { count: number; name: string }): Promise<number> {
    const before = await bytes();
    const calls = Array.from({ length: count }, (_, i) => client?.getLock(`${name}${i}`).tryLock(20));
    const codes = (await Promise.allSettled(calls)).map((call) => {
      return call.status === "rejected" && isLockError(call.reason) ? call.reason.code : "no error";
    });
    const other = codes.find((code) => code !== "UNAVAILABLE");
    if (other !== undefined) throw new Error(`a call ended with ${other}`);
    return (await bytes()) - before;
  },

  /** By how many bytes the use of memory changes in `ms` milliseconds. */
  async idle({ ms }: { ms: number }): Promise<number> {
    const before = await bytes();
    await new Promise((resolve) => setTimeout(resolve, ms));
    return (await bytes()) - before;
  },

  /** Takes a lock and gives it back. */
  async use({ name }: { name: string }): Promise<void> {
    await client?.getLock(name).run(() => {});
  },

  async end(): Promise<void> {
    await client?.close({ timeout: 0 });
    redis?.disconnect();
  },
};
