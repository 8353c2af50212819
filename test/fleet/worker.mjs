/**
 * A process of the fleet: many tasks that take locks and permits in every way that the library has. Started by
 * fleet.ts; uses the built package, as a user would.
 */
import { isLockError, LockClient, MultiLock, RedLock } from "holdfast";
import { Cluster, Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { Journal, now, Witness } from "./journal.mjs";
import { permitWay } from "./permit-ways.mjs";
import { pause, pick, waysOf } from "./ways.mjs";

/**
 * @typedef {{ port: number }
 *   | { sentinels: { host: string, port: number }[], name: string, natMap: Record<string, object> }
 *   | { nodes: { host: string, port: number }[], natMap: Record<string, object> }
 *   | { masters: { port: number }[] }} Where
 *
 * @typedef {object} Config
 * @property {Where} where
 * @property {number} witnessPort
 * @property {string} name of this process
 * @property {string} path of its journal
 * @property {number} seed
 * @property {string[]} kinds that its tasks take
 * @property {number} tasks
 * @property {number} names of each kind
 * @property {string} [infix] of the names, behind the kind
 * @property {[least: number, most: number]} lease ms
 * @property {[least: number, most: number]} short leases that are outlasted, ms
 * @property {number} safe ms that a hold must have left for a write
 * @property {number} most permits that a call may want
 * @property {number} stay ms inside, at most
 * @property {import("holdfast").LockClientOptions} options
 * @property {import("./planted.js").Swap[]} [swaps] scripts that are replaced by others
 */

/** Milliseconds. Short, because the tests measure how long the library takes, not how long ioredis rests. */
const retryStrategy = (times) => Math.min(50 * times, 200);

const LOCKS = {
  lock: (client, name) => client.getLock(name),
  fair: (client, name) => client.getFairLock(name),
  fenced: (client, name) => client.getFencedLock(name),
  forced: (client, name) => client.getFencedLock(name),
  readwrite: (client, name) => client.getReadWriteLock(name),
  unranked: (client, name) => client.getReadWriteLock(name, { preferWriters: false }),
};
/** The members of a MultiLock are of these kinds, by their numbers. */
const MEMBERS = [
  LOCKS.lock,
  LOCKS.fair,
  LOCKS.fenced,
  (client, name) => LOCKS.readwrite(client, name).writeLock(),
];

const figures = {};
const errors = [];
const running = [];
/** What each task does, and since when. */
const doing = new Map();
/** When a call is known to have stood in a fair lock's queue, by its owner id. */
const places = new Map();
let stopping = false;
let clients;
let redises;
let witness;

serve({ start, stop, pending, figures: () => ({ counts: figures, errors }) });

/** @param {Config} config */
async function start(config) {
  redises = connect(config);
  witness = new Redis(config.witnessPort);
  clients = redises.map((redis) => new LockClient(redis, config.options));
  await Promise.all(clients.map(untilReady));
  const [client] = clients;
  const journal = new Journal(config.path, config.name);
  client.on(
    "waiting",
    ({ kind, lockName, ownerId }) => kind === "fair" && void notePlace(client, lockName, ownerId),
  );
  const permits = new Map();
  client.on(
    "lost",
    ({ permitId }) => permits.has(permitId) && journal.note({ of: permits.get(permitId), lost: true }),
  );
  client.on("error", ({ cause }) => {
    // A `run` has ended, but its release goes on in the background.
    if (!isLockError(cause, "UNAVAILABLE")) errors.push(`error event: ${cause}`);
  });
  const context = {
    client,
    config,
    count,
    journal,
    permits,
    placeOf: ({ ownerId }) => places.get(ownerId),
    random: randomFrom(config.seed),
    witness: new Witness(witness),
  };
  running.push(noteStalls(journal, config.options.pollCap));
  for (let i = 0; i < config.tasks; i++) running.push(task(context, i));
}

async function stop() {
  stopping = true;
  await Promise.all(running);
  await Promise.all(clients.map((client) => client.close()));
  for (const redis of [...redises, witness]) redis.disconnect();
  return { counts: figures, errors };
}

/** What has not ended, in words. */
function pending() {
  const tasks = [...doing.values()].map(
    ({ what, since }) => `${what} for ${Math.round((now() - since) / 1e6)} ms`,
  );
  const shown = clients.map((client) => client.stats()).map(({ held, waiting }) => ({ held, waiting }));
  return [JSON.stringify(shown), ...tasks];
}

/** A connection to each of several masters, otherwise one connection. */
function connect({ where, swaps = [] }) {
  return (where.masters ?? [where]).map(({ nodes, natMap, ...options }) => {
    const redis = nodes
      ? new Cluster(nodes, { natMap, clusterRetryStrategy: retryStrategy })
      : new Redis({ ...options, natMap, retryStrategy, sentinelRetryStrategy: retryStrategy });
    redis.on("error", () => {}); // the server may be down
    return swaps.length > 0 ? swapping(redis, swaps) : redis;
  });
}

/** The connection, and all that the library makes of it, with some scripts replaced by others. */
function swapping(redis, swaps) {
  const { duplicate, evalsha, eval: evaluate } = redis;
  const other = (form) => swaps.find(({ sha1, text }) => form === sha1 || form === text)?.planted;
  redis.evalsha = (sha1, ...rest) => evalsha.call(redis, other(sha1)?.sha1 ?? sha1, ...rest);
  redis.eval = (text, ...rest) => evaluate.call(redis, other(text)?.text ?? text, ...rest);
  redis.duplicate = (...how) => swapping(duplicate.apply(redis, how), swaps);
  return redis;
}

/** Repeats ready(), because under faults a call may get no answer in time. */
async function untilReady(client) {
  for (let isReady = false; !isReady; ) {
    isReady = await client.ready().then(
      () => true,
      (error) => {
        if (!isLockError(error, "UNAVAILABLE")) throw error;
        return false;
      },
    );
  }
}

/** A waiter that is silent for three polls counts as dead: what happened to its place is not known. */
async function noteStalls(journal, pollCap) {
  for (let last = now(); !stopping; ) {
    await pause(pollCap / 10);
    const at = now();
    if (at - last > pollCap * 1e6) journal.note({ stall: [last, at] });
    last = at;
  }
}

async function notePlace(client, lockName, ownerId) {
  const info = await client.inspect(lockName).catch(() => null);
  if (!info?.waiters.includes(ownerId)) return;
  places.set(ownerId, now());
  if (places.size > 10_000) places.delete(places.keys().next().value);
}

async function task(context, number) {
  const { random, config } = context;
  while (!stopping) {
    const subject = subjectOf(random, config);
    const way = subject.semaphore ? permitWay(context, subject.kind) : pick(random, waysOf(subject));
    const { kind, names = [subject.name], side = "" } = subject;
    doing.set(number, { what: `${way.name || "take"} ${kind} ${names} ${side}`, since: now() });
    await way(context, subject).catch(note);
  }
  doing.delete(number);
}

function note(error) {
  errors.push(String(error?.stack ?? error));
}

/** Something to work with. Half of all calls want the same one of their kind. */
function subjectOf(random, { kinds, names: most, infix = "" }) {
  const kind = pick(random, kinds);
  const nameOf = (i) => `${kind}-${infix}${i}`;
  const number = random() < 0.5 ? 0 : Math.floor(random() * most);
  const name = nameOf(number);
  const [client] = clients;
  if (kind === "semaphore") return { kind, name, semaphore: client.getSemaphore(name) };
  if (kind === "permits") return { kind, name, semaphore: client.getPermitExpirableSemaphore(name) };
  if (kind === "red") {
    return {
      kind,
      names: [name],
      side: "write",
      lock: new RedLock(...clients.map((each) => each.getLock(name))),
    };
  }
  if (kind === "multi") {
    const numbers = [number, (number + 1 + Math.floor(random() * (most - 1))) % most];
    const members = numbers.map((i) => MEMBERS[i % MEMBERS.length](clients[i % clients.length], nameOf(i)));
    return {
      kind,
      names: numbers.map((i) => nameOf(i)),
      side: "write",
      lock: new MultiLock(...members),
    };
  }
  const lock = LOCKS[kind](client, name);
  if (!("readLock" in lock)) return { kind, names: [name], side: "write", lock };
  const sides = { read: lock.readLock(), write: lock.writeLock() };
  const [side, opposite] = random() < 2 / 3 ? ["read", "write"] : ["write", "read"];
  return { kind, names: [name], side, lock: sides[side], other: sides[opposite] };
}

/** mulberry32: numbers from 0 to below 1, the same ones again for the same seed. */
function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function count(figure) {
  figures[figure] = (figures[figure] ?? 0) + 1;
}
