/**
 * A process of red-exclusion.test.ts: many tasks that want one RedLock, and count what only its holder may count. Uses
 * the built package, as a user would.
 */
import { setTimeout as pause } from "node:timers/promises";
import { isLockError, LockClient, RedLock } from "holdfast";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";

/** Counts a section. If the count has changed since the task read it, the task was not alone. */
const COUNT = `
if (redis.call('GET', KEYS[1]) or '0') == ARGV[1] then
  return redis.call('INCR', KEYS[1])
end
redis.call('INCR', KEYS[2])
return 0`;

/**
 * @typedef {object} Start
 * @property {number[]} ports of the masters
 * @property {number} witnessPort
 * @property {number} tasks
 * @property {number} lease ms
 * @property {number} safe ms that a hold must have left for the write
 * @property {number} [only] a broken lock: on this master alone
 */

const figures = { sections: 0, tooLate: 0, failed: 0 };
const errors = [];
const running = [];
let stopping = false;
let redises = [];
let witness;
let clients = [];

serve({ start, stop });

/** @param {Start} config */
async function start(config) {
  const { ports, witnessPort, tasks, only } = config;
  redises = ports.map((port) => new Redis({ port, host: "127.0.0.1", retryStrategy: () => 50 }));
  for (const redis of redises) redis.on("error", () => {}); // masters go down and come back
  witness = new Redis({ port: witnessPort, host: "127.0.0.1" });
  clients = redises.map((redis) => new LockClient(redis, { commandTimeout: 1_000 }));
  const locks = clients.map((client) => client.getLock("red"));
  const lock = only === undefined ? new RedLock(...locks) : locks[only];
  for (let i = 0; i < tasks; i++) running.push(task(lock, config));
}

async function stop() {
  stopping = true;
  await Promise.all(running);
  await Promise.all(clients.map((client) => client.close({ timeout: 0 })));
  for (const redis of [...redises, witness]) redis.disconnect();
  return { ...figures, errors };
}

async function task(lock, { lease, safe }) {
  while (!stopping) {
    try {
      const hold = await lock.lock({ lease, wait: 5_000 });
      try {
        await section(hold, safe);
      } finally {
        await hold.unlock();
      }
    } catch (error) {
      figures.failed++;
      if (!isLockError(error) || ["NOT_OWNER", "UNSUPPORTED"].includes(error.code))
        errors.push(String(error?.stack ?? error));
    }
  }
}

async function section(hold, safe) {
  const count = (await witness.get("count")) ?? "0";
  await pause(Math.random() * 2);
  // The write may take this long on a busy machine, and a write after the deadline would prove nothing.
  if (hold.remaining < safe) {
    figures.tooLate++;
    return;
  }
  await witness.eval(COUNT, 2, "count", "violations", count);
  if (hold.isHeld) figures.sections++;
  else figures.tooLate++;
}
