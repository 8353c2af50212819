/**
 * A process of the crowd: many tasks that take and give back permits in every way, or calls that count latches down and
 * wait for them. Uses the built package, as a user would, or a mutant of it.
 */
import { register } from "node:module";
import { Redis } from "ioredis";
import { serve } from "../support/worker-child.mjs";
import { connect } from "./connect.mjs";
import { CrowdJournal, now } from "./crowd-journal.mjs";
import { CROWD_MUTANTS } from "./planted/crowd-mutants.mjs";
import { randomFrom } from "./random.mjs";

/**
 * @typedef {object} Config
 * @property {"semaphore" | "permits" | "latch"} kind
 * @property {import("./connect.mjs").Where} where
 * @property {number} witnessPort
 * @property {string} name of this process
 * @property {number} seed
 * @property {number} tasks
 * @property {string[]} locks that they spread over
 * @property {number} most permits that a call may want
 * @property {number} stay ms, at most
 * @property {number} patience ms
 * @property {number} fuse ms after which a call may be given up, at most
 * @property {string[]} [ways] those to go; default all
 * @property {[least: number, most: number]} lease ms
 * @property {[least: number, most: number]} [short] leases that are outlasted
 * @property {import("holdfast").LockClientOptions} options
 * @property {string} [mutant]
 */

const figures = {};
const errors = [];
const running = [];
let stopping = false;
/** @type {Config} */
let told;
let LockClient;
let client;
let redis;
let witness;

serve({
  start,
  finish,
  settle,
  rests,
  close,

  /** Resolves with whether this process set the count; undefined if the answer did not come in time. */
  set: ({ latch, count: to }) => unlessSilent(client.getCountDownLatch(latch).trySetCount(to)),

  /** Counts down that often, and resolves with the moment of each call. */
  async countDown({ latch, times, within }) {
    const sent = [];
    const one = async () => {
      await new Promise((resolve) => setTimeout(resolve, Math.random() * within));
      sent.push(now());
      await unlessSilent(client.getCountDownLatch(latch).countDown());
    };
    await Promise.all(Array.from({ length: times }, one));
    return sent;
  },

  /** Resolves with the moment at which each of that many waiters was let through. */
  await: ({ latch, waiters }) =>
    Promise.all(
      Array.from({ length: waiters }, async () => {
        // A call without a first answer ends, and is repeated.
        let isThrough;
        do isThrough = await unlessSilent(client.getCountDownLatch(latch).await());
        while (isThrough === undefined);
        if (!isThrough) throw new Error("it waited long enough, it says");
        return now();
      }),
    ),
});

/** @param {Config} config */
async function start(config) {
  told = config;
  if (config.mutant !== undefined) {
    const data = CROWD_MUTANTS[config.mutant];
    register("./planted/mutation.mjs", import.meta.url, { data });
  }
  const library = await import("holdfast");
  const { isLockError } = library;
  LockClient = library.LockClient;
  [redis] = connect(config.where);
  witness = new Redis(config.witnessPort);
  client = new LockClient(redis, config.options);
  client.on("error", ({ cause }) => {
    // A `run` has ended, but its release goes on in the background.
    if (isLockError(cause, "UNAVAILABLE")) count("silent");
    else errors.push(`error event: ${cause}`);
  });
  if (config.kind === "latch") return;
  const { WAYS, pick } = await import("./crowd-ways.mjs");
  const journal = new CrowdJournal(witness, config.name);
  client.on("lost", ({ permitId }) => {
    count("lost");
    void journal.lost(permitId);
  });
  const context = { client, config, journal, random: randomFrom(config.seed), count };
  for (let i = 0; i < config.tasks; i++) running.push(task(context, WAYS[config.kind], pick));
}

async function finish() {
  stopping = true;
  await Promise.all(running);
  return { ...figures, errors };
}

/** Closes the client, which waits for its work in the background. Resolves with the errors so far. */
async function settle() {
  await client.close();
  client = new LockClient(redis, told.options);
  return errors;
}

/** The numbers that the library reports of the semaphores, when no task uses them any more. */
function rests() {
  return Promise.all(
    told.locks.map(async (lock) => {
      const semaphore = open(lock);
      const available = await semaphore.availablePermits();
      return { lock, available, acquired: (await semaphore.acquiredPermits?.()) ?? 0 };
    }),
  );
}

async function close() {
  await client.close();
  redis.disconnect();
  witness.disconnect();
}

function open(lock) {
  return told.kind === "semaphore" ? client.getSemaphore(lock) : client.getPermitExpirableSemaphore(lock);
}

async function task(context, ways, pick) {
  const { isLockError } = await import("holdfast");
  const { random, config } = context;
  const mine = ways.filter(({ name }) => config.ways?.includes(name) ?? true);
  while (!stopping) {
    const lock = pick(random, config.locks);
    const way = pick(random, mine);
    try {
      await way(context, { lock, semaphore: open(lock) });
    } catch (error) {
      if (error?.name === "TimeoutError") count("aborted");
      else if (isLockError(error, "LOCK_LOST")) count("late");
      // The wait has ended while the connection was down, or while the process stood still.
      else if (isLockError(error, "UNAVAILABLE")) count("silent");
      else errors.push(String(error?.stack ?? error));
    }
  }
}

/** The result of a call; undefined if it gets no answer in time, in which case it goes on by itself. */
async function unlessSilent(call) {
  const { isLockError } = await import("holdfast");
  return call.catch((error) => {
    if (!isLockError(error, "UNAVAILABLE")) throw error;
    count("silent");
  });
}

function count(figure) {
  figures[figure] = (figures[figure] ?? 0) + 1;
}
