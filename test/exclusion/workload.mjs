/**
 * A process of the exclusion tests: many tasks that take locks in every way that the library has. In each hold they do
 * what only one owner may do at a time, or what excludes writers. Started by fleet.ts; uses the built package, as a
 * user would.
 */
import { setImmediate } from "node:timers/promises";
import { isLockError, LockClient, MultiLock, RedLock } from "holdfast";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { connect } from "./connect.mjs";
import { Journal, now } from "./journal.mjs";
import { randomFrom } from "./random.mjs";
import { CARELESS, pick, SHARING, WAYS } from "./ways.mjs";

/**
 * @typedef {object} Config
 * @property {import("./connect.mjs").Where} where
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
 * @property {[least: number, most: number]} [short] leases that are outlasted
 * @property {number} safe ms that a hold must have left for the use of the counter
 * @property {boolean} [stormy] calls may get no answer, for faults of the servers or on the way there
 * @property {import("holdfast").LockClientOptions} options
 */

/**
 * The sides of each kind, and which calls a place in its queue goes before. A `multi` takes the lock of another name
 * together with its own, a `red` the locks of that name on all masters.
 */
const KINDS = {
  lock: { open: ([client], name) => ({ only: client.getLock(name) }) },
  fair: { open: ([client], name) => ({ only: client.getFairLock(name) }), before: "all" },
  fenced: { open: ([client], name) => ({ only: client.getFencedLock(name) }) },
  readwrite: { open: ([client], name) => sides(client.getReadWriteLock(name)), before: "readers" },
  unranked: { open: ([client], name) => sides(client.getReadWriteLock(name, { preferWriters: false })) },
  multi: {
    open: ([client], ...names) => ({ only: new MultiLock(...names.map((name) => client.getLock(name))) }),
    takesTwo: true,
  },
  red: { open: (clients, name) => ({ only: new RedLock(...clients.map((client) => client.getLock(name))) }) },
};

/** The most waits whose end is not known yet; later ones push out those of calls that were given up. */
const MOST_WAITS = 10_000;

const figures = {};
const errors = [];
const waits = new Map();
/** For each lock where a call gave up: since when the server has known the calls behind it. */
const told = new Map();
const running = [];
let stopping = false;
let clients;
let redises;
let witness;
let stopNotingStalls;

serve({ start, stop, figures: () => ({ ...figures, errors }) });

/**
 * @param {Config} config
 * @returns {Promise<string[]>} the ids of its lock clients
 */
async function start(config) {
  redises = connect(config.where);
  witness = new Redis(config.witnessPort);
  clients = redises.map((redis) => new LockClient(redis, config.options));
  const ready = Promise.all(clients.map((client) => client.ready()));
  await (config.stormy ? ready.catch(() => {}) : ready);
  const [client] = clients;
  client.on("waiting", ({ ownerId, lockName }) => void noteWait(ownerId, lockName));
  client.on("gaveUp", ({ lockName }) => void noteGap(lockName));
  const journal = new Journal(witness, config.name);
  stopNotingStalls = noteStalls(journal, config.options.pollCap ?? 3_000);
  const context = { client, config, journal, random: randomFrom(config.seed), count, placeOf };
  const begin = (tasks, heat, names) => {
    for (let i = 0; i < tasks; i++) running.push(task(context, heat, names));
  };
  begin(config.coolTasks, "cool", config.cool);
  begin(config.hotTasks, "hot", config.hot);
  return clients.map(({ id }) => id);
}

async function stop() {
  stopping = true;
  await Promise.all(running);
  stopNotingStalls();
  await Promise.all(clients.map((client) => client.close()));
  for (const redis of [...redises, witness]) redis.disconnect();
  return { ...figures, errors };
}

/**
 * Notes when the event loop stood still for a poll or longer, because a waiter that is silent for three polls counts as
 * dead; and by how much its timers are late.
 */
function noteStalls(journal, pollCap) {
  const every = Math.round(pollCap / 10);
  let last = now();
  let most = 0n;
  const timer = setInterval(() => {
    const at = now();
    if (at - last > BigInt(pollCap) * 1_000_000n) void journal.stalled(last, at);
    const lag = at - last - BigInt(every) * 1_000_000n;
    if (lag > most) {
      most = lag;
      void journal.late(lag);
    }
    last = at;
  }, every);
  return () => clearInterval(timer);
}

/**
 * The server learns of a waiter behind others of its process by the first waiter's try, which may still be on its way. A
 * command that changes nothing follows it to the master, on the same connection.
 */
async function noteWait(ownerId, lockName) {
  const at = await answered(lockName);
  if (at === undefined) return;
  waits.set(ownerId, at);
  if (waits.size > MOST_WAITS) waits.delete(waits.keys().next().value);
}

/** A call that gives up takes its mark away; the next waiter of its process leaves its own mark right after that. */
async function noteGap(lockName) {
  told.set(lockName, undefined);
  await setImmediate();
  told.set(lockName, await answered(lockName));
}

/** When the lock's master had executed everything that was sent before; undefined if it gave no answer. */
async function answered(lockName) {
  const isThere = await redises[0].del(`{${lockName}}:none`).catch(() => undefined);
  return isThere === undefined ? undefined : now();
}

async function task(context, heat, names) {
  const { random, config } = context;
  while (!stopping) {
    const kind = pick(random, config.kinds);
    const subject = subjectOf(kind, heat, names, random);
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

function note(error, way, { manner, stormy }) {
  if (isLockError(error, "LOCK_LOST")) count("lost");
  // A process that was paused for longer than a short wait sees the end of the wait before the answer.
  else if (isLockError(error, "UNAVAILABLE") && (way.isShort || stormy || manner === "careless"))
    count("silent");
  else if (isLockError(error, "QUORUM") && stormy) count("silent");
  else if (error?.name === "TimeoutError" || isLockError(error, "WAIT_TIMEOUT")) count("aborted");
  else errors.push(String(error?.stack ?? error));
}

/** A lock to work with, or one side of it; two calls in three go to the read side. */
function subjectOf(kind, heat, most, random) {
  const { open, before, takesTwo } = KINDS[kind];
  const number = Math.floor(random() * most);
  const numbers = takesTwo ? [number, (number + 1 + Math.floor(random() * (most - 1))) % most] : [number];
  const names = numbers.map((each) => `${kind}-${heat}-${each}`);
  const lock = open(clients, ...names);
  if (lock.only) return { kind, names, lock: lock.only, shared: false, before };
  const shared = random() < 2 / 3;
  const [mine, other] = shared ? [lock.read, lock.write] : [lock.write, lock.read];
  return { kind, names, lock: mine, other, shared, before };
}

function sides(lock) {
  return { read: lock.readLock(), write: lock.writeLock() };
}

/** The place in the queue that led to a hold, if it has one that counts. */
function placeOf({ names: [name], shared, before }, { ownerId }) {
  const at = waits.get(ownerId);
  if (at === undefined || before === undefined || (before === "readers" && shared)) return undefined;
  if (before !== "readers" || !told.has(name)) return { at, before };
  const gap = told.get(name);
  return gap === undefined ? undefined : { at: gap > at ? gap : at, before };
}

function count(figure) {
  figures[figure] = (figures[figure] ?? 0) + 1;
}
