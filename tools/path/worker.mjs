// A process that takes a lock and gives it back, and tells by IPC what of it has run.

// All that is counted is loaded after the coverage is on.
import { Redis } from "ioredis";
import { LockClient } from "../../src/index.ts";
import { entries, taken } from "./coverage.mjs";

/** So many times before it counts: connections, scripts, what else is made once, and the first bare calls, which are noted. */
const WARM = 150;
/** Nothing is renewed meanwhile. */
const LONG_MS = 600_000;

const WALKS = {
  async free(lock) {
    const hold = await lock.lock();
    await hold.unlock();
  },
  async waits(lock) {
    const first = await lock.lock();
    const second = lock.lock();
    await first.unlock();
    await (await second).unlock();
  },
};

/** What is left to do when the call has been answered belongs to it. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

process.once("message", async ({ port, walk, bundle }) => {
  const redis = new Redis(port, "127.0.0.1");
  const client = new LockClient(redis, { watchdogTimeout: LONG_MS, commandTimeout: LONG_MS });
  const lock = client.getLock("path");
  const act = async () => {
    await WALKS[walk](lock);
    await settled();
  };
  for (let i = 0; i < WARM; i++) await act();
  taken(bundle);
  await act();
  const functions = taken(bundle);
  const noted = entries(bundle, functions);
  await act();
  process.send({ functions, noted }, () => process.exit());
});
