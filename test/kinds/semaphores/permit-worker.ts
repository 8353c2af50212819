/** A process that takes permits, waits for a latch and counts it down on request. */
import { Redis } from "ioredis";
import { LockClient, type LockClientOptions } from "../../../src/index.js";

export interface Start {
  readonly port: number;
  readonly name: string;
  readonly options?: LockClientOptions;
}

let client: LockClient | undefined;
let name = "";

function theClient(): LockClient {
  if (client === undefined) throw new Error("this worker has not been started");
  return client;
}

/** `count` calls at once. */
const times = <T>(count: number, call: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, call));

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never) => Promise<unknown>> = {
  start: async (start: Start) => {
    const redis = new Redis({ port: start.port, host: "127.0.0.1" });
    redis.on("error", () => {});
    client = new LockClient(redis, start.options);
    name = start.name;
    await client.ready();
  },
  /** Takes permits with ids; resolves with these. */
  take: ({ count, lease }: { count: number; lease?: number }) =>
    times(count, () => theClient().getPermitExpirableSemaphore(name).acquire({ lease })),
  acquire: (count: number) => times(count, () => theClient().getSemaphore(name).acquire()),
  await: () => theClient().getCountDownLatch(name).await(),
  countDown: () => theClient().getCountDownLatch(name).countDown(),
};
