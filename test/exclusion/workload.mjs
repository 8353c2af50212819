/**
 * A process of the exclusion test: many tasks that take locks by every way the library has, and do in each what only
 * one may do at a time. Started by exclusion.test.ts; uses the built package, as a user would.
 */
import { isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { Journal, now } from "./journal.mjs";

/**
 * @typedef {object} Config
 * @property {number} lockPort
 * @property {number} witnessPort
 * @property {string} name of this process
 * @property {number} seed
 * @property {number} coolTasks tasks that spread over the cool locks
 * @property {number} cool number of cool locks
 * @property {number} hotTasks tasks that crowd on the hot locks
 * @property {number} hot number of hot locks
 * @property {boolean} wild whether they use everything, with short leases, or just lock and unlock
 * @property {[least: number, most: number]} lease ms
 * @property {number} safe ms that a hold must have left for a write
 * @property {import("holdfast").LockClientOptions} options
 */

const figures = { sections: 0, hot: 0, nested: 0, refused: 0, aborted: 0, silent: 0, lost: 0, unwritten: 0 };
const errors = [];
let stopping = false;
const running = [];
let client;
let redis;
let witness;

serve({ start, stop, figures: () => ({ ...figures, errors }) });

/** @param {Config} config */
async function start(config) {
  redis = new Redis(config.lockPort);
  witness = new Redis(config.witnessPort);
  client = new LockClient(redis, config.options);
  await client.ready();
  const journal = new Journal(witness, config.name);
  const random = randomFrom(config.seed);
  const context = { config, journal, random };
  const begin = (count, kind, names) => {
    for (let i = 0; i < count; i++) running.push(task(context, kind, names));
  };
  begin(config.coolTasks, "cool", config.cool);
  begin(config.hotTasks, "hot", config.hot);
}

async function stop() {
  stopping = true;
  await Promise.all(running);
  await client.close();
  redis.disconnect();
  witness.disconnect();
  return { ...figures, errors };
}

async function task(context, kind, names) {
  while (!stopping) {
    const name = `${kind}-${Math.floor(context.random() * names)}`;
    const way = context.config.wild ? pick(context.random, WAYS) : plainly;
    try {
      await way(context, client.getLock(name));
    } catch (error) {
      if (isLockError(error, "LOCK_LOST")) figures.lost++;
      // A process that is paused for longer than a short wait comes back to its end before it hears the answer.
      else if (isLockError(error, "UNAVAILABLE") && way.isShort) figures.silent++;
      else if (error?.name === "TimeoutError" || isLockError(error, "WAIT_TIMEOUT")) figures.aborted++;
      else errors.push(String(error?.stack ?? error));
    }
    if (kind === "hot") figures.hot++;
  }
}

async function plainly(context, lock) {
  const askedAt = now();
  const hold = await lock.lock();
  await inside(context, lock, hold, askedAt, undefined);
  await hold.unlock();
}

/** Half of all calls take a lease of their own, the others leave it to the watchdog. */
function leaseOf({ config, random }) {
  const [least, most] = config.lease;
  return random() < 0.5 ? undefined : Math.floor(least + random() * (most - least));
}

const WAYS = [plainly, leased, tried, triedInScope, ran, ranNested, aborted, limited, byUsing];

async function leased(context, lock) {
  const askedAt = now();
  const lease = leaseOf(context);
  const hold = await lock.lock({ lease });
  try {
    await inside(context, lock, hold, askedAt, lease);
  } finally {
    await hold.unlock();
  }
}

async function tried(context, lock) {
  const askedAt = now();
  const lease = leaseOf(context);
  const hold = await lock.tryLock(Math.floor(context.random() * 60), lease);
  if (!hold) return refused();
  try {
    await inside(context, lock, hold, askedAt, lease);
  } finally {
    await hold.unlock();
  }
}

/** Redisson's idiom, re-entered once. */
async function triedInScope(context, lock) {
  await client.scope(async () => {
    const askedAt = now();
    const lease = leaseOf(context);
    const hold = await lock.tryLock(100, lease);
    if (!hold) return refused();
    try {
      if (await lock.tryLock()) {
        try {
          figures.nested++;
          await inside(context, lock, hold, askedAt, lease);
        } finally {
          await lock.unlock();
        }
      }
    } finally {
      await lock.unlock();
    }
  });
}

async function ran(context, lock) {
  const askedAt = now();
  const lease = leaseOf(context);
  await lock.run((hold) => inside(context, lock, hold, askedAt, lease), { lease });
}

/** Three siblings inside one run take turns, each a stay of its own. */
async function ranNested(context, lock) {
  const lease = leaseOf(context);
  const askedAt = now();
  await lock.run(
    (outer) =>
      Promise.all(
        [1, 2, 3].map(() =>
          lock.run(() => {
            figures.nested++;
            return inside(context, lock, outer, askedAt, lease);
          }),
        ),
      ),
    { lease },
  );
}

/** The signal may fire before, during or after the grant. */
async function aborted(context, lock) {
  const askedAt = now();
  const signal = AbortSignal.timeout(Math.floor(context.random() * 30));
  const hold = await lock.lock({ signal });
  try {
    await inside(context, lock, hold, askedAt, undefined);
  } finally {
    await hold.unlock();
  }
}

async function limited(context, lock) {
  const askedAt = now();
  const lease = leaseOf(context);
  await lock.run((hold) => inside(context, lock, hold, askedAt, lease), { lease, wait: 20 });
}

/** An extension on the way, and no `await` of the unlock. */
async function byUsing(context, lock) {
  const askedAt = now();
  const hold = await lock.lock({ lease: context.config.lease[0] });
  try {
    await hold.extend(context.config.lease[1]);
    await inside(context, lock, hold, askedAt, context.config.lease[1]);
  } finally {
    const unlocked = hold.unlock();
    await unlocked;
  }
}

for (const way of [tried, triedInScope, limited]) way.isShort = true;

/** What only one may do at a time. */
async function inside({ config, journal, random }, lock, hold, askedAt, lease) {
  const section = await journal.enter(
    lock.name,
    askedAt,
    lease ?? config.options.watchdogTimeout,
    hold.remaining,
  );
  if (config.wild) await new Promise((resolve) => setTimeout(resolve, random() * 4));
  const write = hold.remaining > config.safe;
  if (!write) figures.unwritten++;
  await journal.leave(section, hold.isHeld, write);
  figures.sections++;
}

function refused() {
  figures.refused++;
}

function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

/** mulberry32 */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
