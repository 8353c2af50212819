/**
 * A process of the exclusion tests: many tasks that take locks by every way the library has, and do in each what only
 * one may do at a time, or what no writer may be beside. Started by fleet.ts; uses the built package, as a user would.
 */
import { isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { Journal, now } from "./journal.mjs";
import { CARELESS, pick, SHARING, WAYS } from "./ways.mjs";

/**
 * @typedef {object} Config
 * @property {number} lockPort
 * @property {number} witnessPort
 * @property {string} name of this process
 * @property {number} seed
 * @property {string[]} kinds of locks
 * @property {number} coolTasks tasks that spread over the cool locks
 * @property {number} cool number of cool locks of each kind
 * @property {number} hotTasks tasks that crowd on the hot locks
 * @property {number} hot number of hot locks of each kind
 * @property {"calm" | "wild" | "careless"} manner lock and unlock; everything, with short leases; nothing heeded
 * @property {[least: number, most: number]} lease ms
 * @property {number} safe ms that a hold must have left for the use of the counter
 * @property {import("holdfast").LockClientOptions} options
 */

/** What each kind is: its sides with their shares of the calls, and what a place in its line is worth. */
const KINDS = {
  lock: { open: (client, name) => ({ only: client.getLock(name) }) },
  fair: { open: (client, name) => ({ only: client.getFairLock(name) }), before: "all" },
  fenced: { open: (client, name) => ({ only: client.getFencedLock(name) }) },
  readwrite: { open: (client, name) => sides(client.getReadWriteLock(name)), before: "readers" },
  unranked: { open: (client, name) => sides(client.getReadWriteLock(name, { preferWriters: false })) },
};

/** Waits whose end is not known yet; those that were given up are pushed out by later ones. */
const MOST_WAITS = 10_000;

const figures = {};
const errors = [];
const waits = new Map();
const running = [];
let stopping = false;
let client;
let redis;
let witness;

serve({ start, stop, figures: () => ({ ...figures, errors }) });

/** @param {Config} config */
async function start(config) {
  redis = new Redis(config.lockPort);
  redis.on("error", () => {}); // the server may be away
  witness = new Redis(config.witnessPort);
  client = new LockClient(redis, config.options);
  await client.ready();
  client.on("waiting", async ({ ownerId }) => {
    // Who stands behind others of its process is known by the first one's try, which may be on its way still.
    await redis.ping().catch(() => {});
    waits.set(ownerId, now());
    if (waits.size > MOST_WAITS) waits.delete(waits.keys().next().value);
  });
  const journal = new Journal(witness, config.name);
  const context = { client, config, journal, random: randomFrom(config.seed), count, placeOf };
  const begin = (tasks, heat, names) => {
    for (let i = 0; i < tasks; i++) running.push(task(context, heat, names));
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

async function task(context, heat, names) {
  const { random, config } = context;
  while (!stopping) {
    const kind = pick(random, config.kinds);
    const subject = subjectOf(kind, `${kind}-${heat}-${Math.floor(random() * names)}`, random);
    const way = pick(random, waysOf(config.manner, subject));
    try {
      await way(context, subject);
    } catch (error) {
      note(error, way, config);
    }
    if (heat === "hot") count("hot");
  }
}

function waysOf(manner, { other }) {
  if (manner === "careless") return CARELESS;
  const ways = WAYS[manner];
  return other ? [...ways, ...SHARING] : ways;
}

function note(error, way, { manner }) {
  if (isLockError(error, "LOCK_LOST")) count("lost");
  // A process that is paused for longer than a short wait comes back to its end before it hears the answer.
  else if (isLockError(error, "UNAVAILABLE") && (way.isShort || manner === "careless")) count("silent");
  else if (error?.name === "TimeoutError" || isLockError(error, "WAIT_TIMEOUT")) count("aborted");
  else errors.push(String(error?.stack ?? error));
}

/** One lock to work with, or one side of it; two calls in three go to the read side. */
function subjectOf(kind, name, random) {
  const { open, before } = KINDS[kind];
  const lock = open(client, name);
  if (lock.only) return { kind, name, lock: lock.only, shared: false, before };
  const shared = random() < 2 / 3;
  const [mine, other] = shared ? [lock.read, lock.write] : [lock.write, lock.read];
  return { kind, name, lock: mine, other, shared, before };
}

function sides(lock) {
  return { read: lock.readLock(), write: lock.writeLock() };
}

/** The place in line that led to a hold, as far as it has one that counts. */
function placeOf({ shared, before }, { ownerId }) {
  const at = waits.get(ownerId);
  if (at === undefined || before === undefined || (before === "readers" && shared)) return undefined;
  return { at, before };
}

function count(figure) {
  figures[figure] = (figures[figure] ?? 0) + 1;
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
