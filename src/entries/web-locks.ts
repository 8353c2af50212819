/** The Web Locks API of the W3C, which browsers have as `navigator.locks`, over Redis. */
import type { LockClient } from "../index.js";
import { Manager } from "./web-locks/manager.js";
import type { LockManager } from "./web-locks/types.js";

export type {
  Lock,
  LockGrantedCallback,
  LockInfo,
  LockManager,
  LockManagerSnapshot,
  LockMode,
  LockOptions,
} from "./web-locks/types.js";

/** One manager for each client, so that all its users stand in the same queues. */
const managers = new WeakMap<LockClient, LockManager>();

/**
 * The lock manager of a client; the same one at each call. Lock names are those of the client's read-write
 * locks. The client stays yours to close.
 * @throws TypeError for what is no LockClient
 * @example
 * await createLockManager(client).request("stock:42", async () => sell("42"));
 */
export function createLockManager(client: LockClient): LockManager {
  if (typeof client?.getReadWriteLock !== "function") {
    throw new TypeError("createLockManager(client) takes a LockClient");
  }
  const manager = managers.get(client) ?? new Manager(client);
  managers.set(client, manager);
  return manager;
}
