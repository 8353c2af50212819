/** A process that takes, waits for and gives back permits on request. */
import { Redis } from "ioredis";
import {
  isLockError,
  LockClient,
  type LockClientOptions,
  type PermitExpirableSemaphore,
  type Semaphore,
} from "../../../src/index.js";

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

const permits = (): PermitExpirableSemaphore => theClient().getPermitExpirableSemaphore(name);
const semaphore = (): Semaphore => theClient().getSemaphore(name);

type Emit = (type: string, payload?: unknown) => void;

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never, emit: Emit) => Promise<unknown>> = {
  start: async (start: Start) => {
    const redis = new Redis({ port: start.port, host: "127.0.0.1" });
    redis.on("error", () => {});
    client = new LockClient(redis, start.options);
    name = start.name;
    await client.ready();
  },
  take: async ({ count, lease }: { count: number; lease?: number }) =>
    Promise.all(Array.from({ length: count }, () => permits().acquire(lease === undefined ? {} : { lease }))),
  release: async (id: string) => {
    try {
      await permits().release(id);
      return "released";
    } catch (error) {
      return isLockError(error) ? error.code : String(error);
    }
  },
  /** Takes that many permits of a semaphore, one by one; the request ends when all are granted. */
  acquire: async (count: number) => {
    await Promise.all(Array.from({ length: count }, () => semaphore().acquire()));
  },
  await: async () => theClient().getCountDownLatch(name).await(),
  countDown: async () => theClient().getCountDownLatch(name).countDown(),
};
