/** A process that holds a lock, so that others can see its owner. */
import { Redis } from "ioredis";
import { LockClient } from "../../../src/index.js";

export const handlers = {
  /** Takes a lock; resolves with the id of the client. */
  hold: async ([url, name, watchdogTimeout]: [string, string, number]): Promise<string> => {
    const client = new LockClient(new Redis(url), { label: "a worker", watchdogTimeout });
    await client.getLock(name).lock();
    return client.id;
  },
};
