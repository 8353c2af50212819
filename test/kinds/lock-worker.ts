/**
 * This process takes, waits for and gives back locks of any kind, or takes permits, as a test requests. It reports when
 * it was granted a lock.
 */
import { Redis } from "ioredis";
import { type Hold, isLockError, type Lock, LockClient, type LockClientOptions } from "../../src/index.js";

export interface Start {
  readonly port: number;
  readonly name: string;
  /** Of the lock; absent for permits. */
  readonly side?: "fair" | "read" | "write";
  readonly options?: LockClientOptions;
}

export interface Take {
  /** The test's name for this hold. */
  readonly id: string;
  readonly lease?: number;
}

/** The payload of the message `granted`. */
export interface Granted {
  readonly id: string;
  readonly ownerId: string;
}

let client: LockClient | undefined;
let name = "";
let lock: Lock | undefined;
const holds = new Map<string, Hold>();

function lockOf({ name, side }: Start, by: LockClient): Lock {
  if (side === "fair") return by.getFairLock(name);
  const both = by.getReadWriteLock(name);
  return side === "read" ? both.readLock() : both.writeLock();
}

function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("this worker has not been started");
  return part;
}

/** `count` calls at once. */
const times = <T>(count: number, call: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, call));

type Emit = (type: string, payload: Granted) => void;

async function take({ id, lease }: Take, emit: Emit): Promise<string> {
  const hold = await started(lock).lock(lease === undefined ? {} : { lease });
  holds.set(id, hold);
  emit("granted", { id, ownerId: hold.ownerId });
  return hold.ownerId;
}

/** The handlers for `worker.request`. */
export const handlers: Record<string, (payload: never, emit: Emit) => Promise<unknown>> = {
  start: async (start: Start) => {
    const redis = new Redis({ port: start.port, host: "127.0.0.1" });
    redis.on("error", () => {});
    client = new LockClient(redis, start.options);
    name = start.name;
    await client.ready();
    lock = lockOf(start, client);
  },
  take,
  unlock: async (id: string) => {
    try {
      await holds.get(id)?.unlock();
      return "unlocked";
    } catch (error) {
      return isLockError(error) ? error.code : String(error);
    }
  },
  /** Takes permits with ids; resolves with these. */
  permits: ({ count, lease }: { count: number; lease?: number }) =>
    times(count, () => started(client).getPermitExpirableSemaphore(name).acquire({ lease })),
};
